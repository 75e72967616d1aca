"""An expression with some of its parts replaced, simplified anew."""

from __future__ import annotations

from collections.abc import Callable

from mosaic_grid.symbolic.arith import combination, load, mul, wrap
from mosaic_grid.symbolic.choice import (
    absolute,
    comparison,
    conjunction,
    disjunction,
    maximum,
    minimum,
    negation,
)
from mosaic_grid.symbolic.division import floordiv, mod, truncdiv, truncrem
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
    Select,
    Wrap,
)
from mosaic_grid.symbolic.quotients import FloorDiv, Mod, TruncDiv, TruncRem
from mosaic_grid.symbolic.selection import select


def substitute(expr: Expr, replacement: Callable[[Expr], Expr | None]) -> Expr:
    """`expr` with every part for which `replacement` gives an expression replaced by it.

    A replacement's range must lie in that of what it replaces, as a divisor proved not to be 0 has to stay so.
    """
    if (replaced := replacement(expr)) is not None:
        return replaced
    args = [substitute(arg, replacement) for arg in expr.args]
    if all(new is old for new, old in zip(args, expr.args, strict=True)):
        return expr
    return _rebuilt(expr, args)


def _rebuilt(expr: Expr, args: list[Expr]) -> Expr:
    """The node with other operands."""
    match expr:
        case Const() | Param():
            return expr
        case Load(name, _, values, origin):
            return load(name, args, values, origin)
        case Wrap(_, bits, signed, cast):
            return wrap(args[0], bits, signed, cast)
        case Linear(terms, constant):
            return combination([(arg, c) for arg, (_, c) in zip(args, terms, strict=True)], constant)
        case Product():
            return mul(*args)
        case FloorDiv():
            return floordiv(*args)
        case Mod():
            return mod(*args)
        case TruncDiv():
            return truncdiv(*args)
        case TruncRem():
            return truncrem(*args)
        case Extremum(greatest):
            return maximum(*args) if greatest else minimum(*args)
        case Absolute():
            return absolute(*args)
        case Select():
            return select(*args)
        case Compare(relation):
            return comparison(relation, *args)
        case Not():
            return negation(*args)
        case Junction(every):
            return conjunction(*args) if every else disjunction(*args)
    raise TypeError(f"no rule to rebuild {type(expr).__name__}")
