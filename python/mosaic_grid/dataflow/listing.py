"""The operations of a kernel's body that say something about a step, read off the IR once for all walks over it.

Those that compute vectors from vectors are left out, which are most. What computes scalars is looked up by its results,
for a walk evaluates those that it needs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Container, Iterable, Iterator

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.effects import Effect, effect_of
from mosaic_grid.dataflow.events import Event
from mosaic_grid.dataflow.kernel_ops import Rule, rule_of, scalar_type
from mosaic_grid.dataflow.tensors import IntType
from mosaic_grid.dataflow.uses import is_dead_whatever
from mosaic_grid.ir_types import Value

_CONSTANT = "arith.constant"


@dataclasses.dataclass(frozen=True)
class Computation:
    """An operation that computes integer scalars, its `results`, from its operands, with the rule for it."""

    op: ir.Operation
    rule: Rule | None
    operands: tuple[Value, ...]
    results: tuple[tuple[Value, IntType], ...]


@dataclasses.dataclass(frozen=True)
class Lines:
    """What matters of a block: its `events` in order, the values `computed` in it, and its terminator, `end`."""

    events: tuple[Event, ...]
    computed: tuple[Value, ...]
    end: ir.Operation | None


class Listing:
    """The blocks of one body, each read when it is first asked for.

    `constants` and `computations` are those of all that have been, by the values that they give.
    """

    def __init__(self) -> None:
        self.constants: dict[Value, sym.Expr] = {}
        self.computations: dict[Value, Computation] = {}
        self._lines: dict[ir.Block, Lines] = {}
        self._dead: dict[ir.Operation, bool | None] = {}

    def of(self, block: ir.Block) -> Lines:
        """What matters of a block."""
        lines = self._lines.get(block)
        if lines is None:
            lines = self._lines[block] = self._read(block)
        return lines

    def is_dead(self, op: ir.Operation) -> bool | None:
        """Whether an operation has results and nothing uses them; None where that is up to selections."""
        if op not in self._dead:
            self._dead[op] = bool(len(op.results)) and is_dead_whatever(op)
        return self._dead[op]

    def _read(self, block: ir.Block) -> Lines:
        events: list[Event] = []
        computed: list[Value] = []
        op: ir.Operation | None = None
        for view in block.operations:
            op = view.operation
            effect = effect_of(op)
            if effect is not Effect.PURE:
                if effect not in (Effect.HINT, Effect.END):
                    events.append(Event(op, effect))
                continue
            results: list[tuple[Value, IntType]] = []
            for result in op.results:
                kind = scalar_type(result.type)
                if kind is not None:
                    results.append((result, kind))
            if not results:
                continue
            rule = rule_of(op)
            value = rule(op, results[0][1], []) if rule is not None and op.name == _CONSTANT else None
            if value is None:
                computation = Computation(op, rule, tuple(op.operands), tuple(results))
                self.computations.update((result, computation) for result, _ in results)
                computed += (result for result, _ in results)
            else:
                self.constants[results[0][0]] = value
        return Lines(tuple(events), tuple(computed), op)


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
