"""The operations of a kernel's body that say something about a step, read off the IR once for all walks over it.

Those that compute vectors from vectors are left out, which are most.
"""

from __future__ import annotations

import dataclasses

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.effects import Effect, effect_of
from mosaic_grid.dataflow.kernel_ops import Rule, rule_of, scalar_type
from mosaic_grid.dataflow.tensors import IntType
from mosaic_grid.dataflow.uses import is_dead
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
class Event:
    """Any other operation that matters: one on memory, or with regions."""

    op: ir.Operation
    effect: Effect


@dataclasses.dataclass(frozen=True)
class Lines:
    """What matters of a block, in order; `constants` are apart, and `end` is the block's terminator."""

    constants: dict[Value, sym.Expr]
    lines: tuple[Computation | Event, ...]
    end: ir.Operation | None


class Listing:
    """The blocks of one body, each read when it is first asked for."""

    def __init__(self) -> None:
        self._lines: dict[ir.Block, Lines] = {}
        self._dead: dict[ir.Operation, bool] = {}

    def of(self, block: ir.Block) -> Lines:
        """What matters of a block."""
        lines = self._lines.get(block)
        if lines is None:
            lines = self._lines[block] = _lines_of(block)
        return lines

    def is_dead(self, op: ir.Operation) -> bool:
        """Whether an operation has results and nothing uses them."""
        dead = self._dead.get(op)
        if dead is None:
            dead = self._dead[op] = bool(len(op.results)) and is_dead(op)
        return dead


def _lines_of(block: ir.Block) -> Lines:
    constants: dict[Value, sym.Expr] = {}
    lines: list[Computation | Event] = []
    op: ir.Operation | None = None
    for view in block.operations:
        op = view.operation
        effect = effect_of(op)
        if effect is not Effect.PURE:
            if effect not in (Effect.HINT, Effect.END):
                lines.append(Event(op, effect))
            continue
        computation = _computation(op)
        if computation is None:
            continue
        value = _constant(computation) if op.name == _CONSTANT else None
        if value is None:
            lines.append(computation)
        else:
            constants[op.results[0]] = value
    return Lines(constants, tuple(lines), op)


def _computation(op: ir.Operation) -> Computation | None:
    results = tuple((result, kind) for result in op.results if (kind := scalar_type(result.type)) is not None)
    return Computation(op, rule_of(op), tuple(op.operands), results) if results else None


def _constant(computation: Computation) -> sym.Expr | None:
    ((_, kind),) = computation.results
    return computation.rule(computation.op, kind, []) if computation.rule else None
