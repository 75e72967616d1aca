"""What is told of windows without isl: it is never another answer than isl's, and it is there for the usual windows."""

from __future__ import annotations

import dataclasses
import itertools

import proof_problems as pp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mosaic_grid import symbolic as sym
from mosaic_grid.symbolic import obvious, proofs
from mosaic_grid.symbolic.contracts import Contract
from mosaic_grid.symbolic.problem import Grid, Window

c = sym.constant
D0, D1 = pp.INDICES[:2]
N = sym.parameter("n", sym.Range(-3, 9))
NOBODY = sym.Unknown("nobody asked for a proof")
quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def window(*index: sym.Expr, blocks: tuple[int, ...]) -> Window:
    """Blocks of one element."""
    return Window(index, (1,) * len(index), tuple(map(c, blocks)))


def grid(*bounds: sym.Expr, least: int = 1) -> Grid:
    """A grid of which nobody knows `n`, but that it is so much at least; no proof is asked for."""
    runs = Contract("n", sym.comparison(">=", N, c(least)))
    return Grid(bounds, contracts=(runs,), opaque=frozenset({"n"}), proofs=False)


NEVER = sym.comparison("!=", D0, D1)
"""Of a grid of one step."""


def entry(place: sym.Expr, most: int, table: str = "t") -> sym.Expr:
    """What a table holds at a place, from 0 on."""
    return sym.load(table, (place,), sym.Range(0, most))


@pytest.mark.parametrize(
    ("bounds", "shown", "answer"),
    [
        ((2, 4), window(sym.add(D0, sym.mul(c(2), D1)), blocks=(8,)), True),
        ((2, 3), window(sym.add(D0, sym.mul(c(2), D1)), blocks=(8,)), False),
        ((4,), window(sym.sub(c(3), D0), blocks=(4,)), True),
        ((4,), window(D0, sym.sub(c(3), D0), blocks=(4, 4)), False),
        ((4, 3), window(D0, sym.select(sym.comparison("==", D1, c(0)), c(1), c(0)), blocks=(4, 2)), True),
        ((4, 3), window(D0, sym.floordiv(D0, c(2)), blocks=(4, 2)), False),
        ((4,), window(sym.minimum(D0, N), blocks=(1,)), False),
        ((0, 4), window(sym.sub(c(3), D1), blocks=(4,)), True),
        ((600,), window(sym.sub(c(599), D0), blocks=(600,)), False),
    ],
)
def test_covered(bounds: tuple[int, ...], shown: Window, answer: bool) -> None:
    """Indices that together take all their values in a few steps are counted; what may not is left to isl."""
    assert obvious.covered(Grid(tuple(map(c, bounds))), shown) is answer


def check_static_coverage(data: st.DataObject) -> None:
    """Of a grid of few steps the answer is what looking at every step says, unless an index is one of the grid."""
    bounds = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    leaves = pp.INDICES[: len(bounds)]
    index = tuple(data.draw(pp.exprs(leaves)) for _ in range(data.draw(st.integers(1, 2))))
    sizes = tuple(data.draw(st.integers(1, 5)) for _ in index)
    asked = Grid(tuple(map(c, bounds)))
    shown = {
        tuple(pp.value(i, {f"d{axis}": place for axis, place in enumerate(step)}) for i in index)
        for step in itertools.product(*map(range, bounds))
    }
    covers = set(itertools.product(*map(range, sizes))) <= shown
    told = obvious.covered(asked, window(*index, blocks=sizes))
    if told:
        # without a step there is nothing to cover
        assert covers or not shown
    elif len(index) == 1 and index[0] not in leaves:
        assert not covers


def test_static_coverage() -> None:
    """Windows over static grids, against every step."""
    settings(max_examples=300, deadline=None, suppress_health_check=quiet)(given(st.data())(check_static_coverage))()


