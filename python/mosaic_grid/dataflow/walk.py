"""A walk over one step of a kernel, in the order in which its operations run.

Memory is only ever added to what is written, so one walk over a loop's body from the state before the loop answers for
all of its iterations: the first one has the least behind it. Loops of few iterations are walked one by one, with the
values their scalars then have.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import TypeAlias

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.effects import Effect
from mosaic_grid.dataflow.events import Event
from mosaic_grid.dataflow.listing import Listing
from mosaic_grid.dataflow.memory import View
from mosaic_grid.dataflow.memory_ops import MEMORY_OPS, unknown
from mosaic_grid.dataflow.scalars import Scalars
from mosaic_grid.dataflow.step import Step
from mosaic_grid.dataflow.step_state import State
from mosaic_grid.ir_types import Value

_MOST_ITERATIONS = 32
_MOST_OPERATIONS = 40_000


_Blocks: TypeAlias = tuple[ir.Block | None, ...]
"""The blocks of an operation's regions, None for an empty region."""


class Walk(Step):
    """A step being walked."""

    def __init__(self, scalars: Scalars, state: State, views: dict[Value, View], listing: Listing) -> None:
        super().__init__(scalars, state, views, listing)
        self._events = 0
        self._ran: set[ir.Block] = set()

    def walk(self, block: ir.Block) -> tuple[Value, ...]:
        """Runs the operations of a block in order and returns what its terminator passes on."""
        lines = self.listing.of(block)
        if block in self._ran:
            self.scalars.forget_block(block)
        self._ran.add(block)
        outside = self.enter_block()
        for event in lines.events:
            self._events += 1
            if event.effect is Effect.CONTROL:
                self._control(event)
            else:
                MEMORY_OPS.get(event.effect, unknown)(self, event)
        self.leave_block(outside)
        return lines.given

    @property
    def _walked(self) -> int:
        """How much work the walk was so far, in operations."""
        return self._events + self.scalars.evaluated

    def _control(self, event: Event) -> None:
        blocks = event.blocks
        match event.name:
            case _ if blocks is None:
                unknown(self, event)
            case "scf.if":
                self._branch(event, blocks)
            case "scf.for":
                self._counted_loop(event, blocks)
            case "scf.while":
                self._open_loop(event, blocks)
            case _:
                self._region(event, blocks)

    def _branch(self, event: Event, arms: _Blocks) -> None:
        """`scf.if`: the arm that runs, or both where the condition isn't known."""
        condition = self.scalars.of(event.operands[0])
        known = sym.constant_of(condition)
        if known is not None:
            self._pass_on(event, self._run(arms[0 if known else 1]))
            return
        before, ends, given = self.state, [], []
        for arm, guard in zip(arms, (condition, sym.negation(condition)), strict=True):
            self.state = before.under(guard)
            with self.guarded(guard):
                given.append(self._run(arm))
            ends.append(self.state)
        self.state = before
        self.state.join(condition, *ends)
        self.scalars.forget(event.results)
        self.hide(event.results)
        for k, (result, then, other) in enumerate(zip(event.results, given[0], given[1], strict=False)):
            if k in event.scalars:
                self.scalars.choose(result, condition, then, other)

    def _counted_loop(self, event: Event, blocks: _Blocks) -> None:
        """`scf.for`."""
        low, high, step = (self.scalars.of(operand) for operand in event.operands[:3])
        (body,) = blocks
        assert body is not None  # a loop has a body
        bounds = [sym.constant_of(expr) for expr in (low, high, step)]
        match bounds:
            case [int(first), int(end), int(by)] if by > 0 and self._is_short(len(range(first, end, by))):
                self._unrolled(event, body, range(first, end, by))
                return
        runs = sym.comparison("<", low, high)
        if sym.constant_of(runs) == 0:
            self.scalars.forget(event.results)
            return
        index = body.arguments[0]
        values = sym.Range(sym.range_of(low).lo, max(sym.range_of(low).lo, sym.range_of(high).hi - 1))
        self.scalars.set({index: self.scalars.unknown(index.type, values if sym.constant_of(step) != 0 else None)})
        self.scalars.forget(list(body.arguments)[1:])
        self._once_for_all(runs, body)
        self.scalars.forget(event.results)

    def _open_loop(self, event: Event, blocks: _Blocks) -> None:
        """`scf.while`: the first region runs at least once, the second as long as the first says so."""
        test, body = blocks
        assert test is not None
        assert body is not None  # a loop has both
        before = self.state.copy()
        self.scalars.forget(test.arguments)
        goes_on = self.scalars.of(self.walk(test)[0])
        self.scalars.forget(body.arguments)
        if sym.constant_of(goes_on) != 0:
            after_test = self.state
            self.state = after_test.under(goes_on)
            with self.guarded(goes_on):
                self._run(body)
            self.differ(self.state.unbalanced(before))
            # the transfers of the last test stay: it is the one that ends the loop
            ended = after_test.under(sym.negation(goes_on))
            after_test.join(goes_on, State(self.state.writes, ended.transfers, ()), ended)
            after_test.transfers = ended.transfers
            self.state = after_test
        self.scalars.forget(event.results)

    def _region(self, event: Event, blocks: _Blocks) -> None:
        """Regions that run once."""
        for block in blocks:
            self._pass_on(event, self._run(block))

    def _run(self, block: ir.Block | None) -> tuple[Value, ...]:
        """Runs a block and returns what it yields."""
        return self.walk(block) if block is not None else ()

    def _pass_on(self, event: Event, given: Sequence[Value]) -> None:
        self.hide(event.results)
        for k, (result, value) in enumerate(zip(event.results, given, strict=False)):
            if k in event.buffers:
                view = self.view(value)
                if view is not None:
                    self.show(result, view)
            elif k in event.scalars:
                self.scalars.set({result: self.scalars.of(value)})

    def _is_short(self, iterations: int) -> bool:
        return iterations <= _MOST_ITERATIONS and self._walked < _MOST_OPERATIONS

    def _unrolled(self, event: Event, body: ir.Block, indices: range) -> None:
        index, *arguments = body.arguments
        # the others are vectors, of which nothing is known
        numbers = sorted(event.scalars)
        values = event.operands[3:]
        for number in indices:
            carried: dict[Value, sym.Expr] = {arguments[k]: self.scalars.of(values[k]) for k in numbers}
            self.scalars.set({index: sym.constant(number), **carried})
            values = self._run(body)
        self.scalars.set({event.results[k]: self.scalars.of(values[k]) for k in numbers})

    def _once_for_all(self, runs: sym.Expr, body: ir.Block) -> None:
        """One walk for every iteration of a loop that has some where `runs` is 1."""
        before = self.state
        start = before.under(runs)
        self.state = start.copy()
        with contextlib.nullcontext() if sym.constant_of(runs) else self.guarded(runs):
            self._run(body)
        self.differ(self.state.unbalanced(start))
        # as many are under way as before, but they need not be the same
        self.state.transfers = tuple(dataclasses.replace(t, target=None) for t in start.transfers)
        if sym.constant_of(runs) is None:
            after, self.state = self.state, before
            self.state.join(runs, after, before.under(sym.negation(runs)))
