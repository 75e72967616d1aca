"""What would be enough to promise of an input, and what a witness says of arithmetic that overflows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import proof_problems as pp
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mosaic_grid import symbolic as sym
from mosaic_grid.symbolic import proofs
from mosaic_grid.symbolic.contracts import contracts_of
from mosaic_grid.symbolic.proofs import Grid, Window, decide
from mosaic_grid.symbolic.proofs.effort import TooComplexError

I32 = sym.type_range(32, True)
N, M = sym.parameter("n", I32), sym.parameter("m", I32)
D0 = pp.INDICES[0]
c = sym.constant
Question = Callable[[Grid, Window], sym.Verdict]


def wrapping(expr: sym.Expr) -> sym.Expr:
    """As an i32 holds it."""
    return sym.wrap(expr, 32, True)


def refuted(bound: sym.Expr, index: sym.Expr, *contracts: str, arrays: tuple[str, ...] = ()) -> sym.Witness:
    """What shows that a window on an array of 64 rows, in blocks of 8, leaves it."""
    grid = Grid((bound,), ("arbitrary",), contracts_of(contracts), arrays=frozenset(arrays), explains=True)
    verdict = proofs.meets_array(grid, Window((index,), (8,), (c(64),)))
    assert isinstance(verdict, sym.Refuted)
    return verdict.witness


LENGTH = sym.load("lengths", (D0,), I32)
TOTAL = sym.total(sym.load("lengths", (), sym.Range(-100, 100)), (10,))


@pytest.mark.parametrize(
    ("bound", "index", "arrays", "promise"),
    [
        (sym.ceildiv(N, c(8)), D0, (), "n <= 64"),
        (N, sym.sub(D0, N), (), "None"),
        (c(4), sym.add(N, D0), (), "0 <= n <= 4"),
        (c(4), sym.sub(N, c(9)), (), "9 <= n <= 16"),
        (c(2), sym.mul(c(5), sym.sub(N, D0)), (), "n == 1"),
        (c(4), sym.add(N, M), (), "None"),
        (c(4), sym.floordiv(LENGTH, c(8)), ("lengths",), "0 <= lengths[*] <= 63"),
        (c(4), sym.load("lengths", (c(2),), I32), ("lengths",), "0 <= lengths[2] <= 7"),
        (sym.floordiv(TOTAL, c(8)), D0, ("lengths",), "sum(lengths) <= 71"),
        (c(4), sym.parameter("x['a']", I32), (), "None"),
    ],
)
def test_what_would_be_enough(bound: sym.Expr, index: sym.Expr, arrays: tuple[str, ...], promise: str) -> None:
    """A contract about the one input that matters, by the name that contracts use, with no end that isn't needed."""
    assert str(refuted(bound, index, arrays=arrays).enough) == promise


def test_what_is_promised_already() -> None:
    """Only what is missing is asked for, and nothing where nobody wants to know."""
    assert str(refuted(sym.ceildiv(N, c(8)), sym.sub(D0, c(1)), "n >= 1").enough) == "None"
    assert str(refuted(c(4), N, "n >= 0").enough) == "n <= 7"
    grid = Grid((N,), ("arbitrary",))
    verdict = proofs.meets_array(grid, Window((D0,), (8,), (c(64),)))
    assert isinstance(verdict, sym.Refuted)
    assert verdict.witness.enough is None


def test_coverage() -> None:
    """Blocks that nobody writes: enough steps."""
    grid = Grid((sym.minimum(N, c(8)),), ("arbitrary",), explains=True)
    verdict = proofs.covered(grid, Window((D0,), (8,), (c(64),)))
    assert isinstance(verdict, sym.Refuted)
    assert str(verdict.witness.enough) == "n >= 8"


def test_overflow_is_told() -> None:
    """Where a claim fails because a sum leaves 32 bits the witness says which; a small one without is preferred."""
    blocks = sym.floordiv(wrapping(sym.add(N, c(7))), c(8))
    assert refuted(blocks, D0).overflow == ""
    index = sym.floordiv(wrapping(sym.add(sym.minimum(N, D0), c(2**31 - 4))), c(2**28))
    told = refuted(c(8), index)
    assert told.overflow == "min(d0, n) + 2147483644 overflows 32 bits"
    assert told.points == (("only", (4,)),)
    wide = refuted(
        sym.maximum(c(1), blocks), sym.minimum(D0, sym.floordiv(wrapping(sym.mul(c(2), N)), c(2**29))), "n > 0"
    )
    assert wide.values == (("n", 2**30),)
    assert wide.overflow == "2*n overflows 32 bits"


def test_a_small_witness_where_the_first_is_too_hard(monkeypatch: pytest.MonkeyPatch) -> None:
    """What isl can't put in order is still small, and the least only where it can."""
    first = refuted(sym.ceildiv(N, c(8)), D0)
    assert first.values == (("n", 65),)

    def fail(_: object) -> None:
        raise TooComplexError

    monkeypatch.setattr(decide, "_first", fail)
    (_, value), *_ = refuted(sym.ceildiv(N, c(8)), D0).values
    assert 65 <= value <= 1024


QUESTIONS: list[Question] = [proofs.no_race, proofs.meets_array, proofs.covered]


@st.composite
def problems(draw: st.DrawFn) -> tuple[Grid, Window]:
    """Grids and windows of one input."""
    grid = draw(pp.grids((pp.N,)))
    return dataclasses.replace(grid, explains=True), draw(pp.windows(grid, (pp.N,)))


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.__name__)
def test_it_is_enough(question: Question) -> None:
    """With the promise the claim is proved, and some input that keeps it has steps."""

    def check(problem: tuple[Grid, Window]) -> None:
        grid, window = problem
        verdict = question(grid, window)
        assume(isinstance(verdict, sym.Refuted))
        assert isinstance(verdict, sym.Refuted)
        enough = verdict.witness.enough
        fails = {dict(verdict.witness.values).get("n")}
        if enough is None:
            return
        (kept,) = contracts_of([str(enough)], pp.RANGES)
        allowed = [world for world in pp.worlds(grid) if pp.value(kept.condition, world.values)]
        assert any(world.steps for world in allowed)
        assert not fails.intersection(world.values["n"] for world in allowed)
        promised = question(dataclasses.replace(grid, contracts=(*grid.contracts, kept)), window)
        assert isinstance(promised, sym.Proved) or "too complex" in str(promised)

    quiet = [HealthCheck.too_slow, HealthCheck.filter_too_much]
    settings(max_examples=60, deadline=None, suppress_health_check=quiet)(given(problems())(check))()
