"""Contracts: what can be written, what is refused and where, and contracts that can't be kept together."""

from __future__ import annotations

import proof_problems as pp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mosaic_grid import symbolic as sym
from mosaic_grid.symbolic.contract_syntax import ContractError, parse
from mosaic_grid.symbolic.contracts import ContradictionError, contracts_of
from mosaic_grid.symbolic.nodes import Load
from mosaic_grid.symbolic.proofs import extent, narrowed

I32 = sym.type_range(32, True)
X = sym.parameter("n", I32)
Y = sym.parameter("m", I32)
c = sym.constant


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("n >= 1", sym.comparison(">=", X, c(1))),
        ("mod(n, 8) == 0", sym.comparison("==", sym.mod(X, c(8)), c(0))),
        ("n % 8 == 0", sym.comparison("==", sym.mod(X, c(8)), c(0))),
        ("n <= 4*m", sym.comparison("<=", X, sym.mul(c(4), Y))),
        ("n*4 - -m > -3", sym.comparison(">", sym.add(sym.mul(c(4), X), Y), c(-3))),
        ("floordiv(n + 7, 8) <= min(m, 16)", sym.comparison("<=", sym.ceildiv(X, c(8)), sym.minimum(Y, c(16)))),
        ("-n // 2 == max(n, m, 3)", sym.comparison("==", sym.floordiv(sym.neg(X), c(2)), sym.maximum(X, Y, c(3)))),
        ("2*(n + m) != n", sym.comparison("!=", sym.mul(c(2), sym.add(X, Y)), X)),
        ("1 <= n <= m", sym.conjunction(sym.comparison("<=", c(1), X), sym.comparison("<=", X, Y))),
        ("%arg0 < %arg0.dim_1", sym.comparison("<", sym.parameter("%arg0", I32), sym.parameter("%arg0.dim_1", I32))),
    ],
)
def test_what_a_contract_means(text: str, meaning: sym.Expr) -> None:
    """Each form is the expression a program would give."""
    assert parse(text) == meaning


def test_a_chain_over_all_elements() -> None:
    """`array[*]` is any element, with its index left out."""
    element = sym.load("lengths", (), I32)
    wanted = sym.conjunction(sym.comparison(">=", element, c(0)), sym.comparison("<", element, c(1024)))
    assert parse("0 <= lengths[*] < 1024") == wanted
    assert sym.leaves_of(parse("t[2, 0] < 5")) == (Load("t", (c(2), c(0)), I32),)


def test_sums() -> None:
    """A sum is one of all elements: an array's, those of a formula, and sums of those taken apart."""
    shapes = {"lengths": (3, 4)}
    element = sym.load("lengths", (), sym.Range(0, 100))
    ranges = {"lengths": sym.Range(0, 100)}
    whole = sym.total(element, (3, 4))
    assert sym.range_of(whole) == sym.Range(0, 1200)
    wanted = sym.comparison("<=", whole, X)
    assert parse("sum(lengths) <= n", ranges, shapes) == parse("sum(lengths[*]) <= n", ranges, shapes) == wanted
    blocks = sym.total(sym.ceildiv(element, c(8)), (3, 4))
    assert str(blocks) == "sum(ceildiv(lengths, 8))"
    assert parse("sum(ceildiv(lengths, 8)) == 7", ranges, shapes) == sym.comparison("==", blocks, c(7))
    # sum(2*x + n) = 2*sum(x) + 12*n
    taken_apart = sym.add(sym.mul(c(2), whole), sym.mul(c(12), X))
    assert parse("sum(2*lengths + n) == 7", ranges, shapes) == sym.comparison("==", taken_apart, c(7))
    # without shapes each name in a sum is an array's
    assert {leaf.name for leaf in sym.inputs_of(parse("sum(min(a, b[*])) <= n"))} == {"a", "b", "n"}


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("n >= ", 5, "expected an integer, a name, array[*], floordiv, mod, ceildiv, min, max, sum or a parenthesis"),
        ("n", 2, "expected one of <= >= == != < >, not the end"),
        ("", 1, "expected an integer, a name"),
        ("n = 3", 3, "unexpected '='; write == for equality"),
        ("n >= 1 m", 8, "expected an operator or one of <= >= == != < >, not 'm'"),
        ("n >= $", 6, "unexpected '$'"),
        ("n*m <= 3", 2, "the product of n and m is not linear: one factor has to be an integer; give the product"),
        ("n^2 <= 3", 2, "a power is not linear"),
        ("mod(n, m) == 0", 8, "mod by m, which is not an integer"),
        ("1 < n // 0", 10, "floordiv by 0"),
        ("mod(n) == 0", 1, "mod takes 2 arguments, not 1"),
        ("abs(n) == 0", 1, "unknown function 'abs': there are floordiv, mod, ceildiv, min, max, sum"),
        ("sum(l[0]) >= 0", 1, "there is nothing to sum up in l[0]: write sum(array), or sum(... array[*] ...)"),
        ("1 + sum(3) >= 0", 5, "there is nothing to sum up in 3"),
        ("sum(l + sum(m)) >= 0", 9, "a sum in a sum: give the inner one a name of its own"),
        ("sum(l, m) >= 0", 6, "expected ')' or an operator, not ','"),
        ("sum == 0", 5, "expected '(' after sum, not '=='"),
        ("min == 0", 5, "expected '(' after min, not '=='"),
        ("(n + 1 == 0", 8, "expected ')' or an operator, not '=='"),
        ("max(n, 1 == 0", 10, "expected ')' or ',', not '=='"),
        ("l[i] >= 0", 3, "expected * or the integers of an element's index, not 'i'"),
        ("l[*, 0] >= 0", 4, "expected ']' after *"),
        ("l[] >= 0", 3, "expected * or the integers"),
        ("(" * 60 + "n" + ")" * 60 + " > 0", 41, "parentheses are nested deeper than 40"),
        ("n > " + "+".join(["1"] * 600), 1001, "a contract has at most 1000 characters"),
    ],
)
def test_a_bad_contract_is_refused_at_its_place(text: str, column: int, message: str) -> None:
    """The error has the column, what was expected, and what is there."""
    with pytest.raises(ContractError) as caught:
        contracts_of(["n >= 1", text])
    assert (caught.value.text, caught.value.column) == (text, column)
    assert caught.value.message.startswith(message)
    assert str(caught.value).startswith(f"contract '{text}', column {column}: ")


