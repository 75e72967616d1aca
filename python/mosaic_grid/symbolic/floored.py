"""Floored division recognised in the chain of truncated divisions, signs and selects by which JAX lowers `//` and `%`.

What is matched is the algebra, never a function's name: a candidate `a // b` is taken apart into what JAX would have
written, and must be equal to what is there.
"""

from __future__ import annotations

from collections.abc import Iterator

from mosaic_grid.symbolic.arith import linear_parts, neg, sub
from mosaic_grid.symbolic.division import floordiv, mod, truncdiv, truncrem
from mosaic_grid.symbolic.nodes import Compare, Const, Expr, Extremum, Junction, Wrap
from mosaic_grid.symbolic.quotients import Mod, TruncRem
from mosaic_grid.symbolic.ranges import type_range


def floored_quotient(condition: Expr, then: Expr, other: Expr) -> Expr | None:
    """`a // b` where it is `q - 1` if the signs of `a` and `b` differ and `rem(a, b) != 0`, else `q = trunc(a/b)`."""
    kept_in = None
    if isinstance(then, Wrap) and not then.cast:
        kept_in, then = type_range(then.bits, then.signed), then.inner
    if sub(then, other) != Const(-1):
        return None
    conjuncts = condition.args if isinstance(condition, Junction) and condition.every else (condition,)
    compared = [c.a for c in conjuncts if isinstance(c, Compare)]
    for inexact in conjuncts:
        signs = [c for c in conjuncts if c is not inexact]
        for a, b in _divisions(_nonzero(inexact), compared):
            differ = all(_signs_differ(c, a, b) for c in signs) if signs else _always_differ(a, b)
            floored = floordiv(a, b)
            # q - 1 is taken only where it is a // b: it doesn't wrap there if no a // b would
            if differ and truncdiv(a, b) == other and (kept_in is None or floored.range.within(kept_in)):
                # floor(a/b) = trunc(a/b) - [rem(a, b) != 0 and the signs of a and b differ]
                return floored
    return None


def floored_remainder(condition: Expr, then: Expr, other: Expr) -> Expr | None:
    """`a % b` where the select is `r + b` if the sign of `r` isn't that of `b`, else `r`, with `r = rem(a, b)`."""
    b = sub(then, other)
    match condition:
        case Compare("<", rest, Const(0)) if rest == other and b.range.lo > 0:
            pass
        case Compare(">", rest, Const(0)) if rest == other and b.range.hi < 0:
            pass
        case _:
            return None
    # a % b = r + b*[r != 0 and the signs of r and b differ]
    return next((mod(a, b) for a, d in _divisions(rest, []) if d == b), None)


def _nonzero(condition: Expr) -> Expr | None:
    """`x` where `condition` says `x != 0`."""
    match condition:
        case Compare("!=", rest, Const(0)):
            return rest
        case Mod():
            # a remainder that is 0 or 1 is itself the truth value
            return condition
    return None


def _divisions(rest: Expr | None, dividends: list[Expr]) -> Iterator[tuple[Expr, Expr]]:
    """Every `(a, b)` with `rem(a, b) = rest` that can be read off `rest`, or has one of the given dividends."""
    if rest is None or isinstance(rest, Const):
        return
    (atom, _), *others = linear_parts(rest)[0]
    if others or not isinstance(atom, Mod | TruncRem):
        return
    for a in (atom.a, neg(atom.a), *dividends):
        for b in (atom.b, neg(atom.b)):
            if truncrem(a, b) == rest:
                yield a, b


def _always_differ(a: Expr, b: Expr) -> bool:
    """Whether a nonzero `a` always has the other sign than `b`."""
    return (a.range.hi <= 0 < b.range.lo) or (b.range.hi < 0 <= a.range.lo)


def _signs_differ(condition: Expr, a: Expr, b: Expr) -> bool:
    """Whether `condition` is true exactly where the signs of `a` and `b` differ, `a` being nonzero."""
    match condition:
        case Compare("<=", x, Const(0)) | Compare("<", x, Const(0 | 1)):
            return x == a and b.range.lo > 0
        case Compare(">=", x, Const(0)) | Compare(">", x, Const(-1 | 0)):
            return x == a and b.range.hi < 0
        case Compare("!=", Extremum() as one, Extremum() as two):
            return {one, two} == {_sign(a), _sign(b)}
    return False


def _sign(a: Expr) -> Expr:
    from mosaic_grid.symbolic.choice import sign

    return sign(a)
