"""Selection, and floored division recognised in the chain by which JAX lowers `//` and `%`.

What is matched is the algebra, never a function's name: for a candidate `a // b` the chain is built as JAX builds it,
and must be equal to what is there.
"""

from __future__ import annotations

from collections.abc import Iterator

from mosaic_grid.symbolic.arith import add, linear_parts, neg, sub
from mosaic_grid.symbolic.choice import comparison, conjunction, maximum, minimum, negation, sign
from mosaic_grid.symbolic.division import floordiv, mod, truncdiv, truncrem
from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.nodes import Compare, Const, Junction, Not, Select, Wrap, settled
from mosaic_grid.symbolic.quotients import Mod, TruncRem
from mosaic_grid.symbolic.ranges import type_range

_ZERO = Const(0)


def select(condition: Expr, then: Expr, other: Expr) -> Expr:
    """`then` where the truth value `condition` is 1, else `other`."""
    if isinstance(condition, Const):
        return then if condition.value else other
    if then == other:
        return then
    match condition, then, other:
        case _, Const(1), Const(0):
            return condition
        case _, Const(0), Const(1):
            return negation(condition)
        case Not(inner), _, _:
            return select(inner, other, then)
        case Compare("<" | "<=", a, b), _, _ if (then, other) in ((a, b), (b, a)):
            # a < b ? a : b  =  min(a, b)
            return minimum(a, b) if then == a else maximum(a, b)
        case Compare(">" | ">=", a, b), _, _ if (then, other) in ((a, b), (b, a)):
            return maximum(a, b) if then == a else minimum(a, b)
        case Compare("==", a, b), _, _ if (then, other) in ((a, b), (b, a)):
            # a == b ? a : b  =  b
            return other
        case Compare("!=", a, b), _, _ if (then, other) in ((a, b), (b, a)):
            return then
    floored = _floored_quotient(condition, then, other) or _floored_remainder(condition, then, other)
    return floored or settled(Select(condition, then, other))


def _floored_quotient(condition: Expr, then: Expr, other: Expr) -> Expr | None:
    """`a // b` where it is `q - 1` if the signs of `a` and `b` differ and `rem(a, b) != 0`, else `q = trunc(a/b)`."""
    kept_in = None
    if isinstance(then, Wrap) and not then.cast:
        kept_in, then = type_range(then.bits, then.signed), then.inner
    if sub(then, other) != Const(-1):
        return None
    for a, b in _divisions(condition):
        inexact = comparison("!=", truncrem(a, b), _ZERO)
        adjusted = conjunction(comparison("!=", sign(a), sign(b)), inexact)
        if adjusted != condition or truncdiv(a, b) != other:
            continue
        # floor(a/b) = trunc(a/b) - [rem(a, b) != 0 and sign(a) != sign(b)]
        floored = floordiv(a, b)
        # q - 1 is taken only where it is a // b: it doesn't wrap there if no a // b would
        if kept_in is None or floored.range.within(kept_in):
            return floored
    return None


def _floored_remainder(condition: Expr, then: Expr, other: Expr) -> Expr | None:
    """`a % b` where it is `r + b` if `r < 0` isn't `b < 0` and `r != 0`, else `r = rem(a, b)`."""
    for a, b in _divisions(condition):
        rest = truncrem(a, b)
        signs = comparison("!=", comparison("<", rest, _ZERO), comparison("<", b, _ZERO))
        adjusted = conjunction(signs, comparison("!=", rest, _ZERO))
        if (adjusted, add(rest, b), rest) == (condition, then, other):
            # a % b = r + b*[r != 0 and sign(r) != sign(b)]
            return mod(a, b)
    return None


def _divisions(condition: Expr) -> Iterator[tuple[Expr, Expr]]:
    """Candidates for dividend and divisor, read off what the condition says of a remainder and of a sign."""
    conjuncts = condition.args if isinstance(condition, Junction) and condition.every else (condition,)
    compared = [c.a if isinstance(c, Compare) else c for c in conjuncts]
    for rest in compared:
        for atom, _ in linear_parts(rest)[0]:
            if isinstance(atom, Mod | TruncRem):
                dividends = dict.fromkeys((atom.a, neg(atom.a), *compared))
                yield from ((a, b) for a in dividends for b in (atom.b, neg(atom.b)))
