"""How two arrays of one type differ."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from mosaic_grid.cpu.arrays import Array
from mosaic_grid.runner.values import is_integer


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """When numbers count as equal: `|left - right| <= absolute + relative * |right|`.

    With both 0 they have to be the same bit for bit, so that -0.0 is not 0.0; but one NaN is as good as another.
    """

    relative: float = 0.0
    absolute: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether only the same bits count as equal."""
        return self.relative == self.absolute == 0


@dataclasses.dataclass(frozen=True)
class Difference:
    """What differs between two arrays: how many elements, by how much at most, and the first in row-major order.

    `relative` is in units of `|right|`. Both maxima are over all elements, those within the tolerance included, and NaN
    where a NaN meets a number. `left` and `right` are the values at `first`.
    """

    count: int
    total: int
    absolute: float
    relative: float
    first: tuple[int, ...] | None = None
    left: Any = None
    right: Any = None


def difference(left: Array, right: Array, tolerance: Tolerance) -> Difference:
    """Compares two arrays of the same shape and type."""
    unequal = np.asarray(~same_bits(left, right))
    one, other = _numbers(left[unequal]), _numbers(right[unequal])
    with np.errstate(all="ignore"):
        gap = np.abs(one - other)
        gap = np.where(one == other, 0, gap)  # infinities of one sign, and zeros of both
        size = np.abs(other)
        ratio = np.where(gap == 0, 0.0, gap.astype(np.float64) / np.where(size == 0, math.nan, size.astype(np.float64)))
        ratio = np.where((gap == math.inf) | (gap != 0) & (size == 0), math.inf, ratio)
        close = (gap <= tolerance.absolute + tolerance.relative * size) & (gap < math.inf)
    differs = unequal.copy()
    if not tolerance.exact:
        differs[unequal] = ~close.astype(bool)
    count = int(np.count_nonzero(differs))
    absolute, ratio_most = (float(np.max(part.astype(np.float64), initial=0.0)) for part in (gap, ratio))
    if not count:
        return Difference(0, left.size, absolute, ratio_most)
    first = tuple(int(k) for k in np.unravel_index(int(np.argmax(differs)), left.shape))
    return Difference(count, left.size, absolute, ratio_most, first, left[first], right[first])


def same_bits(left: Array, right: Array) -> Any:
    """Where two arrays hold the same; NaNs of any bits are the same."""
    width = left.dtype.itemsize
    bits = [np.ascontiguousarray(each).reshape(-1).view(np.uint8).reshape(*left.shape, width) for each in (left, right)]
    same = np.all(bits[0] == bits[1], axis=-1)
    if left.dtype == np.bool_ or is_integer(left.dtype):
        return same
    return same | (np.isnan(left) & np.isnan(right))


def _numbers(values: Array) -> Array:
    """The numbers in a type in which their differences are exact, or as good as."""
    if values.dtype == np.bool_:
        return values.astype(np.int64)
    if is_integer(values.dtype):
        return values.astype(object if values.dtype.itemsize == 8 else np.int64)
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)
