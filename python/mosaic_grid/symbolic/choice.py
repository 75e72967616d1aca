"""Minimum, maximum, comparisons and truth values."""

from __future__ import annotations

from mosaic_grid.symbolic.arith import linear_parts, neg, sub
from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.nodes import BOOL, Absolute, Compare, Const, Extremum, Junction, Not, Relation, settled
from mosaic_grid.symbolic.quotients import Mod

_OPPOSITE: dict[Relation, Relation] = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRRORED: dict[Relation, Relation] = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
# beyond this many operands only ranges are compared, not differences: the comparison is quadratic
_FEW = 8


def minimum(*exprs: Expr) -> Expr:
    """The least; `ValueError` of none."""
    return _extremum(False, exprs)


def maximum(*exprs: Expr) -> Expr:
    """The greatest; `ValueError` of none."""
    return _extremum(True, exprs)


def clamp(low: Expr, a: Expr, high: Expr) -> Expr:
    """`min(max(a, low), high)`: `high` wins where `low > high`, as in `stablehlo.clamp`."""
    return minimum(maximum(a, low), high)


def absolute(a: Expr) -> Expr:
    """The absolute value."""
    if a.range.lo >= 0:
        return a
    return neg(a) if a.range.hi <= 0 else settled(Absolute(a))


def sign(a: Expr) -> Expr:
    """-1, 0 or 1: `max(-1, min(a, 1))` for integers."""
    return maximum(Const(-1), minimum(a, Const(1)))


def _extremum(greatest: bool, exprs: tuple[Expr, ...]) -> Expr:
    flat: list[Expr] = []
    for expr in exprs:
        # min(a, min(b, c)) = min(a, b, c)
        flat += expr.args if isinstance(expr, Extremum) and expr.greatest == greatest else (expr,)
    flat = list(dict.fromkeys(flat))
    few = len(flat) <= _FEW
    kept: list[Expr] = []
    for expr in flat:
        # a <= b  =>  min(a, b) = a
        if any(_wins(k, expr, greatest, few) for k in kept):
            continue
        kept = [*(k for k in kept if not _wins(expr, k, greatest, few)), expr]
    if len(kept) == 1:
        return kept[0]
    # commutative: one order, the constant first, as in min(5, n)
    kept.sort(key=lambda e: (not isinstance(e, Const), e.text))
    return settled(Extremum(greatest, tuple(kept)))


def _wins(a: Expr, b: Expr, greatest: bool, few: bool) -> bool:
    """Whether `a` is at least as great (or as small) as `b`, always."""
    if greatest:
        a, b = b, a
    if a.range.hi <= b.range.lo:
        return True
    # the range of b - a for a constant says no more than that
    return few and not isinstance(a, Const) and not isinstance(b, Const) and sub(b, a).range.lo >= 0


def comparison(relation: Relation, a: Expr, b: Expr) -> Expr:
    """1 where `a relation b`, else 0."""
    if isinstance(a, Const) and not isinstance(b, Const):
        # k < a  =  a > k
        a, b, relation = b, a, _MIRRORED[relation]
    known = decide(relation, sub(a, b))
    if known is not None:
        return Const(int(known))
    if isinstance(b, Const) and relation in ("==", "!="):
        threshold = _threshold(a)
        if threshold is not None and b.value == 0:
            # sign(a) == 0  =  a == 0
            return comparison(relation, threshold, b)
        if threshold is not None and abs(b.value) == 1:
            # sign(a) == 1  =  a > 0,  sign(a) == -1  =  a < 0
            beyond: Relation = ">" if b.value == 1 else "<"
            return comparison(beyond if relation == "==" else _OPPOSITE[beyond], threshold, Const(0))
        if a.range.within(BOOL):
            # (c == 1) = (c != 0) = c for a truth value c, which is neither always nor never b
            return a if (relation == "==") == (b.value == 1) else negation(a)
    return Compare(relation, a, b)


