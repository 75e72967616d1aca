"""The operations of a kernel's body that say something about a step, read off the IR once for all walks over it.

Those that compute vectors from vectors are left out, which are most.
"""

from __future__ import annotations

import dataclasses

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
    """What matters of a block but its constants, in order; `end` is the block's terminator."""

    lines: tuple[Computation | Event, ...]
    end: ir.Operation | None


class Listing:
    """The blocks of one body, each read when it is first asked for; `constants` are those of all that have been."""

    def __init__(self) -> None:
        self.constants: dict[Value, sym.Expr] = {}
        self._lines: dict[ir.Block, Lines] = {}
        self._dead: dict[ir.Operation, bool | None] = {}

    def of(self, block: ir.Block) -> Lines:
        """What matters of a block."""
        lines = self._lines.get(block)
        if lines is None:
            lines = self._lines[block] = _lines_of(block, self.constants)
        return lines

    def is_dead(self, op: ir.Operation) -> bool | None:
        """Whether an operation has results and nothing uses them; None where that is up to selections."""
        if op not in self._dead:
            self._dead[op] = bool(len(op.results)) and is_dead_whatever(op)
        return self._dead[op]


def _lines_of(block: ir.Block, constants: dict[Value, sym.Expr]) -> Lines:
    """The lines of a block; its constants are added to `constants`."""
    lines: list[Computation | Event] = []
    op: ir.Operation | None = None
    for view in block.operations:
        op = view.operation
        effect = effect_of(op)
        if effect is not Effect.PURE:
            if effect not in (Effect.HINT, Effect.END):
                lines.append(Event(op, effect))
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
            lines.append(Computation(op, rule, tuple(op.operands), tuple(results)))
        else:
            constants[results[0][0]] = value
    return Lines(tuple(lines), op)