@pytest.mark.parametrize(
    ("bounds", "shown", "nobody"),
    [
        # some n is large enough
        ((N, c(4)), window(D0, D1, blocks=(9, 4)), True),
        ((N, c(4)), window(D0, D1, blocks=(10, 4)), False),
        ((N, c(4)), window(D0, D1, blocks=(9, 5)), False),
        # a table may hold each block
        ((c(2), N), window(D0, entry(D1, 3), blocks=(2, 4)), True),
        ((c(2), N), window(D0, entry(D1, 3), blocks=(2, 5)), False),
        ((c(2), N), window(D0, sym.add(entry(D1, 3), c(1)), blocks=(2, 4)), False),
        # one entry, or one index, can't be two numbers at a time
        ((c(4),), window(entry(D0, 3), entry(D0, 3), blocks=(2, 2)), False),
        ((c(4),), window(entry(D0, 3), entry(D0, 3, "u"), blocks=(2, 2)), True),
        ((c(4),), window(D0, D0, blocks=(2, 2)), False),
        ((c(2), c(2)), window(D0, sym.add(D0, D1), blocks=(2, 3)), False),
        # one entry has one range, whatever two reads of it know
        (
            (c(1), c(1)),
            window(sym.select(sym.comparison("!=", D0, D1), entry(D0, 1), entry(D0, 2)), blocks=(3,)),
            False,
        ),
        # behind its end a table may hold anything else
        ((N,), window(sym.select(sym.comparison("<", D0, c(5)), entry(D0, 3), entry(D0, 0, "u")), blocks=(4,)), True),
        ((N,), window(sym.select(sym.comparison(">", D0, c(5)), entry(D0, 3), entry(D0, 0, "u")), blocks=(4,)), False),
    ],
)
def test_coverage_that_may_be(bounds: tuple[sym.Expr, ...], shown: Window, nobody: bool) -> None:
    """That a block may be written is told without isl where the values that write it are easy to find."""
    verdict = proofs.covered(grid(*bounds), shown)
    assert (verdict == NOBODY) is nobody
    proved = proofs.covered(dataclasses.replace(grid(*bounds), proofs=True), shown)
    assert isinstance(verdict, sym.Refuted) == isinstance(proved, sym.Refuted)


def test_an_index_below_a_bound_that_nobody_knows() -> None:
    """With the least number of steps that there may be a window is within its array, or surely isn't."""
    shown = window(D0, blocks=(2,))
    bound = sym.ceildiv(N, c(2))
    assert proofs.meets_array(grid(N), shown) == NOBODY
    assert proofs.meets_array(grid(N, least=2), shown) == NOBODY
    assert isinstance(proofs.meets_array(grid(N, least=3), shown), sym.Refuted)
    assert proofs.meets_array(grid(bound, least=-3), shown) == NOBODY
    assert isinstance(proofs.meets_array(grid(bound, least=5), shown), sym.Refuted)


@st.composite
def hidden_problems(draw: st.DrawFn) -> tuple[Grid, Window]:
    """A grid of which no input is known, and a window of indices, inputs and entries of tables as people write them."""
    drawn = draw(pp.grids())
    places = pp.INDICES[: len(drawn.bounds)]
    part = st.one_of(
        st.sampled_from([*places, c(0), *pp.INPUTS]),
        st.builds(entry, st.sampled_from(places), st.integers(0, 3), st.sampled_from(["t", "u"])),
    )
    chosen = st.builds(sym.select, pp.truths(places), part, part)
    moved = st.builds(sym.add, part, st.sampled_from([*map(c, (-1, 1)), *pp.INPUTS, *places]))
    index = tuple(draw(st.one_of(part, part, chosen, moved)) for _ in range(draw(st.integers(1, 2))))
    asked = dataclasses.replace(drawn, opaque=frozenset(pp.RANGES))
    return asked, window(*index, blocks=tuple(draw(st.integers(1, 4)) for _ in index))


def check_hidden(problem: tuple[Grid, Window]) -> None:
    """What is refuted where proofs are asked for is refuted where none is, and the other way round."""
    asked, shown = problem
    for question in (proofs.covered, proofs.meets_array):
        verdict, without = (question(dataclasses.replace(asked, proofs=each), shown, 30_000) for each in (True, False))
        if "too complex" not in f"{verdict} {without}":
            assert isinstance(without, sym.Refuted) == isinstance(verdict, sym.Refuted)


def test_hidden() -> None:
    """The shortcuts of who asks for no proof, against isl."""
    settings(max_examples=150, deadline=None, suppress_health_check=quiet)(given(hidden_problems())(check_hidden))()


@pytest.mark.full
def test_hidden_in_thousands() -> None:
    """The same, of thousands of problems."""
    settings(max_examples=4000, deadline=None, suppress_health_check=quiet)(given(hidden_problems())(check_hidden))()
