"""What is noted while a step is walked: reads that may find memory unwritten, writes, copies left under way."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.events import Event
from mosaic_grid.dataflow.kernel_ops import scalar_type
from mosaic_grid.dataflow.listing import Listing
from mosaic_grid.dataflow.memory import Box, Root, View, whole
from mosaic_grid.dataflow.scalars import Scalars
from mosaic_grid.dataflow.step_state import State, Transfer
from mosaic_grid.dataflow.uses import is_dead
from mosaic_grid.ir_types import Value


class Access(NamedTuple):
    """A read or a write; `guards` are the undecided conditions around it (a loop that may not run is one)."""

    op: ir.Operation
    root: Root
    box: Box | None
    guards: tuple[sym.Expr, ...]


Undecided: TypeAlias = tuple[Access, tuple[Access, ...], bool]
"""A read of what isn't written, the writes before it, and whether a selection may show that nobody uses it."""


@dataclasses.dataclass
class Findings:
    """What walks over a step found.

    `uncovered` pairs a read with what the step had written conditionally of that buffer before it.
    """

    uncovered: list[tuple[Access, tuple[Access, ...]]] = dataclasses.field(default_factory=list)
    reads: list[Access] = dataclasses.field(default_factory=list[Access])
    writes: list[Access] = dataclasses.field(default_factory=list[Access])
    unmatched: list[tuple[Root, ir.Operation]] = dataclasses.field(default_factory=list)
    unknown: list[ir.Operation] = dataclasses.field(default_factory=list[ir.Operation])


class Step:
    """The notes of one walk; `state` is what is known at the point that the walk has reached."""

    def __init__(self, scalars: Scalars, state: State, views: dict[Value, View], listing: Listing) -> None:
        self.listing = listing
        self.scalars = scalars
        self.state = state
        self.found = Findings()
        self._views = views
        self._guards: tuple[sym.Expr, ...] = ()
        self._writes: dict[Root, list[Access]] = {}
        self._undecided: list[Undecided] = []
        self._numbers = 0

    def finish(self) -> None:
        """Notes what is still under way where the step ends."""
        self.found.unmatched += [(transfer.semaphore, transfer.op) for transfer in self.state.transfers]

    def view(self, value: Value) -> View | None:
        """The view behind a memref; None where it can't be told what it shows."""
        return self._views.get(value)

    def show(self, value: Value, view: View) -> None:
        """Says what a memref shows."""
        self._views[value] = view

    def hide(self, values: Iterable[Value]) -> None:
        """Forgets what values show: those that an execution of an operation gives anew."""
        for value in values:
            self._views.pop(value, None)

    def read(self, event: Event, root: Root, box: Box | None) -> None:
        """Notes a read that isn't dead, and whether the step has written all of it."""
        access = Access(event.op, root, box, self._guards)
        self.found.reads.append(access)
        if not self.state.has(root, box):
            before = tuple(self._writes.get(root, ()))
            # a store that reads has no results, so nothing could show it dead
            if event.results:
                self._undecided.append((access, before, self.listing.is_dead(event) is None))
            else:
                self.found.uncovered.append((access, before))

    def write(self, event: Event, root: Root, box: Box | None, covers: bool) -> None:
        """Notes a write; one that `covers` leaves no element of the box as it was."""
        access = Access(event.op, root, box, self._guards)
        self.found.writes.append(access)
        self._writes.setdefault(root, []).append(access)
        if covers and box is not None:
            self.state.write(root, box)

    def start(self, op: ir.Operation, semaphore: View, amount: tuple[object, ...], target: View | None) -> None:
        """Notes a copy, or a signal, that will be waited for."""
        self._numbers += 1
        self.state.start(Transfer(semaphore.root, semaphore.box, amount, target, op, self._numbers))

    def wait(self, op: ir.Operation, semaphore: View, amount: tuple[object, ...]) -> None:
        """Notes a wait."""
        if not self.state.wait(semaphore.root, semaphore.box, amount):
            self.found.unmatched.append((semaphore.root, op))

    def private(self, value: Value) -> None:
        """Gives the result of an allocation a buffer of its own."""
        self._numbers += 1
        shape = tuple(value.type.shape) if isinstance(value.type, ir.MemRefType) else ()
        self.show(value, whole(Root(None, shape, self._numbers)))

    def _known(self, value: Value) -> int | None:
        return sym.constant_of(self.scalars.of(value)) if is_scalar(value) else None

    @contextlib.contextmanager
    def guarded(self, guard: sym.Expr) -> Iterator[None]:
        """Notes what is inside as happening only where `guard` is 1."""
        outside = self._guards
        self._guards = (*outside, guard)
        yield
        self._guards = outside

    def enter_block(self) -> list[Undecided]:
        """Begins one run of a block; returns what is undecided of the one around it, for `leave_block`."""
        outside, self._undecided = self._undecided, []
        return outside

    def leave_block(self, outside: list[Undecided]) -> None:
        """At the end of a block its scalars are known, and with them which loads are selected away."""
        for access, before, chosen in self._undecided:
            if not chosen or not is_dead(access.op, self._known):
                self.found.uncovered.append((access, before))
        self._undecided = outside

    def differ(self, transfers: list[Transfer]) -> None:
        """Notes copies, or waits, of which a loop's body has one too many."""
        self.found.unmatched += [(transfer.semaphore, transfer.op) for transfer in transfers]


def is_scalar(value: Value) -> bool:
    """Whether a value is a single integer."""
    return scalar_type(value.type) is not None
