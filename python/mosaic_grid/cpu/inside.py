"""Whether what an operation touches is inside of its memory, and of each part of it that a view was taken of.

Slices of known size are clamped as in `dynamic_slice`, and those of the whole size leave nothing behind: so the steps
are looked at as the kernel says them, before anything is made of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.build import Index
from mosaic_grid.cpu.faults import What
from mosaic_grid.cpu.memory import steps_of
from mosaic_grid.cpu.steps import Slice, Step
from mosaic_grid.cpu.views import View
from mosaic_grid.ir_types import Value

if TYPE_CHECKING:
    from mosaic_grid.cpu.lowering import Lowering


@dataclasses.dataclass(frozen=True)
class _Range:
    """`count` elements from `start` on along a dimension of `size` elements, of the memory or (`viewed`) a view of it.

    None of them has to be there if `count` is 0 or less.
    """

    axis: int
    start: Index
    count: Index
    size: Index
    viewed: bool

    @property
    def details(self) -> list[Index]:
        """The numbers that `What.OUTSIDE` keeps."""
        return [self.axis, self.start, self.count, self.size, int(self.viewed)]

    @property
    def beyond(self) -> Value | None:
        """What holds if the range sticks out; `None` if it is known to be inside."""
        start, count, size = self.start, self.count, self.size
        if isinstance(start, int) and isinstance(count, int) and isinstance(size, int):
            return build.true() if count > 0 and not 0 <= start <= size - count else None
        last = hlo.subtract(build.as_value(size), build.as_value(count))
        value = build.as_value(start)
        out = hlo.or_(build.compare(value, build.i32(0), "LT"), build.compare(value, last, "GT"))
        if isinstance(count, int):
            return out if count > 0 else None
        return hlo.and_(out, build.compare(count, build.i32(0), "GT"))


def check_inside(low: Lowering, op: ir.Operation, *views: View, writes: bool = False) -> None:
    """Notes a fault if one of the parts of memory that `op` reads, or `writes`, sticks out of its memory."""
    if low.faults is None or not low.faults.everything:
        return
    for view in views:
        found = [(beyond, each) for each in _ranges(view) if (beyond := each.beyond) is not None]
        if found:
            outside = build.any_of([beyond for beyond, _ in found])
            details = _first(found)
            low.faults.note(low, outside, What.OUTSIDE, op, view.root, writes=writes, details=details)


def check_indices(
    low: Lowering, op: ir.Operation, view: View, indices: Sequence[Value], mask: Value | None, *, writes: bool = False
) -> None:
    """Notes a fault if an index of a view's first dimensions, where the mask holds, isn't one of its elements."""
    if low.faults is None or not low.faults.everything:
        return
    for axis, index in enumerate(indices):
        size, axes = view.shape[axis], range(len(build.shape_of(index)))
        last = build.constant(size - 1, build.shape_of(index), build.i32_type())
        beyond = hlo.or_(build.compare(index, build.zeros_like(index), "LT"), build.compare(index, last, "GT"))
        beyond = beyond if mask is None else hlo.and_(beyond, mask)
        outside = build.reduce(beyond, axes, build.constant(0, (), build.i1_type()), hlo.or_)
        least = build.i32(int(build.lowest(build.i32_type())))
        inside = build.splat(least, build.shape_of(index))
        worst = build.reduce(build.select(beyond, index, inside), axes, least, hlo.maximum)
        details = _Range(axis, worst, 1, size, bool(view.steps)).details
        low.faults.note(low, outside, What.OUTSIDE, op, view.root, writes=writes, details=details)


def _ranges(view: View) -> list[_Range]:
    """What has to be inside for a view to be: the slices that lead to it.

    A slice of dynamic size is only as large as what a later one takes of it. The two are put together where the size of
    that is known, else what the view has is compared with what room there is.
    """
    slices = [step for step in view.steps if isinstance(step, Slice)]
    if not any(step.extents for step in slices[:-1]):
        return _of_slices(view, view.steps)
    if view.is_static:
        return _of_slices(view, steps_of(view))
    reaches = [(axis, reach) for axis, reach in enumerate(view.reach) if reach is not None]
    rooms = [_Range(axis, 0, reach.extent, build.max_index(reach.room, 0), True) for axis, reach in reaches]
    return [*_of_slices(view, view.steps), *rooms]


def _of_slices(view: View, steps: Sequence[Step]) -> list[_Range]:
    """The ranges of the slices; of all but the last without the dimensions of dynamic size."""
    ranges, shape, viewed = list[_Range](), view.root.shape, False
    *_, last = [None, *(step for step in steps if isinstance(step, Slice))]
    for step in steps:
        if isinstance(step, Slice):
            counts = step.extents or step.sizes
            if step is not last:
                counts = tuple(count if isinstance(count, int) else 0 for count in counts)
            places = zip(step.offsets, counts, shape, strict=True)
            ranges += [_Range(axis, *place, viewed) for axis, place in enumerate(places)]
        viewed = viewed or not isinstance(step, Slice)
        shape = step.shape
    return ranges


def _first(found: Sequence[tuple[Value, _Range]]) -> list[Value]:
    """The numbers of the first range that sticks out; of the last one where none does."""
    *others, (_, last) = found
    details = [build.as_value(number) for number in last.details]
    for beyond, each in reversed(others):
        numbers = [build.as_value(number) for number in each.details]
        details = [build.select(beyond, here, later) for here, later in zip(numbers, details, strict=True)]
    return details
