"""What is known of sums over all elements of arrays, against every content of the arrays that contracts allow."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import proof_problems as pp
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mosaic_grid import symbolic as sym
from mosaic_grid.symbolic import proofs
from mosaic_grid.symbolic.contracts import Contract
from mosaic_grid.symbolic.proofs import Grid

COUNT = 3
RANGES = {"l": sym.Range(-1, 2), "k": sym.Range(0, 1)}
L, K = (sym.load(name, (), values) for name, values in RANGES.items())
N = sym.parameter("n", sym.Range(-2, 3))
D0 = pp.INDICES[0]
c = sym.constant
BODIES = (
    L,
    sym.floordiv(L, c(2)),
    sym.ceildiv(sym.sub(c(1), L), c(2)),
    sym.mod(L, c(2)),
    sym.maximum(L, c(0)),
    sym.minimum(L, K),
    sym.absolute(L),
    sym.select(sym.comparison("==", L, c(0)), c(0), sym.add(L, c(2))),
    sym.add(sym.mul(c(2), L), K, N),
)
World = Mapping[str, int | tuple[int, ...]]


def value(expr: sym.Expr, world: World, place: int | None = None) -> int:
    """The value of an expression, of elements those at a place."""

    def of(leaf: sym.Expr) -> int:
        match leaf:
            case sym.Total(body=body):
                return sum(value(body, world, at) for at in range(COUNT))
            case sym.Load(name, index):
                array = world[name]
                assert isinstance(array, tuple)
                at = value(index[0], world) if index else place
                assert at is not None
                return array[at]
        number = world[str(leaf)]
        assert isinstance(number, int)
        return number

    return sym.value_of(expr, {leaf: of(leaf) for leaf in sym.leaves_of(expr)})


def worlds(contracts: list[sym.Expr], about: sym.Expr) -> Iterator[World]:
    """All inputs and arrays that keep the contracts at every place; what nobody speaks of is 0."""
    named = {leaf.name for expr in (about, *contracts) for leaf in sym.inputs_of(expr)}
    of_l, of_k = (range(r.lo, r.hi + 1) if name in named else [0] for name, r in RANGES.items())
    arrays = itertools.product(itertools.product(of_l, repeat=COUNT), itertools.product(of_k, repeat=COUNT))
    for n, (array, other) in itertools.product(range(-2, 4) if "n" in named else [0], arrays):
        world: World = {"n": n, "l": array, "k": other}
        if all(value(kept, world, at) for kept in contracts for at in _places(kept)):
            yield world


def _places(contract: sym.Expr) -> range:
    """The places that a contract is asked at: one for what is the same at all of them."""
    varies = any(isinstance(leaf, sym.Load) and not leaf.index for leaf in sym.leaves_of(contract))
    return range(COUNT if varies else 1)


def sums() -> st.SearchStrategy[sym.Expr]:
    """Sums of formulas, most often of the elements themselves."""
    return st.sampled_from((L, L, *BODIES)).map(lambda body: sym.total(body, (COUNT,)))


def compared(left: st.SearchStrategy[sym.Expr], right: st.SearchStrategy[sym.Expr]) -> st.SearchStrategy[sym.Expr]:
    """A comparison."""
    relations: st.SearchStrategy[sym.Relation] = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    return st.builds(sym.comparison, relations, left, right)


NUMBERS = st.one_of(st.integers(-2, 4).map(c), st.just(N))
READS = st.sampled_from([sym.load("l", (c(0),), RANGES["l"]), sym.load("l", (c(2),), RANGES["l"])])
PROMISES = st.one_of(
    compared(sums(), NUMBERS),
    compared(st.just(L), NUMBERS),
    compared(READS, st.one_of(NUMBERS, sums())),
    compared(sums(), sums()),
    compared(st.sampled_from(BODIES), st.one_of(NUMBERS, st.just(K))),
)
quiet = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def promised(conditions: list[sym.Expr]) -> tuple[Contract, ...]:
    """The contracts."""
    return tuple(Contract(str(condition), condition) for condition in conditions)


def check_extent(expr: sym.Expr, conditions: list[sym.Expr]) -> None:
    """The range holds every value; it is exact of the sum of elements that only numbers bound."""
    every = list(worlds(conditions, expr))
    found = {value(expr, world) for world in every}
    assume(found)
    values = proofs.extent(expr, promised(conditions))
    assert isinstance(values, sym.Range)
    assert min(found) in values
    assert max(found) in values
    known = proofs.narrowed(promised(conditions))
    for name in RANGES.keys() & known.keys():
        elements = {each for world in every for each in world[name]}  # type: ignore[union-attr]
        assert min(elements) in known[name].range
        assert max(elements) in known[name].range


def check_verdict(bad: sym.Expr, conditions: list[sym.Expr], arrays: frozenset[str]) -> None:
    """What is proved never is; what is refuted is so for arrays with what the witness says, whatever else they hold."""
    grid = Grid((c(COUNT),), ("arbitrary",), promised(conditions), arrays=arrays)
    every = list(worlds(conditions, bad))
    assume(every)
    cases = [(world, step) for world in every for step in range(COUNT) if value(bad, {**world, "d0": step})]
    verdict = proofs.never(grid, [bad])
    match verdict:
        case sym.Proved():
            assert not cases
        case sym.Refuted(witness):
            (_, (step,)) = witness.points[0]
            elements = [sym.load(name, (c(at),), RANGES[name]) for name in RANGES for at in range(COUNT)]
            told = {"n": N, **{str(element): element for element in elements}}
            told |= {whole.name: whole for body in BODIES for whole in sym.totals_of(sym.total(body, (COUNT,)))}
            like = [w for w in every if all(value(told[name], w) == number for name, number in witness.values)]
            assert like
            assert all((world, step) in cases for world in like)


def reading(at: sym.Expr) -> sym.Expr:
    """An element of the first array."""
    return sym.load("l", (at,), RANGES["l"])


BAD = st.one_of(
    compared(sums(), NUMBERS),
    compared(st.just(D0), sums()),
    compared(st.just(reading(D0)), NUMBERS),
    compared(sums(), st.just(sym.add(reading(D0), reading(c(1))))),
    compared(st.just(sym.add(reading(c(0)), reading(c(1)), reading(c(2)))), st.one_of(NUMBERS, sums())),
)
ARRAYS = st.sampled_from([frozenset[str](), frozenset({"l"}), frozenset({"l", "k"})])


@settings(max_examples=100, deadline=None, suppress_health_check=quiet)
@given(st.one_of(sums(), st.just(N), READS), st.lists(PROMISES, max_size=3))
def test_ranges(expr: sym.Expr, conditions: list[sym.Expr]) -> None:
    """No value is left out of a range, whatever the contracts say of sums and of elements."""
    check_extent(expr, conditions)


@settings(max_examples=100, deadline=None, suppress_health_check=quiet)
@given(BAD, st.lists(PROMISES, max_size=3), ARRAYS)
def test_verdicts(bad: sym.Expr, conditions: list[sym.Expr], arrays: frozenset[str]) -> None:
    """Verdicts on claims about sums and elements are true."""
    check_verdict(bad, conditions, arrays)


@st.composite
def dense_problems(draw: st.DrawFn) -> tuple[sym.Expr, list[sym.Expr]]:
    """Claims about one sum and up to two elements of an array whose elements are only bounded."""
    body, ends = draw(
        st.sampled_from([(L, NUMBERS), (sym.floordiv(sym.add(L, c(1)), c(2)), st.integers(-2, 4).map(c))])
    )
    whole = sym.total(body, (COUNT,))
    ordered: st.SearchStrategy[sym.Relation] = st.sampled_from(["<", "<=", ">", ">="])
    bounds = draw(st.lists(st.builds(sym.comparison, ordered, st.just(L), ends), max_size=2))
    promise = draw(st.lists(compared(st.just(whole), NUMBERS), max_size=1))
    read = draw(st.sampled_from([reading(D0), reading(c(1)), sym.add(reading(D0), reading(c(0)))]))
    claims = [
        compared(st.just(whole), NUMBERS),
        compared(st.just(read), NUMBERS),
        compared(st.just(read), st.just(whole)),
    ]
    return draw(st.one_of(claims)), [*bounds, *promise]


@settings(max_examples=100, deadline=None, suppress_health_check=quiet)
@given(dense_problems())
def test_exact_verdicts(problem: tuple[sym.Expr, list[sym.Expr]]) -> None:
    """Where elements are anything between two ends every claim is proved or refuted."""
    bad, conditions = problem
    every = list(worlds(conditions, bad))
    assume(every)
    grid = Grid((c(COUNT),), ("arbitrary",), promised(conditions), arrays=frozenset({"l"}))
    verdict = proofs.never(grid, [bad])
    fails = any(value(bad, {**world, "d0": step}) for world in every for step in range(COUNT))
    if "too complex" not in str(verdict):
        assert isinstance(verdict, sym.Refuted if fails else sym.Proved)
    check_verdict(bad, conditions, frozenset({"l"}))


@pytest.mark.full
def test_in_thousands() -> None:
    """The same, of thousands of problems."""
    many = settings(max_examples=800, deadline=None, suppress_health_check=quiet)
    many(given(st.one_of(sums(), st.just(N), READS), st.lists(PROMISES, max_size=3))(check_extent))()
    many(given(BAD, st.lists(PROMISES, max_size=3), ARRAYS)(check_verdict))()
