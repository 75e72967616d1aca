"""What becomes of memory that nobody wrote: whether results depend on it, or have it as it was.

The program is run again with other contents of the memory in question, and the results are compared bit for bit, any
NaN being as good as another. Zero is what they are compared with; NaN, a positive and a negative number are tried
instead (`poison.py`). An element of a result that is zero, NaN and these numbers in turn has what was in memory as it
was: nobody used it, as where a kernel writes a part of an output and hands the rest on. Integers that show in none of
these runs are given the numbers that the kernel compares with, and those beside them (`compared.py`): results may still
depend on them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mosaic_grid.cpu import build
from mosaic_grid.cpu.arrays import Array
from mosaic_grid.cpu.bits import width_of
from mosaic_grid.cpu.poison import Fill, code_of, contents
from mosaic_grid.cpu.records import Record
from mosaic_grid.cpu.roots import Root
from mosaic_grid.runner.differences import same_bits
from mosaic_grid.runner.progress import Tell, silent

if TYPE_CHECKING:
    from mosaic_grid.runner.recorded import Recorded


@dataclasses.dataclass(frozen=True)
class Code:
    """The code of a root: its number, what its values are, and the integers that it can be as well."""

    number: int
    values: tuple[tuple[Fill, float], ...]
    integers: tuple[int, ...]


Codes: TypeAlias = frozenset[Code]


@dataclasses.dataclass(frozen=True)
class Dependence:
    """What results have to do with some memory.

    They may differ with it, and then be computed from what is in it (`used`); some array may have nothing else (`all`).
    """

    differs: bool = False
    used: bool = False
    all: bool = False

    def __or__(self, other: Dependence) -> Dependence:
        """What holds of either memory."""
        return Dependence(self.differs or other.differs, self.used or other.used, self.all or other.all)


def codes_of(record: Record, root: Root) -> Codes:
    """The codes of the memory that what is unwritten in a root may come from."""
    watch = record.watch
    if watch is None:
        return frozenset()
    numbers = watch.poison.roots
    origins = [each for each in watch.masks.origins(root) if each in numbers]
    codes = []
    for each in origins:
        integers = () if build.is_float(each.element) or width_of(each.element) == 1 else watch.telling
        codes.append(Code(numbers[each], tuple(contents(each.element).items()), integers))
    return frozenset(codes)


class Dependences:
    """What the results of a program, on these arrays, have to do with memory; `every` are all codes in question."""

    def __init__(self, program: Recorded, arrays: Sequence[Array], every: Codes, tell: Tell = silent) -> None:
        self._program = program
        self._arrays = arrays
        self._every = every
        self._tell = tell
        self._runs = 1
        self._known: dict[Codes, Dependence] = {frozenset(): Dependence()}

    def on(self, codes: Codes) -> Dependence:
        """What they have to do with the memory of these codes."""
        if codes != self._every and not self.on(self._every).differs:
            return Dependence()
        if codes not in self._known:
            self._known[codes] = self._found(codes)
        return self._known[codes]

    def _found(self, codes: Codes) -> Dependence:
        runs = {Fill.ZERO: self._zeros}
        for fill in (Fill.NAN, Fill.HIGH, Fill.LOW):
            runs[fill] = self._results(dict.fromkeys((code.number for code in codes), fill))
        found = Dependence()
        for number in range(len(self._zeros)):
            results = {fill: arrays[number] for fill, arrays in runs.items()}
            found |= _dependence(results, [dict(code.values) for code in codes])
        return found if found.differs else self._of_integers(codes)

    def _of_integers(self, codes: Codes) -> Dependence:
        """What shows with the numbers that a comparison may tell from zero."""
        for number in sorted({number for code in codes for number in code.integers}):
            given = {code.number: code_of(number) for code in codes if number in code.integers}
            if not all(map(_all_same, self._zeros, self._results(given))):
                return Dependence(differs=True, used=True)
        return Dependence()

    def _results(self, codes: Mapping[int, int]) -> list[Array]:
        self._runs += 1
        self._tell(f"check: run {self._runs}, to see what depends on memory that nobody wrote")
        return self._program.observe(self._arrays, codes, Fill.ZERO).results

    @cached_property
    def _zeros(self) -> list[Array]:
        return self._results({})


def _all_same(left: Array, right: Array) -> bool:
    return bool(np.all(same_bits(left, right)))


def _dependence(results: Mapping[Fill, Array], contents: Sequence[Mapping[Fill, float]]) -> Dependence:
    """What one result has to do with memory, from what it is with each of its contents."""
    zeros = results[Fill.ZERO]
    same = np.logical_and.reduce([same_bits(zeros, other) for other in results.values()])
    kept = np.zeros(zeros.shape, np.bool_)
    for values in contents:
        kept |= np.logical_and.reduce([_equal(array, values[fill]) for fill, array in results.items()])
    kept &= ~same
    return Dependence(not np.all(same), not np.all(same | kept), bool(kept.size and np.all(kept)))


def _equal(array: Array, value: float) -> Any:
    """Where an array has a number."""
    if math.isnan(value):
        return np.isnan(array) if array.dtype.kind not in "biu" else np.zeros(array.shape, np.bool_)
    return array == np.asarray(value).astype(array.dtype)
