"""Where an integer scalar of a kernel's body comes from, as far as that is an operation without effects."""

from __future__ import annotations

import dataclasses
from typing import TypeAlias

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.control import defining
from mosaic_grid.dataflow.effects import Effect, effect_of
from mosaic_grid.dataflow.kernel_ops import Rule, constant_in, rule_of, scalar_type
from mosaic_grid.dataflow.tensors import IntType
from mosaic_grid.ir_types import Value


@dataclasses.dataclass(frozen=True, eq=False)
class Computation:
    """An operation that computes integer scalars, its `results`: by a rule from `arguments`, or nobody knows how.

    Those of the arguments that aren't written as constants are `operands`.
    """

    op: ir.Operation
    block: ir.Block
    rule: Rule | None
    arguments: tuple[Value | sym.Expr, ...]
    operands: tuple[Value, ...]
    results: tuple[tuple[Value, IntType], ...]


Definition: TypeAlias = "sym.Expr | Computation | None"
"""A constant, a computation, or something else."""


def definition_of(value: Value) -> Definition:
    """Where a value comes from."""
    if isinstance(value, ir.BlockArgument):
        return None
    op, _ = defining(value)
    number = _number(op)
    if number is not None:
        return number
    kind = scalar_type(value.type)
    if kind is None or effect_of(op) is not Effect.PURE:
        return None
    rule = rule_of(op)
    # without a rule it makes no difference what they are
    operands = tuple(op.operands) if rule is not None else ()
    arguments = tuple(constant_of_value(operand) or operand for operand in operands)
    unknown = tuple(each for each in arguments if not isinstance(each, sym.Expr))
    results = [(result, scalar_type(result.type)) for result in op.results] if len(op.results) > 1 else [(value, kind)]
    scalars = tuple((result, each) for result, each in results if each is not None)
    return Computation(op, op.block, rule, arguments, unknown, scalars)


def constant_of_value(value: Value) -> sym.Expr | None:
    """The number that a value is if that is written so."""
    return None if isinstance(value, ir.BlockArgument) else _number(defining(value)[0])


def _number(op: ir.Operation) -> sym.Expr | None:
    return constant_in(op) if op.name == "arith.constant" else None