@pytest.mark.parametrize(
    ("texts", "conflict"),
    [
        (["m >= 0", "n >= 5", "n <= 9", "n <= 4"], ["n >= 5", "n <= 4"]),
        (["n >= m", "m >= k", "n < k"], ["n >= m", "m >= k", "n < k"]),
        (["mod(n, 4) == 2", "mod(n, 8) == 0", "n > 0"], ["mod(n, 4) == 2", "mod(n, 8) == 0"]),
        (["n > 0", "n > 3000000000"], ["n > 3000000000"]),
        (["1 < 0"], ["1 < 0"]),
        (["l[*] >= 3", "l[*] < 3", "n > 0"], ["l[*] >= 3", "l[*] < 3"]),
        (["l[*] >= 3", "l[0] == n", "n < 3"], ["l[*] >= 3", "l[0] == n", "n < 3"]),
        (["a[*] < b[*]", "b[*] <= a[*]"], ["a[*] < b[*]", "b[*] <= a[*]"]),
        (["n > 0", "l[*] >= 0", "sum(l) < 0"], ["l[*] >= 0", "sum(l) < 0"]),
        (["l[*] >= 0", "l[2] > n", "sum(l) == n"], ["l[*] >= 0", "l[2] > n", "sum(l) == n"]),
    ],
)
def test_contradiction_names_the_fewest(texts: list[str], conflict: list[str]) -> None:
    """The conflict is a smallest one: without any of its contracts the others can be kept."""
    with pytest.raises(ContradictionError) as caught:
        contracts_of(texts)
    assert [contract.text for contract in caught.value.conflict] == conflict
    assert all(f"'{text}'" in str(caught.value) for text in conflict)


@pytest.mark.parametrize("texts", [["a[0] < 3", "a[1] > 5"], ["n >= 5", "n <= 5"], ["t[*] >= n", "t[*] <= n"], []])
def test_contracts_that_can_be_kept(texts: list[str]) -> None:
    """Neighbours of the contradictions that are none."""
    assert [contract.text for contract in contracts_of(texts)] == texts


def test_what_contracts_prove() -> None:
    """Expressions get their extent, and inputs range and divisor."""
    kept = contracts_of(["1000 <= n", "mod(n, 256) == 0", "n <= 4*m", "m <= 10000"])
    blocks = sym.ceildiv(X, c(128))
    assert extent(sym.mod(blocks, c(4)), kept) == sym.Range(0, 2)
    assert extent(blocks, kept) == sym.Range(8, 312)
    elements = contracts_of(["t[*] >= 3", "t[*] <= n", "n < 9"])
    assert {name: p.range for name, p in narrowed(elements).items()} == {"t": sym.Range(3, 8), "n": sym.Range(3, 8)}
    known = narrowed(kept)
    assert {name: (p.range, p.divisor) for name, p in known.items()} == {
        "n": (sym.Range(1024, 39936), 256),
        "m": (sym.Range(256, 10000), 1),
    }


@settings(max_examples=300, deadline=None)
@given(pp.truths(pp.INPUTS))
def test_what_is_printed_can_be_read_back(truth: sym.Expr) -> None:
    """Of what this package prints the quasi-affine part is the syntax of contracts, with the same meaning."""
    text = str(truth)
    if any(word in text for word in ("where", "abs", "div(n", "div(m", "rem(", " and ", " or ", "not ")) or (
        sym.wraps_in(truth) or isinstance(truth, sym.Const)
    ):
        return
    try:
        again = parse(text, pp.RANGES)
    except ContractError as error:
        assert "div(" in text, error  # noqa: PT017
        return
    for n in range(4):
        for m in (-2, 0, 2, 4):
            values = {"n": n, "m": m}
            assert pp.value(again, values) == pp.value(truth, values)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.builds(str, pp.truths(pp.INPUTS)), max_size=5))
def test_conflicts_against_brute_force(texts: list[str]) -> None:
    """A set of contracts is refused exactly if no inputs keep it, and the conflict is minimal."""
    readable = []
    for text in texts:
        try:
            readable.append(text)
            parse(text, pp.RANGES)
        except ContractError:
            readable.pop()
    ranges = {**pp.RANGES, "m": sym.Range(-2, 4)}

    def kept(some: list[str]) -> bool:
        conditions = [parse(text, ranges) for text in some]
        points = ({"n": n, "m": m} for n in range(4) for m in range(-2, 5))
        return any(all(pp.value(condition, point) for condition in conditions) for point in points)

    try:
        contracts_of(readable, ranges)
    except ContradictionError as error:
        conflict = [contract.text for contract in error.conflict]
        assert not kept(conflict)
        for left_out in range(len(conflict)):
            assert kept([*conflict[:left_out], *conflict[left_out + 1 :]])
    else:
        assert kept(readable)
