"""Questions about an expression and their answers. What is written here is all that passes may rely on.

A solver for quasi-affine relations can answer the same questions more often; it can't answer them differently.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mosaic_grid.symbolic.arith import sub
from mosaic_grid.symbolic.choice import decide
from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.nodes import Const, Load, Param, Relation, Wrap
from mosaic_grid.symbolic.ranges import Range
from mosaic_grid.symbolic.verdict import Proved, Refuted, Unknown, Verdict, Witness


def constant_of(expr: Expr) -> int | None:
    """The one value of the expression, `None` where it isn't known to have one."""
    values = expr.range
    return values.lo if values.lo == values.hi else None


def range_of(expr: Expr) -> Range:
    """A range that holds every value."""
    return expr.range


def divisor_of(expr: Expr) -> int:
    """A number that divides every value: 1 when nothing is known, 0 when the only value is 0."""
    return expr.divisor


def compare(expr: Expr, relation: Relation, other: Expr | int) -> Verdict:
    """Whether `expr relation other` holds for all values of the unknowns.

    It is refuted only where no value of the unknowns satisfies it, for a range may be wider than what really occurs;
    the witness then is one of them.
    """
    right = Const(other) if isinstance(other, int) else other
    difference = sub(expr, right)
    known = decide(relation, difference)
    if known is True:
        return Proved()
    leaves = dict.fromkeys((*leaves_of(expr), *leaves_of(right)))
    if known is False:
        return Refuted(Witness(tuple((leaf.text, leaf.range.lo) for leaf in leaves)))
    wrapping = next(iter(wraps_in(difference)), None)
    why = f", as {wrapping} may wrap around" if wrapping else ""
    if isinstance(right, Const):
        return Unknown(f"{expr} is in {expr.range}{why}")
    return Unknown(f"{expr} - {right} is in {difference.range}{why}".replace(" - -", " + "))


def leaves_of(expr: Expr) -> tuple[Param | Load, ...]:
    """The unknowns in the expression, each once, from left to right."""
    return tuple(dict.fromkeys(node for node in _walk(expr) if isinstance(node, Param | Load)))


def ends_of(exprs: Iterable[Expr]) -> dict[str, tuple[int, int]]:
    """The least and the greatest value of each unknown, by all that is said of it: a place may know more than others.

    They are by the unknowns' texts. Where the places contradict each other the first is the larger one.
    """
    found: dict[str, tuple[int, int]] = {}
    for leaf in (leaf for expr in exprs for leaf in leaves_of(expr)):
        lo, hi = found.get(leaf.text, (leaf.range.lo, leaf.range.hi))
        found[leaf.text] = (max(leaf.range.lo, lo), min(leaf.range.hi, hi))
    return found


def wraps_in(expr: Expr) -> tuple[Wrap, ...]:
    """The parts of the expression that may differ from what is printed because they wrap around."""
    return tuple(dict.fromkeys(node for node in _walk(expr) if isinstance(node, Wrap)))


def _walk(expr: Expr) -> Iterator[Expr]:
    """Every part once, however often it is shared."""
    seen: set[int] = set()
    waiting = [expr]
    while waiting:
        part = waiting.pop()
        if id(part) not in seen:
            seen.add(id(part))
            yield part
            waiting.extend(reversed(part.args))
