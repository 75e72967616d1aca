"""Expressions as they are printed, with the range and divisor beside them, and verdicts about them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mosaic_grid import symbolic as sym

I32 = sym.type_range(32, True)
N = sym.parameter("n", I32)
P = sym.parameter("p", sym.Range(0, 1000))
I = sym.parameter("i", sym.Range(0, 7))  # noqa: E741
J = sym.parameter("j", sym.Range(0, 7))


def c(value: int) -> sym.Expr:
    """A constant."""
    return sym.constant(value)


def i32(expr: sym.Expr) -> sym.Expr:
    """As an i32 holds it."""
    return sym.wrap(expr, 32, True)


CASES = [
    (sym.minimum(c(5), sym.ceildiv(P, c(128))), "min(5, ceildiv(p, 128))", (0, 5), 1),
    (sym.neg(sym.floordiv(sym.neg(P), c(128))), "ceildiv(p, 128)", (0, 8), 1),
    (sym.floordiv(i32(sym.add(N, c(127))), c(128)), "ceildiv(n, 128)", (-(2**24), 2**24 - 1), 1),
    (sym.neg(sym.floordiv(i32(sym.neg(N)), c(128))), "ceildiv(n, 128)", (1 - 2**24, 2**24), 1),
    (i32(sym.add(N, c(1))), "n + 1", (-(2**31), 2**31 - 1), 1),
    (i32(sym.sub(i32(sym.add(N, c(1))), c(1))), "n", (-(2**31), 2**31 - 1), 1),
    (i32(sym.mul(N, c(24))), "24*n", (-(2**31), 2**31 - 8), 8),
    (sym.wrap(sym.add(P, c(2**31)), 32, True), "p - 2147483648", (-(2**31), 1000 - 2**31), 1),
    (sym.mul(c(6), sym.parameter("x", sym.Range(0, 40), divisor=4)), "6*x", (0, 240), 24),
    (sym.wrap(N, 8, True, cast=True), "i8(n)", (-128, 127), 1),
    (sym.wrap(N, 32, False, cast=True), "ui32(n)", (0, 2**32 - 1), 1),
    (sym.sub(P, sym.mod(P, c(128))), "128*(p // 128)", (0, 896), 128),
    (sym.add(sym.mul(c(128), sym.floordiv(P, c(128))), sym.mod(P, c(128))), "p", (0, 1000), 1),
    (sym.neg(sym.floordiv(P, c(128))), "-(p // 128)", (-7, 0), 1),
    (sym.floordiv(sym.floordiv(P, c(4)), c(8)), "p // 32", (0, 31), 1),
    (sym.floordiv(sym.add(sym.mul(P, c(128)), I), c(128)), "p", (0, 1000), 1),
    (sym.floordiv(sym.mul(c(2), P), c(3)), "2*p // 3", (0, 666), 1),
    (sym.mul(c(3), sym.mod(P, c(100))), "3*(p % 100)", (0, 297), 3),
    (sym.truncdiv(N, c(128)), "div(n, 128)", (-(2**24), 2**24 - 1), 1),
    (sym.truncrem(N, c(128)), "rem(n, 128)", (-127, 127), 1),
    (sym.mul(P, sym.add(I, c(1))), "(i + 1)*p", (0, 8000), 1),
    (sym.sub(c(5), I), "5 - i", (-2, 5), 1),
    (sym.neg(sym.add(I, J)), "-i - j", (-14, 0), 1),
    (sym.select(sym.comparison(">", N, c(16)), c(32), c(16)), "where(n > 16, 32, 16)", (16, 32), 16),
    (sym.select(sym.comparison("<", N, c(1)), c(1), N), "max(1, n)", (1, 2**31 - 1), 1),
    (sym.clamp(c(0), N, c(5)), "min(5, max(0, n))", (0, 5), 1),
    (sym.clamp(c(3), I, c(3)), "3", (3, 3), 3),
    (sym.comparison("!=", sym.sign(N), c(1)), "n <= 0", (0, 1), 1),
    (sym.load("table", [I], sym.Range(0, 10)), "table[i]", (0, 10), 1),
    (sym.load("table", [I, sym.floordiv(J, c(2)), c(0)], sym.Range(0, 10)), "table[i, j // 2, 0]", (0, 10), 1),
    (
        sym.conjunction(
            sym.comparison(">", N, c(3)), sym.disjunction(sym.comparison("<", I, J), sym.comparison("==", P, c(3)))
        ),
        "(i < j or p == 3) and n > 3",
        (0, 1),
        1,
    ),
]


@pytest.mark.parametrize(("expr", "text", "ends", "divisor"), CASES, ids=[case[1] for case in CASES])
def test_printed_with_its_facts(expr: sym.Expr, text: str, ends: tuple[int, int], divisor: int) -> None:
    """An expression reads as a person writes it, and its facts are as tight as intervals allow."""
    assert (str(expr), sym.range_of(expr), sym.divisor_of(expr)) == (text, sym.Range(*ends), divisor)


def test_what_wraps_is_told_apart_from_what_cannot() -> None:
    """`wraps_in` lists the sum that may overflow, and nothing where the range proves that it can't."""
    assert [str(w) for w in sym.wraps_in(sym.floordiv(i32(sym.add(N, c(127))), c(128)))] == ["n + 127"]
    assert sym.wraps_in(i32(sym.add(P, c(127)))) == ()


