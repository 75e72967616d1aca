"""Copies under way: memory that is used while a copy still writes it, or written while a copy still reads it.

Beside private memory that copies go to or come from, it is kept for each element which semaphore counts the copy that
writes it, and which the one that reads it, as a number from 1. A wait ends all copies that its semaphore counts,
whichever it names: which of them the hardware has done by then is its own affair. Arrays aren't looked after: only
copies can reach those in HBM.
"""

from __future__ import annotations

import dataclasses
import math

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.build import Index, add_index
from mosaic_grid.cpu.faults import Faults, What
from mosaic_grid.cpu.indices import row_major
from mosaic_grid.cpu.late import elements_of
from mosaic_grid.cpu.lowering import Lowering
from mosaic_grid.cpu.memory import Used
from mosaic_grid.cpu.roots import Kind, Root
from mosaic_grid.cpu.touches import nested, source_of
from mosaic_grid.cpu.unwaited import offsets_of
from mosaic_grid.cpu.views import View
from mosaic_grid.dataflow.effects import EFFECTS, Effect, named
from mosaic_grid.ir_types import Value


@dataclasses.dataclass(frozen=True)
class _Copies:
    """Which copies write each element of a root, and which read it: i32 roots of its shape, 0 where there is none."""

    writing: Root
    reading: Root


class InFlight:
    """The copies under way in one launch of a kernel with this `body`."""

    def __init__(self, low: Lowering, faults: Faults, body: ir.Operation) -> None:
        self._low = low
        self._faults = faults
        self._copies: dict[Root, _Copies] = {}
        self._numbers: dict[Root, int] = {}
        self._following = 1
        self._ends: set[Value] = set()
        for op in nested(body):
            if EFFECTS.get(op.name) is Effect.COPY_START:
                self._ends |= {source_of(end) for end in (named(op, "source"), named(op, "target")) if end is not None}

    def track(self, memref: Value, root: Root) -> None:
        """Begins to look after a root, which `memref` is in the kernel, if copies go to it or come from it."""
        if memref not in self._ends or root.kind not in (Kind.SCRATCH, Kind.WINDOW) or root in self._copies:
            return
        names = (f"what copy writes {root.name}", f"what copy reads {root.name}")
        roots = [Root(name, root.shape, build.i32_type(), Kind.STATE) for name in names]
        self._copies[root] = _Copies(*roots)
        memory = self._low.memory
        memory.shadows[root] = (*memory.shadows.get(root, ()), *roots)
        memory.rewritten.update(roots)
        self.forget(root)

    def forget(self, root: Root) -> None:
        """No copy is under way to or from a root."""
        for shadow in self.state_of(root):
            self._low.memory.state[shadow] = build.constant(0, shadow.shape, shadow.element)

    def state_of(self, root: Root) -> tuple[Root, ...]:
        """The roots that change when a copy of a root starts."""
        copies = self._copies.get(root)
        return (copies.writing, copies.reading) if copies is not None else ()

    def tracks(self, root: Root) -> bool:
        """Whether a root is looked after."""
        return root in self._copies

    def used(self, op: ir.Operation, view: View, part: Used | None, *, writes: bool) -> None:
        """An operation uses a view of known shape, all of it or what `part` makes of the numbers of its elements."""
        where = elements_of(view)
        copies = self._copies.get(view.root)
        if copies is None or where is None or (part is not None and where.shape != view.shape):
            return

        def marked(root: Root) -> Value:
            marks = self._low.memory.read(where.on(root), fenced=False)
            return _any(marks if part is None else part(marks))

        writing = marked(copies.writing)
        reading = marked(copies.reading) if writes else build.i32(0)
        is_writing = build.compare(writing, build.i32(0), "NE")
        other = build.select(is_writing, writing, reading)
        details = [build.convert(is_writing, build.i32_type()), other]
        conflict = build.compare(other, build.i32(0), "NE")
        self._faults.note(self._low, conflict, What.IN_FLIGHT, op, view.root, writes=writes, details=details)

    def started(self, semaphore: View, source: View | None, target: View | None) -> None:
        """A copy is under way until the semaphore is waited for: from the source, to the target, of known shape."""
        for view, number in ((target, 0), (source, 1)):
            where = elements_of(view) if view is not None else None
            if where is not None and where.root in self._copies:
                mark = build.splat(build.as_value(self._number(semaphore)), where.shape)
                self._low.memory.write(where.on(self.state_of(where.root)[number]), mark)

    def waited(self, semaphore: View) -> None:
        """The copies that a semaphore counts are done."""
        state = self._low.memory.state
        for root in self._copies:
            for shadow in self.state_of(root):
                if shadow in state:
                    number = build.splat(build.as_value(self._number(semaphore)), shadow.shape)
                    done = build.compare(state[shadow], number, "EQ")
                    state[shadow] = build.select(done, build.zeros_like(number), state[shadow])

    def semaphore(self, number: int) -> Root:
        """The memory of the semaphore of this number."""
        return max((root for root, first in self._numbers.items() if first <= number), key=self._numbers.__getitem__)

    def _number(self, semaphore: View) -> Index:
        root = semaphore.root
        if root not in self._numbers:
            self._numbers[root] = self._following
            self._following += math.prod(root.shape)
        return add_index(self._numbers[root], row_major(offsets_of(semaphore), root.shape))


def _any(numbers: Value) -> Value:
    axes = range(len(build.shape_of(numbers)))
    return build.reduce(numbers, axes, build.i32(0), hlo.maximum)
