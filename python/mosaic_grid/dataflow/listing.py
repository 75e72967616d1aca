"""The operations of a kernel's body that say something about a step, read off the IR once for all walks over it.

Those that compute values are passed over by their names, which are most. What computes a scalar that somebody asks for
is looked up then.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Container, Iterable, Iterator

from jaxlib.mlir import ir

from mosaic_grid.dataflow.definitions import Definition, definition_of
from mosaic_grid.dataflow.effects import Effect, effect_of, effect_of_name
from mosaic_grid.dataflow.events import Event
from mosaic_grid.dataflow.uses import Uses
from mosaic_grid.ir_types import Value

_SILENT = frozenset({Effect.PURE, Effect.HINT})


@dataclasses.dataclass(frozen=True, eq=False)
class Lines:
    """What matters of a block: its `events` in order, and its terminator, `end`."""

    events: tuple[Event, ...]
    end: ir.Operation | None

    @functools.cached_property
    def given(self) -> tuple[Value, ...]:
        """What the terminator passes on."""
        return tuple(self.end.operands) if self.end is not None else ()


class Listing:
    """A kernel's body: `events` are all operations in it that aren't pure, a hint or a block's end, in its order."""

    def __init__(self, body: ir.Operation) -> None:
        events: list[Event] = []
        inside: dict[ir.Block, list[Event]] = {}
        ends: dict[ir.Block, ir.Operation] = {}

        def visit(op: ir.Operation) -> ir.WalkResult:
            effect = effect_of_name(op.name) or effect_of(op)
            if effect in _SILENT:
                return ir.WalkResult.SKIP
            if op != body:
                block = op.block
                if effect is Effect.END:
                    ends[block] = op
                else:
                    event = Event(op, effect)
                    events.append(event)
                    inside.setdefault(block, []).append(event)
            return ir.WalkResult.ADVANCE

        body.walk(visit, ir.WalkOrder.PRE_ORDER)
        self.events = tuple(events)
        self._inside = inside
        self._ends = ends
        self._lines: dict[ir.Block, Lines] = {}
        self._uses = Uses()
        self._dead: dict[Event, bool | None] = {}
        self._definitions: dict[Value, Definition] = {}

    def of(self, block: ir.Block) -> Lines:
        """What matters of a block."""
        lines = self._lines.get(block)
        if lines is None:
            end = self._ends.get(block)
            if end is None:
                *_, end = (None, *(op.operation for op in block.operations))
            lines = self._lines[block] = Lines(tuple(self._inside.get(block, ())), end)
        return lines

    def is_dead(self, event: Event) -> bool | None:
        """Whether an operation has results and nothing uses them; None where that is up to selections."""
        try:
            return self._dead[event]
        except KeyError:
            dead = self._dead[event] = bool(event.results) and self._uses.is_dead_whatever(event.op)
            return dead

    def definition(self, value: Value) -> Definition:
        """Where a value comes from, as far as that is within an operation without effects."""
        try:
            return self._definitions[value]
        except KeyError:
            found = self._definitions[value] = definition_of(value)
            return found


def in_order(goal: Value, known: Container[Value], operands: Callable[[Value], Iterable[Value]]) -> Iterator[Value]:
    """What is to be computed for `goal`, each value after its operands; the caller adds each to what is `known`.

    Depth first with a stack of its own: a chain of thousands of additions is no recursion.
    """
    waiting = [goal]
    while waiting:
        value = waiting[-1]
        if value in known:
            waiting.pop()
            continue
        missing = [operand for operand in operands(value) if operand not in known]
        if missing:
            waiting += missing
        else:
            yield value
