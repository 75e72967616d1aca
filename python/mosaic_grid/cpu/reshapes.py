"""A part of a reshaped tensor as a part of the tensor itself.

A reshape keeps the order of the elements, so that runs of dimensions before and after it hold the same elements: split,
merged, or joined by dimensions of size 1. In each run a box becomes one of the unreshaped tensor: a box of the same
elements if they are contiguous and their place is known well enough, else the fewest rows that surely cover them, of
which a slice remains to be taken afterwards.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import TypeVar

from mosaic_grid.cpu.build import Index, Shape, min_index, multiply_index
from mosaic_grid.cpu.indices import alignment, divide, remainder, subtract, total
from mosaic_grid.cpu.steps import Reshape, Slice, Step

_Item = TypeVar("_Item")


def slice_of_reshape(before: Shape, after: Shape, box: Slice, *, covering: bool) -> list[Step] | None:
    """Steps that begin with a slice of a tensor of shape `before` and have the effect of reshaping it and slicing.

    `None` where that slice would be the whole tensor, or, unless it may be a `covering` one, has other elements too.
    """
    if 0 in before:
        return None
    parts = [
        _part(before[i:j], after[k:m], box.offsets[k:m], box.sizes[k:m]) for (i, j), (k, m) in _runs(before, after)
    ]
    outer = Slice(_joined(part.outer.offsets for part in parts), _joined(part.outer.sizes for part in parts))
    if outer.sizes == tuple(before) or (not covering and math.prod(outer.sizes) > math.prod(box.sizes)):
        return None
    rows = Slice(_joined(part.rows.offsets for part in parts), _joined(part.rows.sizes for part in parts))
    inner = Slice(_joined(part.inner.offsets for part in parts), _joined(part.inner.sizes for part in parts))
    covered = _joined(part.covered for part in parts)
    middle = _joined(part.middle for part in parts)
    return [outer, Reshape(covered), rows, Reshape(middle), inner]


def rows_for(start: Index, length: int, size: int, count: int) -> tuple[Index, int, Index]:
    """The rows of `size` elements each, of which there are `count`, that cover `length` elements from `start` on.

    Returns the first row, how many there are, and where in them the elements start.
    """
    if isinstance(start, int):
        first = start // size
        return first, min(-(-(start % size + length) // size), count), start % size
    step = math.gcd(alignment(start), size)
    number = -(-(size - step + length) // size)
    if number >= count:
        return 0, count, start
    row = divide(start, size)
    if step == size or number == 1:
        return row, number, 0 if step == size else remainder(start, size)
    row = min_index(row, count - number)
    return row, number, subtract(start, multiply_index(row, size))


@dataclasses.dataclass(frozen=True)
class _Part:
    """What becomes of the box in one run of dimensions.

    `outer` is a slice of the dimensions before the reshape, which then become `covered`; of these `rows` is taken and
    becomes `middle`; and of that `inner`.
    """

    outer: Slice
    covered: tuple[int, ...]
    rows: Slice
    middle: tuple[int, ...]
    inner: Slice


def _part(before: Shape, after: Shape, offsets: Sequence[Index], sizes: Shape) -> _Part:
    places = [0 if size == whole else offset for offset, size, whole in zip(offsets, sizes, after, strict=True)]
    there, here = ([axis for axis, size in enumerate(shape) if size != 1] for shape in (before, after))
    if len(there) <= 1 and len(here) <= 1:  # the dimension itself, or none
        outer_offsets: list[Index] = [0] * len(before)
        outer_sizes = [1] * len(before)
        for axis, other in zip(there, here, strict=True):
            outer_offsets[axis], outer_sizes[axis] = places[other], sizes[other]
        outer = Slice(tuple(outer_offsets), tuple(outer_sizes))
        return _Part(outer, tuple(sizes), _whole(sizes), tuple(sizes), _whole(sizes))
    # contiguous are single elements, then one range, then whole dimensions
    range_axis = next((axis for axis, size in enumerate(sizes) if size != 1), len(sizes) - 1)
    strides = [math.prod(after[axis + 1 :]) for axis in range(len(after))]
    start = total(multiply_index(places[axis], strides[axis]) for axis in range(range_axis + 1))
    length = sizes[range_axis] * strides[range_axis]
    outer_offsets, outer_sizes, rest = _cover(before, start, length)
    outer = Slice(tuple(outer_offsets), tuple(outer_sizes))
    middle = (*sizes[: range_axis + 1], *after[range_axis + 1 :])
    inner = Slice((*[0] * (range_axis + 1), *places[range_axis + 1 :]), tuple(sizes))
    elements = math.prod(outer_sizes)
    if elements == length:
        return _Part(outer, middle, _whole(middle), middle, inner)
    return _Part(outer, (elements,), Slice((rest,), (length,)), middle, inner)


def _cover(shape: Shape, start: Index, length: int) -> tuple[list[Index], list[int], Index]:
    """A box of `shape` that is contiguous and holds `length` elements from `start` on; and where in it they start."""
    if len(shape) == 1:
        return [start], [length], 0
    first, number, rest = rows_for(start, length, math.prod(shape[1:]), shape[0])
    if number == 1:
        offsets, sizes, rest = _cover(shape[1:], rest, length)
        return [first, *offsets], [1, *sizes], rest
    return [first, *[0] * (len(shape) - 1)], [number, *shape[1:]], rest


def _runs(before: Shape, after: Shape) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """The shortest runs of dimensions that hold the same elements before and after a reshape, as half-open ranges."""
    i = k = 0
    while i < len(before) or k < len(after):
        j, m = min(i + 1, len(before)), min(k + 1, len(after))
        while (left := math.prod(before[i:j])) != (right := math.prod(after[k:m])):
            if left < right:
                j += 1
            else:
                m += 1
        yield (i, j), (k, m)
        i, k = j, m


def _whole(shape: Shape) -> Slice:
    return Slice((0,) * len(shape), tuple(shape))


def _joined(parts: Iterator[tuple[_Item, ...]]) -> tuple[_Item, ...]:
    return tuple(item for part in parts for item in part)
