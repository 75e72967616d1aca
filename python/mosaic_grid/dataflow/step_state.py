"""What is known at one point of a step: which memory the step has written, and which copies it has under way.

An entry may hold under conditions only: `guards` are truth values that must all be 1. Entering a branch makes its guard
true, leaving it makes the guard a condition again, so what is written under a condition is known to be written wherever
the same condition holds.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Iterable
from typing import NamedTuple

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.memory import Box, Root, View, covered, disjoint

Guards = frozenset[sym.Expr]
NO_GUARDS: Guards = frozenset()
# a step that writes more boxes of one buffer than this one by one is not followed further
_MOST_WRITES = 128


class Written(NamedTuple):
    """A box that the step has written."""

    box: Box
    guards: Guards = NO_GUARDS


@dataclasses.dataclass(frozen=True)
class Transfer:
    """A copy, or an amount signalled, that nobody has waited for: `part` is the semaphore's place in its array."""

    semaphore: Root
    part: Box | None
    amount: tuple[object, ...]
    target: View | None
    op: ir.Operation
    number: int
    guards: Guards = NO_GUARDS

    @functools.cached_property
    def account(self) -> tuple[object, ...]:
        """What has to be equal for the counts to match."""
        return self.semaphore, self.part, self.amount, self.guards


def _holds(written: Iterable[Written]) -> bool:
    return not any(each.guards for each in written)


@dataclasses.dataclass
class State:
    """The entries; writes only ever add up, transfers come and go."""

    writes: dict[Root, tuple[Written, ...]] = dataclasses.field(default_factory=dict[Root, tuple[Written, ...]])
    transfers: tuple[Transfer, ...] = ()
    waited: tuple[Transfer, ...] = ()

    def copy(self) -> State:
        """An independent copy."""
        return State(dict(self.writes), self.transfers, self.waited)

    def boxes(self, root: Root) -> list[Box]:
        """The boxes of a buffer that are written for sure."""
        return [written.box for written in self.writes.get(root, ()) if not written.guards]

    def has(self, root: Root, box: Box | None) -> bool:
        """Whether a part of a buffer is written for sure."""
        boxes = self.boxes(root)
        return bool(boxes) and (box in boxes or covered(box, boxes, root.shape))

    def write(self, root: Root, box: Box) -> None:
        """Adds a box."""
        known = self.writes.get(root, ())
        if len(known) < _MOST_WRITES and not self.has(root, box):
            self.writes[root] = (*known, Written(box))

    def start(self, transfer: Transfer) -> None:
        """Adds a transfer that is under way."""
        self.transfers = (*self.transfers, transfer)

    def wait(self, semaphore: Root, part: Box | None, amount: tuple[object, ...]) -> bool:
        """Takes the transfer that is waited for; False where the step may not have started it.

        Its target is written once no other copy that may signal the same semaphore is under way: the hardware counts
        bytes, not copies.
        """
        wanted = (semaphore, part, amount, NO_GUARDS)
        found = next((t for t in self.transfers if part is not None and t.account == wanted), None)
        if found is None:
            return False
        self.transfers = tuple(t for t in self.transfers if t is not found)
        self.waited = (*self.waited, found)
        if any(t.semaphore == semaphore and not disjoint(t.part, part) for t in self.transfers):
            return True
        counted = [t for t in self.waited if (t.semaphore, t.part) == (semaphore, part)]
        for target in (t.target for t in counted):
            if target is not None and target.box is not None:
                self.write(target.root, target.box)
        self.waited = tuple(t for t in self.waited if t not in counted)
        return True

    def under(self, guard: sym.Expr) -> State:
        """The state where a truth value is known to be 1."""
        opposite = sym.negation(guard)
        writes = {
            root: known
            if _holds(known)
            else tuple(
                w if guard not in w.guards else Written(w.box, w.guards - {guard})
                for w in known
                if opposite not in w.guards
            )
            for root, known in self.writes.items()
        }
        transfers = tuple(
            t if guard not in t.guards else dataclasses.replace(t, guards=t.guards - {guard})
            for t in self.transfers
            if opposite not in t.guards
        )
        return State(writes, transfers, self.waited)

    def join(self, guard: sym.Expr, then: State, other: State) -> None:
        """Becomes the state after a branch on `guard`, whose arms started from `self.under(...)`."""
        opposite = sym.negation(guard)
        for root in {*then.writes, *other.writes}:
            self._join_writes(root, guard, then, other)
        before = {t.number: t for t in self.transfers}
        ends = ({t.number: t for t in then.transfers}, {t.number: t for t in other.transfers})
        joined: list[Transfer] = []
        for number in sorted({*ends[0], *ends[1]}):
            first, second = (end.get(number) for end in ends)
            if number in before and first and second:
                joined.append(before[number])
            elif first and second is None:
                joined.append(dataclasses.replace(first, guards=first.guards | {guard}))
            elif second and first is None:
                joined.append(dataclasses.replace(second, guards=second.guards | {opposite}))
        self.transfers = tuple(joined)
        numbers = {t.number for t in then.waited} & {t.number for t in other.waited}
        self.waited = tuple(t for t in then.waited if t.number in numbers)

    def _join_writes(self, root: Root, guard: sym.Expr, then: State, other: State) -> None:
        arms = ((then, other, guard), (other, then, sym.negation(guard)))
        for arm, opposite_arm, condition in arms:
            base = {w.box for w in self.writes.get(root, ()) if not w.guards}
            for written in arm.writes.get(root, ()):
                if written.box in base:
                    continue
                if not written.guards and opposite_arm.has(root, written.box):
                    self.write(root, written.box)
                    continue
                known = self.writes.get(root, ())
                guards = written.guards | {condition}
                already = any(w.box == written.box and w.guards <= guards for w in known)
                if not already and len(known) < _MOST_WRITES:
                    self.writes[root] = (*known, Written(written.box, guards))

    def unbalanced(self, earlier: State) -> list[Transfer]:
        """The transfers by which this state's counts differ from those of an earlier one."""
        if self.transfers is earlier.transfers:
            return []
        now, then = (collections.Counter(t.account for t in state.transfers) for state in (self, earlier))
        differing = {account for account in {*now, *then} if now[account] != then[account]}
        return [t for t in (*self.transfers, *earlier.transfers) if t.account in differing]
