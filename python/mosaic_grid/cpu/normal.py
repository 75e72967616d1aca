"""The normal form of a view's steps: slices first.

What a read or write costs is the size of the first slice: what comes before it is done to the whole root. A bit cast of
it is a copy, and a reshape isn't. So each slice is moved towards the root across the reshapes and bit casts before it:
as it is if it can be, and where a slice or a bit cast comes before them also if it grows by some rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeVar

from jaxlib.mlir import ir

from mosaic_grid.cpu.bits import packed_axis, width_of
from mosaic_grid.cpu.build import Index, add_index, multiply_index
from mosaic_grid.cpu.reshapes import rows_for, slice_of_reshape
from mosaic_grid.cpu.steps import Bitcast, Reshape, Slice, Step

_Item = TypeVar("_Item")
_State: TypeAlias = tuple[tuple[int, ...], ir.Type]


def normalised(shape: Sequence[int], element: ir.Type, steps: Sequence[Step]) -> list[Step]:
    """Steps of the same effect on a tensor of this shape and type, of which the slices come as early as they can.

    It begins with the last slice, which is what is read or written in the end: only after it has been joined with those
    before it are their sizes known.
    """
    result: list[Step] = []
    states = _states((tuple(shape), element), steps)
    for number, step in reversed(list(enumerate(steps))):
        covering = not all(isinstance(each, Reshape) for each in steps[:number])
        result = _prepended(states[number], step, result, covering)
    kept: list[Step] = []
    for step in result:
        if isinstance(step, Reshape) and kept and isinstance(kept[-1], Reshape):
            kept.pop()
        *_, before = _states((tuple(shape), element), kept)
        if not _is_nothing(before, step):
            kept.append(step)
    return kept


def _prepended(before: _State, step: Step, rest: Sequence[Step], covering: bool) -> list[Step]:
    """The normal form of `step` and then `rest`, which has that form; `covering` lets slices grow."""
    if not rest or not isinstance(box := rest[0], Slice):
        return [step, *rest]
    moved: list[Step] | None
    if isinstance(step, Slice):
        moved = [Slice(tuple(map(add_index, step.offsets, box.offsets)), box.sizes)]
    elif isinstance(step, Reshape):
        moved = slice_of_reshape(before[0], step.shape, box, covering=covering)
    else:
        assert isinstance(step, Bitcast)
        moved = _slice_of_bitcast(before, step, box)
    return [step, *rest] if moved is None else [*moved, *rest[1:]]


def _slice_of_bitcast(before: _State, cast: Bitcast, box: Slice) -> list[Step] | None:
    """A slice of a bit cast as a bit cast of a slice; `None` where that slice would be the whole tensor."""
    shape, element = before
    narrow, wide = width_of(element), width_of(cast.element)
    if narrow == wide:
        return [box, Bitcast(cast.element, box.sizes)]
    axis = packed_axis(shape, cast.shape)
    assert axis is not None, f"{shape} and {cast.shape} don't differ in one dimension"
    place, size = box.offsets[axis], box.sizes[axis]
    rest: Index = 0
    if narrow < wide:
        packing = wide // narrow
        first, number, covered = multiply_index(place, packing), size * packing, size
    else:
        packing = narrow // wide
        first, number, rest = rows_for(place, size, packing, shape[axis])
        covered = number * packing
    outer = Slice(_with(box.offsets, axis, first), _with(box.sizes, axis, number))
    if outer.sizes == shape:
        return None
    middle = _with(box.sizes, axis, covered)
    zeros: tuple[Index, ...] = (0,) * len(middle)
    return [outer, Bitcast(cast.element, middle), Slice(_with(zeros, axis, rest), box.sizes)]


def _states(start: _State, steps: Sequence[Step]) -> list[_State]:
    """Shape and element type before each step, and after the last."""
    states = [start]
    for step in steps:
        states.append((step.shape, step.element if isinstance(step, Bitcast) else states[-1][1]))
    return states


def _is_nothing(before: _State, step: Step) -> bool:
    shape, element = before
    if isinstance(step, Slice):
        return step.sizes == shape  # wherever it begins: it can't begin anywhere else
    return step.shape == shape and not (isinstance(step, Bitcast) and step.element != element)


def _with(items: Sequence[_Item], axis: int, item: _Item) -> tuple[_Item, ...]:
    return (*items[:axis], item, *items[axis + 1 :])
