"""`index-map-in-elements`: an index map that multiplies by the block's size, as if it gave elements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from mosaic_grid import symbolic as sym
from mosaic_grid.checks.subject import Subject, location_of_map, name_of
from mosaic_grid.dataflow.kernel import grid_indices, index_map
from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.grid import is_placeholder
from mosaic_grid.legality.sharing import listed
from mosaic_grid.program import Window
from mosaic_grid.summary import LaunchSummary

NAME = "index-map-in-elements"

Step = tuple[int, ...]
Leaf = sym.Param | sym.Load


def index_in_elements(subject: Subject) -> Iterator[Diagnostic]:
    """An error for each window of which a step's block lies wholly outside, and would be inside if divided."""
    bounds = [dimension.bound for dimension in subject.kernel.grid]
    known = [bound for bound in bounds if bound is not None and not is_placeholder(bound)]
    if len(known) < len(bounds) or 0 in known:
        return
    indices = grid_indices(subject.kernel)
    # a dimension of one step has the index 0, and no unknown
    free = {leaf: axis for axis, index in enumerate(indices) for leaf in sym.leaves_of(index)}
    for summary in subject.summaries:
        for number, window in enumerate(subject.windows):
            yield from _of_the_window(subject, summary, number, window, known, free)


def _of_the_window(
    subject: Subject,
    summary: LaunchSummary,
    number: int,
    window: Window,
    bounds: Sequence[int],
    free: Mapping[Leaf, int],
) -> Iterator[Diagnostic]:
    told = summary.windows[number]
    array = told.operand.shape if told.operand else ()
    if window.shape is None or window.kind is not None or len(array) != len(window.shape):
        return
    blocks = index_map(subject.kernel, window) or ()
    if len(blocks) != len(array):
        return
    for axis, (index, block, size) in enumerate(zip(blocks, window.shape, array, strict=True)):
        if size is None or block < 2 or sym.divisor_of(index) % block:
            continue
        leaves = sym.leaves_of(index)
        if not leaves or not set(leaves) <= set(free):
            continue
        most = math.ceil(size / block)
        steps = [step for step in _corners(bounds) if _at(index, free, step) >= most]
        if not steps or sym.range_of(index).lo < 0 or sym.range_of(index).hi // block >= most:
            continue
        step = steps[0]
        at = _at(index, free, step)
        message = (
            f"the index map of {name_of(told)} gives {index} in dimension {axis}, an element "
            f"where a block is wanted: step {listed(step)} asks for block {at} of {most}"
        )
        shapes = f"blocks of {block} cover {size} elements; block {at} would begin at element {at * block}"
        fixed = f"return {sym.floordiv(index, sym.constant(block))} there: Pallas multiplies by the block's size"
        yield subject.say(
            NAME,
            Severity.ERROR,
            message,
            f"{told.role} {told.number}",
            at=location_of_map(subject.kernel, window),
            notes=[note(shapes), note(fixed)],
        )


def _corners(bounds: Sequence[int]) -> Iterator[Step]:
    """The steps that are the second in one dimension and the first in the others, then the corners of the grid."""
    for axis in reversed(range(len(bounds))):
        if bounds[axis] > 1:
            yield tuple(int(other == axis) for other in range(len(bounds)))
    yield from itertools.product(*(sorted({0, bound - 1}) for bound in bounds))


def _at(index: sym.Expr, free: Mapping[Leaf, int], step: Step) -> int:
    return sym.value_of(index, {leaf: step[free[leaf]] for leaf in sym.leaves_of(index)})
