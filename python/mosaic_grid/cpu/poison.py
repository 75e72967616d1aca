"""What memory holds that nobody wrote, chosen when the program runs: what depends on it then shows in the results.

The program takes one more argument, a code for each root that may be read before it is written (`Fill`). Results that
differ between two codes of a root depend on what it held. Not all that do show it: NaN does in what is multiplied by
zero, and numbers of both signs and zero do in most of what is compared. For integers a code can be any small number,
as a comparison with 10 or 1 only shows in what is on both sides of it.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.bits import width_of
from mosaic_grid.cpu.build import Shape
from mosaic_grid.cpu.fill import has_nan
from mosaic_grid.cpu.options import Options
from mosaic_grid.cpu.roots import Root
from mosaic_grid.ir_types import Value

ROOTS = 1024
"""How many roots can have a code of their own: the length of the argument."""


class Fill(enum.IntEnum):
    """What unwritten memory holds; `DEFAULT` is what the options say."""

    DEFAULT = 0
    ZERO = 1
    NAN = 2
    HIGH = 3
    LOW = 4


_NUMBERS = 1 << 30
_FIRST_NUMBER = 1 << 29


def code_of(number: int) -> int:
    """The code for an integer; its absolute value has to be less than 2**29. Memory of floats holds the default."""
    return _NUMBERS + number


def codes_type() -> ir.Type:
    """The type of the argument."""
    return build.tensor((ROOTS,), build.i32_type())


class Poison:
    """The contents of unwritten memory in one launch. `codes` is the argument, `numbers` gives each root its own."""

    def __init__(self, codes: Value, numbers: Iterator[int], options: Options) -> None:
        self._codes = codes
        self._numbers = numbers
        self._options = options
        self.roots: dict[Root, int] = {}

    def of(self, root: Root, shape: Shape) -> Value:
        """The contents of memory of this shape that stands for a root, or is a part of it."""
        if root not in self.roots:
            self.roots[root] = min(next(self._numbers), ROOTS - 1)
        code = build.reshape(build.slice_(self._codes, [self.roots[root]], [1]), ())
        zero_by_default = self._options.uninitialized == "zero"
        numbers = contents(root.element)
        value = build.constant(numbers[Fill.ZERO if zero_by_default else Fill.NAN], (), root.element)
        for fill in (Fill.ZERO, Fill.NAN, Fill.HIGH, Fill.LOW):
            chosen = build.compare(code, build.i32(fill), "EQ")
            value = build.select(chosen, build.constant(numbers[fill], (), root.element), value)
        if not build.is_float(root.element) and width_of(root.element) > 1:
            number = build.convert(hlo.subtract(code, build.i32(_NUMBERS)), root.element)
            value = build.select(build.compare(code, build.i32(_FIRST_NUMBER), "GE"), number, value)
        return build.splat(value, shape)


def contents(element: ir.Type) -> dict[Fill, float]:
    """The number that each code stands for. Integers are small: some may become the length of a loop."""
    bits = width_of(element)
    if build.is_float(element):
        size = 1024.0 if bits > 8 else 16.0 if bits == 8 else 4.0
        return {Fill.ZERO: 0.0, Fill.NAN: math.nan if has_nan(element) else size, Fill.HIGH: size, Fill.LOW: -size}
    if bits == 1:
        return {Fill.ZERO: 0, Fill.NAN: 0, Fill.HIGH: 1, Fill.LOW: 1}
    least = build.lowest(element)
    return {Fill.ZERO: 0, Fill.NAN: least, Fill.HIGH: min(3, build.highest(element)), Fill.LOW: max(-7, least)}
