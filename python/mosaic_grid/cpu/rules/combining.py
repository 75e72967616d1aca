"""The ways in which reductions and scans combine two elements, by the names that `vector` and `tpu` give them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.bits import width_of
from mosaic_grid.cpu.lowering import UnsupportedError
from mosaic_grid.cpu.rules.floats import ignoring_nan
from mosaic_grid.cpu.types import unsigned
from mosaic_grid.cpu.wide import is_narrow, widen
from mosaic_grid.ir_types import Value


@dataclasses.dataclass(frozen=True)
class Combination:
    """A way to combine, whose neutral number for an element type is `neutral(element)`.

    Narrow floats are combined in f32 and rounded at the end, as libtpu does where the TPU has no arithmetic for them:
    else each step would round. Integers are combined without their sign if `is_unsigned`.
    """

    combine: Callable[[Value, Value], Value]
    neutral: Callable[[ir.Type], float]
    is_unsigned: bool = False

    def enter(self, value: Value) -> Value:
        """`value` in the type in which it is combined."""
        return build.bitcast(value, unsigned(build.element_of(value))) if self.is_unsigned else widen(value)

    def leave(self, value: Value, element: ir.Type) -> Value:
        """Back to the type of before."""
        return build.bitcast(value, element) if self.is_unsigned else build.convert(value, element)

    def start(self, working: ir.Type) -> Value:
        """The neutral number, in the type in which elements are combined."""
        return build.constant(self.neutral(working), (), working)

    def is_neutral(self, number: float | None, element: ir.Type) -> bool:
        """Whether a constant of the type of before changes nothing."""
        if number is None:
            return False
        if build.is_float(element):
            neutral = self.neutral(ir.F32Type.get() if is_narrow(element) else element)
            return number == neutral or (math.isnan(number) and math.isnan(neutral))
        neutral = self.neutral(unsigned(element) if self.is_unsigned else element)
        return (int(number) - int(neutral)) % 2 ** width_of(element) == 0


def combination(kind: str, element: ir.Type) -> Combination:
    """The combination that a `#vector.kind` or `#tpu.reduction_kind` names, for elements of a type.

    Raises:
        UnsupportedError: it isn't one of those, or isn't one for such elements.
    """
    name = _ALIASES.get(kind, kind)
    if name not in _COMBINATIONS:
        raise UnsupportedError(f"the kind {kind}")
    if width_of(element) == 1 and name not in ("and", "or", "xor"):
        raise UnsupportedError(f"the kind {kind} of predicates")
    return _COMBINATIONS[name]


_ALIASES = {"sum": "add", "maxf": "maximumf", "minf": "minimumf"}

_COMBINATIONS: dict[str, Combination] = {
    "add": Combination(hlo.add, lambda _: 0),
    "mul": Combination(hlo.multiply, lambda _: 1),
    "maximumf": Combination(hlo.maximum, build.lowest),
    "minimumf": Combination(hlo.minimum, build.highest),
    "maxnumf": Combination(ignoring_nan(hlo.maximum), lambda _: math.nan),
    "minnumf": Combination(ignoring_nan(hlo.minimum), lambda _: math.nan),
    "maxsi": Combination(hlo.maximum, build.lowest),
    "minsi": Combination(hlo.minimum, build.highest),
    "maxui": Combination(hlo.maximum, build.lowest, is_unsigned=True),
    "minui": Combination(hlo.minimum, build.highest, is_unsigned=True),
    "and": Combination(hlo.and_, lambda _: -1),
    "or": Combination(hlo.or_, lambda _: 0),
    "xor": Combination(hlo.xor, lambda _: 0),
}
