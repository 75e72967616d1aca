"""Sums, products and wrap-around: each rule is an equation that holds for all integers."""

from __future__ import annotations

from collections.abc import Iterable

from mosaic_grid.symbolic.expr import Expr, Origin
from mosaic_grid.symbolic.nodes import Const, Linear, Load, Param, Product, Wrap, settled
from mosaic_grid.symbolic.nodes import constant as constant
from mosaic_grid.symbolic.quotients import FloorDiv, Mod
from mosaic_grid.symbolic.ranges import Range, type_range


def parameter(name: str, values: Range, origin: Origin | None = None, divisor: int = 1) -> Expr:
    """An unknown in `values`, a multiple of `divisor`; `ValueError` when no such integer exists."""
    return settled(Param(name, values, divisor, origin))


def load(name: str, index: Iterable[Expr], values: Range, origin: Origin | None = None) -> Expr:
    """The element of an immutable array `name`, printed `name[index]`."""
    return settled(Load(name, tuple(index), values, origin))


def add(*exprs: Expr) -> Expr:
    """The sum."""
    if len(exprs) == 2:
        a, b = exprs
        if isinstance(a, Const):
            if isinstance(b, Const):
                return constant(a.value + b.value)
            a, b = b, a
        if isinstance(b, Const) and b.value == 0:
            return a
    return combination([(e, 1) for e in exprs])


def sub(a: Expr, b: Expr) -> Expr:
    """`a - b`."""
    if isinstance(b, Const) and (b.value == 0 or isinstance(a, Const)):
        return constant(a.value - b.value) if isinstance(a, Const) else a
    return combination([(a, 1), (b, -1)])


def neg(a: Expr) -> Expr:
    """`-a`."""
    return combination([(a, -1)])


def mul(a: Expr, b: Expr) -> Expr:
    """The product."""
    if isinstance(a, Const):
        return combination([(b, a.value)])
    if isinstance(b, Const):
        return combination([(a, b.value)])
    # the product is commutative: one order for both
    a, b = sorted((a, b), key=lambda e: e.text)
    return settled(Product(a, b))


def combination(terms: Iterable[tuple[Expr, int]], offset: int = 0) -> Expr:
    """`offset` plus the sum of `coefficient * expr`, like terms collected."""
    total: dict[Expr, int] = {}
    for expr, coefficient in terms:
        parts, own = linear_parts(expr)
        offset += coefficient * own
        for atom, c in parts:
            total[atom] = total.get(atom, 0) + coefficient * c
    _join_quotients(total)
    kept = [(atom, c) for atom, c in total.items() if c]
    if not kept:
        return constant(offset)
    if len(kept) > 1:
        kept.sort(key=lambda term: term[0].text)
    elif offset == 0 and kept[0][1] == 1:
        return kept[0][0]
    return settled(Linear(tuple(kept), offset))


def linear_parts(expr: Expr) -> tuple[tuple[tuple[Expr, int], ...], int]:
    """`expr` as `(atom, coefficient)` pairs and a constant."""
    if isinstance(expr, Const):
        return (), expr.value
    if isinstance(expr, Linear):
        return expr.terms, expr.constant
    return ((expr, 1),), 0


def _join_quotients(total: dict[Expr, int]) -> None:
    """Joins a remainder with its quotient or its dividend, in place."""
    if len(total) < 2:
        return
    for rest in [atom for atom in total if isinstance(atom, Mod) and isinstance(atom.b, Const)]:
        c, k, quotient = total[rest], rest.b.range.lo, FloorDiv(rest.a, rest.b)
        if c == 0 or isinstance(rest.a, Linear):
            continue
        if total.get(quotient) == c * k:
            # k*(a // k) + a % k = a
            del total[rest], total[quotient]
            total[rest.a] = total.get(rest.a, 0) + c
        elif total.get(rest.a) == -c:
            # a - a % k = k*(a // k)
            del total[rest], total[rest.a]
            total[quotient] = total.get(quotient, 0) - c * k


def wrap(expr: Expr, bits: int, signed: bool, cast: bool = False) -> Expr:
    """`expr` as a machine integer of this type holds it: itself where its range proves that it fits."""
    expr = _unwrapped(expr, bits)
    fitted = _fitted(expr, bits, signed)
    if fitted is None and (least := _reduced(expr, bits)) is not expr:
        expr, fitted = least, _fitted(least, bits, signed)
    return Wrap(expr, bits, signed, cast) if fitted is None else fitted


def _fitted(expr: Expr, bits: int, signed: bool) -> Expr | None:
    """The wrapped value without a wrap, where every value leaves the type by the same number of turns."""
    lowest = type_range(bits, signed).lo
    turns = (expr.range.lo - lowest) >> bits
    if turns != (expr.range.hi - lowest) >> bits:
        return None
    # x mod 2**b = x - turns*2**b
    return combination([(expr, 1)], -turns << bits) if turns else expr


def _reduced(expr: Expr, bits: int) -> Expr:
    """`expr` with each coefficient the one nearest to zero that is equal to it modulo 2**bits.

    Without that the coefficients of a long chain of products have thousands of digits.
    """
    half = 1 << bits - 1
    parts, offset = linear_parts(expr)
    if all(-half <= c < half for c in (offset, *(c for _, c in parts))):
        return expr
    # c*x + k = (c mod 2**b)*x + (k mod 2**b)  (mod 2**b)
    least = [(atom, (c + half) % (2 * half) - half) for atom, c in parts]
    return combination(least, (offset + half) % (2 * half) - half)


def _unwrapped(expr: Expr, bits: int) -> Expr:
    """`expr` without the inner wraps that a wrap to `bits` makes superfluous."""
    parts, offset = linear_parts(expr)
    if not any(isinstance(atom, Wrap) and not atom.cast for atom, _ in parts):
        return expr
    # x + c*(y mod 2**n) = x + c*y  (mod 2**m), m <= n
    bare = [(a.inner if isinstance(a, Wrap) and not a.cast and a.bits >= bits else a, c) for a, c in parts]
    return combination(bare, offset)
