"""Integer intervals, never empty, and the question whether a value still fits its machine type."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Range:
    """The integers from `lo` to `hi`, both included; `ValueError` when there are none."""

    lo: int
    hi: int

    def __post_init__(self) -> None:
        if self.lo > self.hi:
            raise ValueError(f"empty range [{self.lo}, {self.hi}]")

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and self.lo <= value <= self.hi

    def __str__(self) -> str:
        return f"[{self.lo}, {self.hi}]"

    def within(self, other: Range) -> bool:
        """Whether every integer of this range is in `other`."""
        return other.lo <= self.lo and self.hi <= other.hi

    def hull(self, other: Range) -> Range:
        """The smallest range that holds both."""
        return Range(min(self.lo, other.lo), max(self.hi, other.hi))

    def plus(self, other: Range) -> Range:
        """All sums."""
        return Range(self.lo + other.lo, self.hi + other.hi)

    def scaled(self, factor: int) -> Range:
        """All multiples by `factor`."""
        ends = self.lo * factor, self.hi * factor
        return Range(min(ends), max(ends))

    def tightened(self, divisor: int) -> Range:
        """The range of its multiples of `divisor`; a divisor of 0 leaves only 0, and 1 changes nothing."""
        if divisor == 1:
            return self
        if divisor == 0:
            return Range(0, 0)
        return Range(-(-self.lo // divisor) * divisor, self.hi // divisor * divisor)


def corners(function: Callable[[int, int], int], a: Range, b: Range) -> Range:
    """The range of a function that is monotone in each argument: its ends are at corners."""
    values = [function(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    return Range(min(values), max(values))


@functools.lru_cache(maxsize=64)
def type_range(bits: int, signed: bool) -> Range:
    """What an integer of this type can hold; two's complement when signed."""
    return Range(-(1 << bits - 1), (1 << bits - 1) - 1) if signed else Range(0, (1 << bits) - 1)


def may_wrap(values: Range, bits: int, signed: bool) -> bool:
    """Whether some of `values` don't fit the type, so that the machine's result may differ."""
    return not values.within(type_range(bits, signed))
