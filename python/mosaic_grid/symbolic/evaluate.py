"""The value of an expression at a point: what every rule and every fact is judged by."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.nodes import (
    Absolute,
    Compare,
    Const,
    Extremum,
    Junction,
    Linear,
    Load,
    Not,
    Param,
    Product,
    Relation,
    Select,
    Wrap,
)
from mosaic_grid.symbolic.quotients import FloorDiv, Mod, TruncDiv, TruncRem, truncated_quotient, truncated_remainder
from mosaic_grid.symbolic.ranges import type_range

_RELATIONS: dict[Relation, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def value_of(expr: Expr, point: Mapping[Expr, int]) -> int:
    """The value where the unknowns (parameters and loads) are as `point` says; `KeyError` for one that isn't there."""
    if isinstance(expr, Param | Load):
        return point[expr]
    values = [value_of(arg, point) for arg in expr.args]
    match expr:
        case Const(value):
            return value
        case Wrap(_, bits, signed):
            return wrapped(values[0], bits, signed)
        case Linear(terms, constant):
            return constant + sum(c * value for (_, c), value in zip(terms, values, strict=True))
        case Product():
            return values[0] * values[1]
        case FloorDiv():
            return values[0] // values[1]
        case Mod():
            return values[0] % values[1]
        case TruncDiv():
            return truncated_quotient(*values)
        case TruncRem():
            return truncated_remainder(*values)
        case Extremum(greatest):
            return max(values) if greatest else min(values)
        case Absolute():
            return abs(values[0])
        case Select():
            return values[1] if values[0] else values[2]
        case Compare(relation):
            return int(_RELATIONS[relation](*values))
        case Not():
            return 1 - values[0]
        case Junction(every):
            return int(all(values) if every else any(values))
    raise TypeError(f"no rule to evaluate {type(expr).__name__}")


def wrapped(value: int, bits: int, signed: bool) -> int:
    """`value` modulo 2**bits, in the range of the type."""
    lowest = type_range(bits, signed).lo
    return (value - lowest) % (1 << bits) + lowest
