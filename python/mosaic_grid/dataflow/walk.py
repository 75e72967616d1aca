"""A walk over one step of a kernel, in the order in which its operations run.

Memory is only ever added to what is written, so one walk over a loop's body from the state before the loop answers for
all of its iterations: the first one has the least behind it. Loops of few iterations are walked one by one, with the
values their scalars then have.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.effects import Effect, is_memory
from mosaic_grid.dataflow.events import Event
from mosaic_grid.dataflow.listing import Listing
from mosaic_grid.dataflow.memory import View
from mosaic_grid.dataflow.memory_ops import MEMORY_OPS, unknown
from mosaic_grid.dataflow.scalars import Scalars
from mosaic_grid.dataflow.step import Step, is_scalar
from mosaic_grid.dataflow.step_state import State
from mosaic_grid.ir_types import Value

_MOST_ITERATIONS = 32
_MOST_OPERATIONS = 40_000


class Walk(Step):
    """A step being walked."""

    def __init__(self, scalars: Scalars, state: State, views: dict[Value, View], listing: Listing) -> None:
        super().__init__(scalars, state, views, listing)
        self._walked = 0
        self._ran: set[ir.Block] = set()

    def walk(self, block: ir.Block) -> ir.Operation | None:
        """Runs the operations of a block in order and returns its terminator."""
        lines = self.listing.of(block)
        if block in self._ran:
            self.scalars.forget(lines.computed)
        self._ran.add(block)
        self._walked += len(lines.computed)
        with self.block():
            for event in lines.events:
                self._walked += 1
                if event.effect is Effect.CONTROL:
                    self._control(event)
                else:
                    MEMORY_OPS.get(event.effect, unknown)(self, event)
        return lines.end

    def _control(self, event: Event) -> None:
        op = event.op
        match event.name:
            case _ if any(len(region.blocks) > 1 for region in op.regions):
                unknown(self, event)
            case "scf.if":
                self._branch(op)
            case "scf.for":
                self._counted_loop(op)
            case "scf.while":
                self._open_loop(op)
            case _:
                self._region(op)

    def _branch(self, op: ir.Operation) -> None:
        """`scf.if`: the arm that runs, or both where the condition isn't known."""
        condition = self.scalars.of(op.operands[0])
        arms = [region.blocks[0] if len(region.blocks) else None for region in op.regions]
        known = sym.constant_of(condition)
        if known is not None:
            self._pass_on(op, self._run(arms[0 if known else 1]))
            return
        before, ends, given = self.state, [], []
        for arm, guard in zip(arms, (condition, sym.negation(condition)), strict=True):
            self.state = before.under(guard)
            with self.guarded(guard):
                given.append(self._run(arm))
            ends.append(self.state)
        self.state = before
        self.state.join(condition, *ends)
        self.scalars.forget(op.results)
        self.hide(op.results)
        for result, then, other in zip(op.results, given[0], given[1], strict=False):
            if is_scalar(result):
                self.scalars.choose(result, condition, then, other)

    def _counted_loop(self, op: ir.Operation) -> None:
        """`scf.for`."""
        low, high, step = (self.scalars.of(operand) for operand in list(op.operands)[:3])
        body = op.regions[0].blocks[0]
        bounds = [sym.constant_of(expr) for expr in (low, high, step)]
        match bounds:
            case [int(first), int(end), int(by)] if by > 0 and self._is_short(len(range(first, end, by))):
                self._unrolled(op, body, range(first, end, by))
                return
        runs = sym.comparison("<", low, high)
        if sym.constant_of(runs) == 0:
            self.scalars.forget(op.results)
            return
        index = body.arguments[0]
        values = sym.Range(sym.range_of(low).lo, max(sym.range_of(low).lo, sym.range_of(high).hi - 1))
        self.scalars.set({index: self.scalars.unknown(index.type, values if sym.constant_of(step) != 0 else None)})
        self.scalars.forget(list(body.arguments)[1:])
        self._once_for_all(runs, body)
        self.scalars.forget(op.results)

    def _open_loop(self, op: ir.Operation) -> None:
        """`scf.while`: the first region runs at least once, the second as long as the first says so."""
        test, body = (region.blocks[0] for region in op.regions)
        before = self.state.copy()
        self.scalars.forget(test.arguments)
        end = self.walk(test)
        goes_on = self.scalars.of(end.operands[0]) if end is not None else self.scalars.unknown(op.results[0].type)
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
        self.scalars.forget(op.results)

    def _region(self, op: ir.Operation) -> None:
        """Regions that run once."""
        for region in op.regions:
            self._pass_on(op, self._run(region.blocks[0]))

    def _run(self, block: ir.Block | None) -> list[Value]:
        """Runs a block and returns what it yields."""
        end = self.walk(block) if block is not None else None
        return list(end.operands) if end is not None else []

    def _pass_on(self, op: ir.Operation, given: Sequence[Value]) -> None:
        self.hide(op.results)
        for result, value in zip(op.results, given, strict=False):
            if is_memory(result):
                view = self.view(value)
                if view is not None:
                    self.show(result, view)
            else:
                self.scalars.set({result: self.scalars.of(value)})

    def _is_short(self, iterations: int) -> bool:
        return iterations <= _MOST_ITERATIONS and self._walked < _MOST_OPERATIONS

    def _unrolled(self, op: ir.Operation, body: ir.Block, indices: range) -> None:
        carried = [self.scalars.of(value) for value in list(op.operands)[3:]]
        for index in indices:
            values = (sym.constant(index), *carried)
            self.scalars.set(dict(zip(body.arguments, values, strict=True)))
            carried = [self.scalars.of(value) for value in self._run(body)]
        self.scalars.set(dict(zip(op.results, carried, strict=True)))

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