def test_a_wider_wrap_does_not_undo_a_narrower_one() -> None:
    """Only a wrap to as many bits or fewer makes an inner one superfluous."""
    narrow = sym.wrap(sym.add(I, c(125)), 8, True)
    wide = i32(sym.add(sym.mul(narrow, c(2**30)), N))
    point = {I: 7, N: 0}
    assert sym.value_of(wide, point) == 0
    assert [str(w) for w in sym.wraps_in(wide)] == ["1073741824*(i + 125) + n", "i + 125"]
    assert sym.value_of(sym.wrap(sym.sub(narrow, c(125)), 4, True), point) == 7


def test_a_chain_of_products_stays_short() -> None:
    """Thousands of products modulo 2**32 leave one coefficient below 2**32, where the exact one has 7000 digits."""
    expr: sym.Expr = N
    for _ in range(1500):
        expr = i32(sym.mul(i32(sym.add(expr, c(3))), c(65537)))
    # 65537**k = 1 + k*65536  (mod 2**32)
    assert str(expr).startswith(f"{1 + 1500 * 65536}*n ")
    assert sym.value_of(expr, {N: -3}) == 3 * sum(1 + k * 65536 for k in range(1, 1500)) % 2**32


def test_a_coefficient_is_reduced_only_where_that_helps() -> None:
    """A sum that fits its type stays as it is, and a coefficient that is -1 modulo 2**bits is -1."""
    bit = sym.parameter("b", sym.Range(0, 1))
    unsigned = sym.wrap(sym.mul(c(2**32 - 1), bit), 32, False)
    assert (str(unsigned), sym.wraps_in(unsigned)) == ("4294967295*b", ())
    signed = i32(sym.mul(c(2**32 - 1), bit))
    assert (str(signed), sym.range_of(signed)) == ("-b", sym.Range(-1, 0))


def test_what_is_shared_is_not_written_out_without_end() -> None:
    """Sixty steps that each use the one before twice are built, compared and printed at once, long parts as dots."""

    def doubled() -> sym.Expr:
        expr: sym.Expr = N
        for k in range(60):
            expr = sym.select(sym.comparison("<", expr, c(k)), i32(sym.mul(expr, expr)), i32(sym.mul(c(3), expr)))
        return expr

    expr = doubled()
    assert expr.size > 2**60
    assert len(str(expr)) < 5000
    assert str(expr).startswith("where(")
    assert "..." in str(expr)
    assert hash(expr) == hash(doubled())
    assert expr != sym.add(expr, c(1))
    assert sym.leaves_of(expr) == (N,)


def test_equal_sums_are_equal_however_they_were_built() -> None:
    """Terms are collected in one order."""
    assert sym.add(P, I) == sym.add(I, P)
    assert sym.mul(P, I) == sym.mul(I, P)
    assert sym.sub(sym.add(P, I), I) == P


@pytest.mark.parametrize("divide", [sym.floordiv, sym.ceildiv, sym.mod, sym.truncdiv, sym.truncrem])
def test_a_divisor_that_may_be_zero_is_refused(divide: object) -> None:
    """No division guesses what dividing by 0 gives."""
    assert callable(divide)
    with pytest.raises(ValueError, match="may be 0"):
        divide(N, I)


def test_verdicts() -> None:
    """Proved by the range, refuted with a witness where nothing satisfies it, unknown with the reason otherwise."""
    assert sym.compare(P, ">=", 0) == sym.Proved()
    assert sym.compare(sym.add(P, c(1)), ">", P) == sym.Proved()
    assert sym.compare(P, ">", 1000) == sym.Refuted(sym.Witness((("p", 0),)))
    assert sym.compare(c(3), "==", 4) == sym.Refuted()
    assert sym.compare(sym.add(sym.mul(c(2), P), c(1)), "!=", 8) == sym.Proved()
    assert sym.compare(P, ">=", 1) == sym.Unknown("p is in [0, 1000]")
    reason = "n + 1 is in [-2147483648, 2147483647], as n + 1 may wrap around"
    assert sym.compare(i32(sym.add(N, c(1))), ">=", 1) == sym.Unknown(reason)


def test_ranges_are_never_empty() -> None:
    """An empty range is a mistake of the caller's, and so is a divisor without a multiple in the range."""
    with pytest.raises(ValueError, match="empty range"):
        sym.Range(1, 0)
    with pytest.raises(ValueError, match="empty range"):
        sym.parameter("x", sym.Range(1, 7), divisor=8)


def test_may_wrap() -> None:
    """The ends of the type are in, the next integers are not."""
    assert not sym.may_wrap(sym.Range(-128, 127), 8, True)
    assert sym.may_wrap(sym.Range(0, 128), 8, True)
    assert not sym.may_wrap(sym.Range(0, 255), 8, False)
    assert sym.may_wrap(sym.Range(-1, 0), 8, False)


def test_pure() -> None:
    """The package imports neither MLIR nor JAX."""
    check = "import sys, mosaic_grid.symbolic; print([m for m in sys.modules if m.split('.')[0] in ('jax', 'jaxlib')])"
    run = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
