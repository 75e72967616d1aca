"""Verdicts on grids whose windows are read from a table, against every content of the table that contracts allow."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping

import proof_problems as pp
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mosaic_grid import symbolic as sym
from mosaic_grid.symbolic import proofs
from mosaic_grid.symbolic.contracts import Contract
from mosaic_grid.symbolic.proofs import Grid, Window

ENTRY = sym.Range(0, 2)
ENTRIES = 3
ELEMENT = sym.load("t", (), ENTRY)
D0, D1 = pp.INDICES[:2]
INPUT = sym.parameter("n", sym.Range(0, 3))
Failure = tuple[pp.Point, ...]
Question = tuple[
    Callable[[Grid, Window], sym.Verdict], Callable[[Grid, Window, int, tuple[int, ...]], set[Failure]], bool
]


def value(expr: sym.Expr, values: Mapping[str, int], table: tuple[int, ...]) -> int:
    """The expression's value with the table's."""
    point: dict[sym.Expr, int] = {
        leaf: table[value(leaf.index[0], values, table)] if isinstance(leaf, sym.Load) else values[str(leaf)]
        for leaf in sym.leaves_of(expr)
    }
    return sym.value_of(expr, point)


@st.composite
def reads(draw: st.DrawFn) -> sym.Expr:
    """An entry of the table at a place that is in it."""
    place = draw(st.one_of(st.sampled_from([D0, D1, sym.constant(1)]), pp.exprs((D0, D1, INPUT), 1)))
    return sym.load("t", (sym.minimum(sym.maximum(place, sym.constant(0)), sym.constant(ENTRIES - 1)),), ENTRY)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Grid, Window]:
    """A grid of one or two dimensions and a window whose index reads the table."""
    rank = draw(st.integers(1, 2))
    count = st.sampled_from([sym.constant(2), sym.constant(3), INPUT, sym.minimum(INPUT, sym.constant(2))])
    bounds = tuple(
        draw(st.one_of(count, reads().map(lambda e: e if "d" not in str(e) else sym.constant(3)))) for _ in range(rank)
    )
    conditions = draw(st.lists(pp.truths((ELEMENT, INPUT)), max_size=2))
    contracts = tuple(Contract(str(condition), condition) for condition in conditions)
    opaque = frozenset({"n"} if draw(st.booleans()) else ())
    leaves = [draw(reads()), draw(reads()), *(D0, D1)[:rank], INPUT]
    index = tuple(draw(pp.exprs(leaves, draw(st.integers(0, 1)))) for _ in range(draw(st.integers(1, 2))))
    if any(str(D1) in str(part) for part in index) and rank == 1:
        index = tuple(sym.substitute(part, lambda p: sym.constant(0) if p == D1 else None) for part in index)
    sizes = tuple(sym.constant(draw(st.integers(1, 4))) for _ in index)
    return Grid(bounds, ("parallel", "parallel")[:rank], contracts, opaque), Window(index, (1,) * len(index), sizes)


def contents(grid: Grid) -> Iterator[tuple[int, tuple[int, ...]]]:
    """All inputs and tables that keep the contracts at every place."""
    for n in range(4):
        entries = [
            e for e in range(3) if all(sym.value_of(k.condition, {ELEMENT: e, INPUT: n}) for k in grid.contracts)
        ]
        # an input for which no table has an entry is one for a table without any
        of_inputs = [k.condition for k in grid.contracts if ELEMENT not in sym.leaves_of(k.condition)]
        assume(entries or not all(sym.value_of(condition, {INPUT: n}) for condition in of_inputs))
        yield from ((n, table) for table in itertools.product(entries, repeat=ENTRIES))


def shown(grid: Grid, window: Window, n: int, table: tuple[int, ...]) -> list[tuple[pp.Point, pp.Point]]:
    """The steps and the window's index there."""
    bounds = [value(bound, {"n": n}, table) for bound in grid.bounds]
    steps = itertools.product(*map(range, bounds))
    named = ((step, {"n": n, **{f"d{axis}": k for axis, k in enumerate(step)}}) for step in steps)
    return [(step, tuple(value(i, values, table) for i in window.index)) for step, values in named]


def races(grid: Grid, window: Window, n: int, table: tuple[int, ...]) -> set[Failure]:
    """The pairs of steps that share a block."""
    steps = shown(grid, window, n, table)
    return {(a, b) for (a, x), (b, y) in itertools.combinations(steps, 2) if x == y}


def strays(grid: Grid, window: Window, n: int, table: tuple[int, ...]) -> set[Failure]:
    """The steps whose window is outside the array."""
    sizes = [size.range.hi for size in window.array]
    steps = shown(grid, window, n, table)
    return {(a,) for a, x in steps if any(not 0 <= i < size for i, size in zip(x, sizes, strict=True))}


