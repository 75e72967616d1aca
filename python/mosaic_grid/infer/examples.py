"""Two steps of which one surely finds what the other left, where that can't be said of all steps alike."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TypeAlias

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.freshness import walk_step
from mosaic_grid.dataflow.listing import Listing
from mosaic_grid.dataflow.memory import Box, Root, View
from mosaic_grid.dataflow.scalars import Scalars
from mosaic_grid.dataflow.step import Access
from mosaic_grid.dataflow.step_state import State
from mosaic_grid.dataflow.uses import may_be_chosen_away
from mosaic_grid.dataflow.walk import Walk
from mosaic_grid.ir_types import Value
from mosaic_grid.legality.sharing import listed
from mosaic_grid.objections import Objection
from mosaic_grid.program import Kernel

_MOST_OPERATIONS = 8_000
"""How many operations of one kernel are followed for examples, in all."""

Step: TypeAlias = tuple[int, ...]


class _Sure(Walk):
    """A walk that notes what the step leaves to others, and waits for what others left, in any case."""

    def __init__(self, scalars: Scalars, state: State, views: dict[Value, View], listing: Listing) -> None:
        super().__init__(scalars, state, views, listing)
        self.left: list[tuple[Root, Box | None]] = []
        self.awaited: list[tuple[Root, Box | None]] = []

    @property
    def operations(self) -> int:
        """How many operations were followed."""
        return self._walked

    def finish(self) -> None:
        """Notes the copies that are under way."""
        super().finish()
        self.left = [(each.semaphore, each.part) for each in self.state.transfers if not each.guards]

    def wait(self, op: ir.Operation, semaphore: View, amount: tuple[object, ...]) -> None:
        """Notes a wait for what the step didn't start."""
        before = len(self.found.unmatched)
        super().wait(op, semaphore, amount)
        if len(self.found.unmatched) > before and not self._guards:
            self.awaited.append((semaphore.root, semaphore.box))


def with_example(kernel: Kernel, axis: int, objection: Objection) -> Objection:
    """The objection with two steps that surely show it and differ in the dimension, if they are found at once."""
    for left, found in _pairs(kernel, axis):
        before, after = _walked(kernel, left), _walked(kernel, found)
        if before is None or after is None:
            break
        if _shows(before, after, objection):
            reason = f"{objection.reason}: step {listed(found)} finds what step {listed(left)} left"
            return dataclasses.replace(objection, reason=reason, steps=(left, found))
    return objection


def _pairs(kernel: Kernel, axis: int) -> Iterator[tuple[Step, Step]]:
    """Steps at the end, and at the beginning, of an index of the dimension, and at the beginning of one after it."""
    outer, inner = (0,) * axis, kernel.grid[axis + 1 :]
    first, last = (0,) * len(inner), tuple((each.bound or 1) - 1 for each in inner)
    count = kernel.grid[axis].bound or 3
    for one, other in ((0, 1), (1, 2), (0, 2)):
        if other < count:
            yield from (((*outer, one, *end), (*outer, other, *first)) for end in dict.fromkeys((last, first)))


def _walked(kernel: Kernel, step: Step) -> _Sure | None:
    """The walk over a step; None where the kernel is too large for one more."""
    walks: dict[Step, _Sure] = kernel.memo.setdefault(with_example, {})
    if step not in walks:
        if sum(walk.operations for walk in walks.values()) > _MOST_OPERATIONS:
            return None
        walks[step] = walk_step(kernel, State(), dict(enumerate(step)), _Sure)
    return walks[step]


def _shows(left: _Sure, found: _Sure, objection: Objection) -> bool:
    """Whether the second step surely reads, or waits for, what the first one wrote or started."""
    reads = [access for access, _ in found.found.uncovered if access.op.location == objection.location]
    if any(_surely(read) and _meets(write, read) for read in reads for write in left.found.writes):
        return True
    if not any(op.location == objection.location for _, op in (*left.found.unmatched, *found.found.unmatched)):
        return False
    return any(root == other and _overlap(part, place) for root, part in left.left for other, place in found.awaited)


def _surely(access: Access) -> bool:
    return not access.guards and not may_be_chosen_away(access.op)


def _meets(write: Access, read: Access) -> bool:
    """Whether a write surely runs, and surely is of an element that is read."""
    return write.root == read.root and not write.guards and _overlap(write.box, read.box)


def _overlap(one: Box | None, other: Box | None) -> bool:
    """Whether two boxes of one buffer surely share an element."""
    if one is None or other is None:
        return False
    for a, b in zip(one, other, strict=True):
        ends = [sym.constant_of(end) for end in (a.start, sym.add(a.start, a.size), b.start, sym.add(b.start, b.size))]
        match ends:
            case [int(start), int(end), int(first), int(last)] if start < last and first < end:
                continue
        return False
    return True
