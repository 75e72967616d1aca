"""Floored and truncated division.

A divisor whose range holds 0 is a `ValueError`: what a division by 0 gives is the caller's to know.
"""

from __future__ import annotations

import math

from mosaic_grid.symbolic.arith import add, combination, linear_parts, neg, sub
from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.nodes import Const, settled
from mosaic_grid.symbolic.quotients import FloorDiv, Mod, TruncDiv, TruncRem


def floordiv(a: Expr, b: Expr) -> Expr:
    """`a // b`, rounded down."""
    _refuse_zero(b)
    if a == b:
        # a // a = 1
        return Const(1)
    if isinstance(b, Const):
        return _floordiv_constant(a, b.value)
    return settled(FloorDiv(a, b))


def ceildiv(a: Expr, b: Expr) -> Expr:
    """`a / b` rounded up."""
    _refuse_zero(b)
    if isinstance(a, Const) and isinstance(b, Const):
        return Const(-(-a.value // b.value))
    if b.range.lo > 0:
        # ceil(a / b) = (a + b - 1) // b, b > 0
        return floordiv(combination([(a, 1), (b, 1)], -1), b)
    # ceil(a / b) = -((-a) // b)
    return neg(floordiv(neg(a), b))


def mod(a: Expr, b: Expr) -> Expr:
    """`a - b * (a // b)`: the remainder with the sign of `b`."""
    _refuse_zero(b)
    if a == b:
        # a % a = 0
        return Const(0)
    if not isinstance(b, Const):
        return settled(Mod(a, b))
    k = b.value
    if k < 0:
        # a % -k = -((-a) % k)
        return neg(mod(neg(a), Const(-k)))
    terms, offset = linear_parts(a)
    # (k*x + a) % k = a % k
    a = combination([(atom, c) for atom, c in terms if c % k], offset % k)
    if a.range.lo // k == a.range.hi // k:
        # a % k = a - k*q where q = a // k is the same for every a
        return combination([(a, 1)], -k * (a.range.lo // k))
    match a:
        case Mod(inner, Const(m)) if m % k == 0:
            # (a % (k*m)) % k = a % k
            return mod(inner, b)
    return settled(Mod(a, b))


def truncdiv(a: Expr, b: Expr) -> Expr:
    """`a / b` rounded towards zero: `stablehlo.divide` on integers, save for overflow."""
    _refuse_zero(b)
    if b.range.hi < 0:
        # trunc(a / -b) = -trunc(a / b)
        return neg(truncdiv(a, neg(b)))
    if a.range.lo >= 0 or _divides(b, a):
        # rounding down is rounding towards zero from above, and an exact quotient isn't rounded
        return floordiv(a, b)
    if a.range.hi <= 0:
        # trunc(a / b) = -((-a) // b), a <= 0 < b
        return neg(floordiv(neg(a), b))
    return settled(TruncDiv(a, b))


def truncrem(a: Expr, b: Expr) -> Expr:
    """`a - b * trunc(a / b)`: the remainder with the sign of `a`, `stablehlo.remainder` on integers."""
    _refuse_zero(b)
    if b.range.hi < 0:
        # rem(a, -b) = rem(a, b)
        return truncrem(a, neg(b))
    if _divides(b, a):
        # b | a  =>  rem(a, b) = 0
        return Const(0)
    if a.range.lo >= 0:
        # rem(a, b) = a % b, a >= 0 < b
        return mod(a, b)
    if a.range.hi <= 0:
        # rem(a, b) = -((-a) % b), a <= 0 < b
        return neg(mod(neg(a), b))
    return settled(TruncRem(a, b))


def _floordiv_constant(a: Expr, k: int) -> Expr:
    if k < 0:
        # a // -k = (-a) // k
        return _floordiv_constant(neg(a), -k)
    if k == 1:
        # a // 1 = a
        return a
    terms, offset = linear_parts(a)
    whole = combination([(atom, c // k) for atom, c in terms if c % k == 0], offset // k)
    if whole != Const(0):
        # (k*x + a) // k = x + a // k
        return add(whole, _floordiv_constant(sub(a, combination([(whole, k)])), k))
    if not terms:
        return Const(offset // k)
    common = math.gcd(k, *(c for _, c in terms))
    if common > 1:
        # (g*x + c) // (g*k) = (x + c // g) // k
        return _floordiv_constant(combination([(x, c // common) for x, c in terms], offset // common), k // common)
    if offset == 0 and all(c < 0 for _, c in terms):
        # (-a) // k = -((a + k - 1) // k)
        return neg(_floordiv_constant(combination([(a, -1)], k - 1), k))
    match a:
        case FloorDiv(inner, Const(j)) if j > 0:
            # (a // j) // k = a // (j*k), j, k > 0
            return _floordiv_constant(inner, j * k)
    return settled(FloorDiv(a, Const(k)))


def _divides(b: Expr, a: Expr) -> bool:
    return isinstance(b, Const) and a.divisor % b.value == 0


def _refuse_zero(divisor: Expr) -> None:
    if 0 in divisor.range:
        raise ValueError(f"the divisor {divisor} may be 0: its range is {divisor.range}")