def holes(grid: Grid, window: Window, n: int, table: tuple[int, ...]) -> set[Failure]:
    """The blocks that no step writes, if there is a step."""
    steps = shown(grid, window, n, table)
    blocks = set(itertools.product(*(range(size.range.hi) for size in window.array))) if steps else set()
    return {(block,) for block in blocks.difference(x for _, x in steps)}


def check(
    problem: tuple[Grid, Window],
    question: Callable[[Grid, Window], sym.Verdict],
    failures: Callable[[Grid, Window, int, tuple[int, ...]], set[Failure]],
    exact: bool,
) -> None:
    """What is proved never fails; what is refuted fails so whatever is hidden, and only that is unknown."""
    grid, window = problem
    # by the input, where it is one, the failures under each hidden choice
    found: dict[int, list[set[Failure]]] = {}
    for n, table in contents(grid):
        found.setdefault(0 if grid.opaque else n, []).append(failures(grid, window, n, table))
    sure = {(n, failure) for n, cases in found.items() for failure in set.intersection(*cases)}
    verdict = question(grid, window)
    without_proofs = question(dataclasses.replace(grid, proofs=False), window)
    # a limit of isl may come before one of the answers
    if "too complex" not in f"{verdict} {without_proofs}":
        assert isinstance(without_proofs, sym.Refuted) == isinstance(verdict, sym.Refuted)
    match verdict:
        case sym.Proved():
            assert not any(itertools.chain.from_iterable(found.values()))
        case sym.Refuted(witness):
            steps = tuple(point for _, point in witness.points) or (witness.block,)
            n = dict(witness.values).get("n", 0)
            if exact:
                assert any(sure_steps == steps for m, sure_steps in sure if "n" not in dict(witness.values) or m == n)
            else:
                # a grid without steps, for some content, has no hole and no block either
                assert all(steps in case for case in found[n] if case) or not found[n]
        case sym.Unknown(reason):
            assert "depends on" in reason or reason == "too complex"
            # four reads of one table are six pairs of places that may be one: isl's limit may come before the answer
            if exact and "too complex" not in reason:
                assert any(itertools.chain.from_iterable(found.values()))
                assert not sure


QUESTIONS: list[Question] = [
    (proofs.no_race, races, True),
    (proofs.meets_array, strays, True),
    (proofs.covered, holes, False),
]
quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def test_a_table_whose_contract_leaves_one_value() -> None:
    """Where a contract makes all entries equal, a window that reads two of them races for sure."""
    unequal = sym.comparison(">", sym.mul(sym.constant(2), ELEMENT), INPUT)
    index = tuple(sym.load("t", (sym.minimum(sym.constant(2), d),), ENTRY) for d in (D0, D1))
    sizes = (sym.constant(2), sym.constant(3))
    grid = Grid(sizes, ("parallel", "parallel"), (Contract("2*t > n", unequal),))
    verdict = proofs.no_race(grid, Window(index, (1, 1), (sym.constant(1),) * 2))
    assert isinstance(verdict, sym.Refuted)
    assert verdict.witness.values == (("n", 2),)


def test_a_table_that_only_decides_how_it_fails() -> None:
    """A block is outside in one dimension or in the other, whatever the table holds: that is a sure failure."""
    entry = sym.load("t", (sym.minimum(sym.constant(2), D0),), ENTRY)
    window = Window((sym.sub(entry, D0), entry), (1, 1), (sym.constant(1),) * 2)
    verdict = proofs.meets_array(Grid((sym.constant(2),), ("parallel",)), window)
    assert isinstance(verdict, sym.Refuted)
    assert verdict.witness.points == (("only", (1,)),)


def test_nobody_asks_for_a_proof() -> None:
    """What a table may hold decides nothing, and that is told without isl; a sure failure is still found."""
    sizes = (sym.constant(4),)
    grid = Grid(sizes, ("arbitrary",), proofs=False)
    entries = [sym.load("t", (D0,), sym.Range(lowest, 9)) for lowest in (0, 8)]
    within, beyond = (Window((entry,), (1,), (sym.constant(8),)) for entry in entries)
    assert proofs.meets_array(grid, within) == sym.Unknown("nobody asked for a proof")
    assert isinstance(proofs.meets_array(grid, beyond), sym.Refuted)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question[0].__name__)
def test_tables(question: Question) -> None:
    """A table may hold whatever contracts allow."""
    settings(max_examples=60, deadline=None, suppress_health_check=quiet)(
        given(problems())(lambda problem: check(problem, *question))
    )()


@pytest.mark.full
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question[0].__name__)
def test_tables_in_thousands(question: Question) -> None:
    """The same, of thousands of problems."""
    settings(max_examples=2000, deadline=None, suppress_health_check=quiet)(
        given(problems())(lambda problem: check(problem, *question))
    )()
