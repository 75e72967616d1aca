"""What semaphores still count when their memory ends: copies and signals that nobody waits for.

Beside each array of semaphores it is kept which operation added to each of them last, and at which step of the grid.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.build import Index
from mosaic_grid.cpu.faults import Faults, What
from mosaic_grid.cpu.lowering import Lowering
from mosaic_grid.cpu.memory import steps_of
from mosaic_grid.cpu.roots import Kind, Root
from mosaic_grid.cpu.steps import Slice
from mosaic_grid.cpu.views import View
from mosaic_grid.dataflow.effects import EFFECTS, Effect


@dataclasses.dataclass(frozen=True)
class _Mark:
    """For each semaphore the number of the operation, from 1, and the grid indices; and the operations by number."""

    root: Root
    operations: list[ir.Operation]


class Unwaited:
    """The copies of one launch that are under way, and the signals."""

    def __init__(self, low: Lowering, faults: Faults) -> None:
        self._low = low
        self._faults = faults
        self._marks: dict[Root, _Mark] = {}

    def start(self, semaphores: Root) -> None:
        """The semaphores count nothing yet."""
        memory, width = self._low.memory, 1 + self._faults.rank
        if semaphores not in self._marks:
            root = Root(f"who adds to {semaphores.name}", (*semaphores.shape, width), build.i32_type(), Kind.STATE)
            self._marks[semaphores] = _Mark(root, [])
            memory.shadows[semaphores] = (root,)
        mark = self._marks[semaphores].root
        memory.state[mark] = build.constant(0, mark.shape, mark.element)

    def added(self, op: ir.Operation, semaphore: View) -> None:
        """An operation starts a copy that the semaphore, a view of one element, counts; or it signals the semaphore."""
        mark = self._marks.get(semaphore.root)
        if mark is None:
            return
        if op not in mark.operations:
            mark.operations.append(op)
        number = build.i32(1 + mark.operations.index(op))
        row = build.concatenate([build.reshape(each, (1,)) for each in (number, *self._low.indices)], 0)
        offsets = offsets_of(semaphore)
        part = View(mark.root).slice([*offsets, 0], [*[1] * len(offsets), mark.root.shape[-1]])
        self._low.memory.write(part, build.reshape(row, part.shape))

    def end(self, semaphores: Root) -> None:
        """The memory of these semaphores ends here: what they still count is noted where it was added."""
        mark = self._marks.get(semaphores)
        if mark is None:
            return
        state, number, width = self._low.memory.state, math.prod(semaphores.shape), mark.root.shape[-1]
        counts, marks = build.reshape(state[semaphores], (number,)), build.reshape(state[mark.root], (number, width))
        counting = build.compare(counts, build.zeros_like(counts), "NE")
        starter = build.reshape(build.slice_(marks, [0, 0], [number, 1]), (number,))
        for index, op in enumerate(mark.operations):
            own = build.compare(starter, build.constant(1 + index, (number,), build.i32_type()), "EQ")
            nowhere = build.constant(number, (number,), build.i32_type())
            places = build.select(hlo.and_(counting, own), build.iota((number,), 0), nowhere)
            place = build.reduce(places, [0], build.i32(number), hlo.minimum)
            row = build.reshape(build.dynamic_slice(marks, [place, 0], [1, width]), (width,))
            indices = [build.reshape(build.slice_(row, [1 + axis], [1]), ()) for axis in range(width - 1)]
            count = build.reshape(build.dynamic_slice(counts, [place], [1]), ())
            predicate = build.compare(place, build.i32(number), "LT")
            what = What.SIGNALLED if EFFECTS.get(op.name) is Effect.SIGNAL else What.UNWAITED
            self._faults.note(self._low, predicate, what, op, semaphores, details=[count], indices=indices)


def offsets_of(semaphore: View) -> Sequence[Index]:
    """Where in its array of semaphores a view of one of them is."""
    steps = steps_of(semaphore)
    return next((step.offsets for step in steps if isinstance(step, Slice)), (0,) * len(semaphore.root.shape))
