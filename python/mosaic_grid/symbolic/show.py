"""Expressions as a person writes them in Python, with no parenthesis too many.

A sum or product that may wrap is written as the program has it (`n + 1`): what wraps is asked with `facts.wraps_in`.
`lax.div` and `lax.rem` lend their names to truncated division, `jnp.where` to selection.
"""

from __future__ import annotations

from mosaic_grid.symbolic.arith import combination, linear_parts
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

# a longer part is written as dots: what is shared is written wherever it is used, so that the text may double with
# every step
_LONGEST = 1000

# how tightly each form binds, as in Python
_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _UNARY, _ATOM = range(8)


def write(expr: Expr) -> tuple[str, int]:
    """The text of the expression, and how tightly its outermost operator binds."""
    match expr:
        case Const(value):
            return str(value), _ATOM if value >= 0 else _UNARY
        case Param(name):
            return name, _ATOM
        case Load(name, index):
            return f"{name}[{_list(index)}]" if index else name, _ATOM
        case Wrap(inner, bits, signed, True):
            return f"{'i' if signed else 'ui'}{bits}({inner})", _ATOM
        case Wrap(inner):
            return inner.written
        case Linear(terms, constant):
            return _sum(terms, constant), _SUM if len(terms) + bool(constant) > 1 else _term_strength(terms[0])
        case Product(a, b):
            return f"{_within(a, _PRODUCT)}*{_within(b, _UNARY)}", _PRODUCT
        case FloorDiv(a, b):
            rounded_up = _rounded_up(a, b)
            if rounded_up is not None:
                return f"ceildiv({_list((rounded_up, b))})", _ATOM
            return f"{_within(a, _PRODUCT)} // {_within(b, _UNARY)}", _PRODUCT
        case Mod(a, b):
            return f"{_within(a, _PRODUCT)} % {_within(b, _UNARY)}", _PRODUCT
        case Compare(relation, a, b):
            return f"{_within(a, _SUM)} {relation} {_within(b, _SUM)}", _COMPARE
        case Not(a):
            return f"not {_within(a, _NOT)}", _NOT
        case Junction(every, args):
            strength = _AND if every else _OR
            return (" and " if every else " or ").join(_within(a, strength + 1) for a in args), strength
    return f"{_function_name(expr)}({_list(expr.args)})", _ATOM


def _function_name(expr: Expr) -> str:
    match expr:
        case Extremum(greatest):
            return "max" if greatest else "min"
        case Absolute():
            return "abs"
        case Select():
            return "where"
        case TruncDiv():
            return "div"
        case TruncRem():
            return "rem"
    raise TypeError(f"no rule to print {type(expr).__name__}")


def _list(exprs: tuple[Expr, ...]) -> str:
    return ", ".join(_within(e, _OR) for e in exprs)


def _within(expr: Expr, strength: int) -> str:
    text, own = expr.written
    if len(text) > _LONGEST:
        return "..."
    return text if own >= strength else f"({text})"


def _term_strength(term: tuple[Expr, int]) -> int:
    """How tightly a sum of one term binds: `2*n` as a product, `-n` as a unary minus."""
    return _UNARY if abs(term[1]) == 1 else _PRODUCT


def _sum(terms: tuple[tuple[Expr, int], ...], constant: int) -> str:
    """Positive terms first; a sum that starts with a minus is written only where there is no other way."""
    ordered = sorted((_turned(term) for term in terms), key=lambda term: term[1] < 0)
    if constant > 0 and ordered[0][1] < 0:
        return " ".join([str(constant), *(f"- {_term(atom, -c)}" for atom, c in ordered)])
    (atom, first), *rest = ordered
    # -(n // 2) needs its parentheses, for -n // 2 is (-n) // 2
    parts = [_term(atom, first) if first > 0 else f"-{_term(atom, -first, _UNARY)}"]
    parts += [f"+ {_term(atom, c)}" if c > 0 else f"- {_term(atom, -c)}" for atom, c in rest]
    if constant:
        parts.append(f"+ {constant}" if constant > 0 else f"- {-constant}")
    return " ".join(parts)


def _term(atom: Expr, coefficient: int, strength: int = _PRODUCT) -> str:
    """`coefficient * atom`, the coefficient being positive."""
    return _within(atom, strength) if coefficient == 1 else f"{coefficient}*{_within(atom, _UNARY)}"


def _turned(term: tuple[Expr, int]) -> tuple[Expr, int]:
    """The term, `-(-n // 128)` as `ceildiv(n, 128)`."""
    atom, coefficient = term
    match atom:
        case FloorDiv(Wrap(Linear(parts, 0), cast=False), Const(k) as b) if coefficient < 0 < k and parts[0][1] < 0:
            return FloorDiv(combination([(x, -c) for x, c in parts], k - 1), b), -coefficient
    return term


def _rounded_up(a: Expr, b: Expr) -> Expr | None:
    """`x` where `a` is `x + b - 1`, so that `a // b = ceildiv(x, b)`."""
    if isinstance(a, Wrap) and not a.cast:
        a = a.inner
    if b.range.lo < 2:
        return None
    rest = combination([(a, 1), (b, -1)], 1)
    size, before = len(linear_parts(rest)[0]), len(linear_parts(a)[0])
    return rest if linear_parts(rest)[1] == 0 and 0 < size <= before and isinstance(a, Linear) else None