def decide(relation: Relation, difference: Expr) -> bool | None:
    """Whether `difference relation 0` holds: for all values, for none (False), or neither is known."""
    r = difference.range
    match relation:
        case "<":
            return True if r.hi < 0 else False if r.lo >= 0 else None
        case "<=":
            return True if r.hi <= 0 else False if r.lo > 0 else None
        case ">" | ">=":
            return _not(decide(_OPPOSITE[relation], difference))
        case "==":
            if r.lo == r.hi == 0:
                return True
            # 0 is a multiple of everything, so a divisor alone never excludes it; an offset from one does
            return False if 0 not in r or _never_zero(difference) else None
        case "!=":
            return _not(decide("==", difference))


def _never_zero(difference: Expr) -> bool:
    """Whether `g*x + c = 0` has no solution because g doesn't divide c."""
    offset = linear_parts(difference)[1]
    varying = sub(difference, Const(offset))
    return varying.divisor != 0 and offset % varying.divisor != 0


def _not(known: bool | None) -> bool | None:
    return None if known is None else not known


def _threshold(a: Expr) -> Expr | None:
    """`x` where `a` is `sign(x)`."""
    match a:
        case Extremum(True, (Const(-1), Extremum(False, (Const(1), x)))):
            return x
        case Extremum(False, (Const(1), x)) if x.range.lo >= -1:
            return x
        case Extremum(True, (Const(-1), x)) if x.range.hi <= 1:
            return x
    return None


def negation(a: Expr) -> Expr:
    """`1 - a` for a truth value."""
    match a:
        case Const(value):
            return Const(1 - value)
        case Not(inner):
            return inner
        case Compare(relation, left, right):
            # not (a < b) = a >= b
            return Compare(_OPPOSITE[relation], left, right)
    return Not(a)


def conjunction(*exprs: Expr) -> Expr:
    """1 where every truth value is."""
    return _junction(True, exprs)


def disjunction(*exprs: Expr) -> Expr:
    """1 where some truth value is."""
    return _junction(False, exprs)


def _junction(every: bool, exprs: tuple[Expr, ...]) -> Expr:
    neutral, absorbing = Const(int(every)), Const(int(not every))
    flat: list[Expr] = []
    for expr in exprs:
        flat += expr.args if isinstance(expr, Junction) and expr.every == every else (expr,)
    kept = dict.fromkeys(e for e in flat if e != neutral)
    # a and not a = 0
    if absorbing in kept or any(negation(e) in kept for e in kept):
        return absorbing
    if every:
        kept = _sharpened(kept)
        if absorbing in kept:
            return absorbing
    if len(kept) <= 1:
        return next(iter(kept), neutral)
    return Junction(every, tuple(sorted(kept, key=lambda e: e.text)))


def _sharpened(conjuncts: dict[Expr, None]) -> dict[Expr, None]:
    """The conjuncts, each `a != b` joined with an order of the same `a` and `b`."""
    kept = dict(conjuncts)
    for unequal in [c for c in conjuncts if isinstance(c, Compare) and c.relation == "!="]:
        for order in [c for c in kept if isinstance(c, Compare) and c.relation not in ("==", "!=")]:
            if (order.a, order.b) == (unequal.a, unequal.b):
                # a <= b and a != b  =  a < b
                strict: Relation = "<" if order.relation[0] == "<" else ">"
                del kept[order]
                kept.pop(unequal, None)
                kept[Compare(strict, order.a, order.b)] = None
            elif order.relation == "<=" and unequal.b == order.b == Const(0) and _bounds_below(unequal.a, order.a):
                # 0 <= x <= a <= 0 and x != 0  =  0
                return {Const(0): None}
    return kept


def _bounds_below(x: Expr, a: Expr) -> bool:
    """Whether `0 <= x <= a`."""
    # x % k <= x, x >= 0
    larger = x.a if isinstance(x, Mod) and x.a.range.lo >= 0 else x
    return x.range.lo >= 0 and sub(a, larger).range.lo >= 0
