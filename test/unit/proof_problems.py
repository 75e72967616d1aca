"""Random small grids, contracts and windows, and what is true of them by looking at every step."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from hypothesis import strategies as st

from mosaic_grid import symbolic as sym
from mosaic_grid.symbolic.contracts import Contract
from mosaic_grid.symbolic.proofs import Grid, Window

ANY_STEP = sym.Range(0, 2**31 - 2)
N = sym.parameter("n", sym.Range(0, 3))
M = sym.parameter("m", sym.Range(-2, 4), divisor=2)
INPUTS = (N, M)
INDICES = tuple(sym.parameter(f"d{axis}", ANY_STEP) for axis in range(3))
RANGES = {str(p): p.range for p in INPUTS}
Values = Mapping[str, int]
Point = tuple[int, ...]


@st.composite
def exprs(draw: st.DrawFn, leaves: Sequence[sym.Expr], depth: int = 2) -> sym.Expr:
    """A quasi-affine expression; some wrap around."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        leaf = draw(st.sampled_from([*leaves, sym.constant(draw(st.integers(-2, 3)))]))
        return sym.mul(leaf, sym.constant(draw(st.sampled_from([1, 1, 1, 2, -1, 3]))))
    a, b = (draw(exprs(leaves, depth - 1)) for _ in range(2))
    k = sym.constant(draw(st.integers(1, 4)))
    made: Callable[[], sym.Expr] = draw(
        st.sampled_from(
            [
                lambda: sym.add(a, b),
                lambda: sym.sub(a, b),
                lambda: sym.minimum(a, b),
                lambda: sym.maximum(a, b),
                lambda: sym.floordiv(a, k),
                lambda: sym.ceildiv(a, k),
                lambda: sym.mod(a, k),
                lambda: sym.truncdiv(a, k),
                lambda: sym.truncrem(a, k),
                lambda: sym.absolute(a),
                lambda: sym.select(sym.comparison("<", a, b), b, k),
                lambda: sym.select(sym.comparison("!=", sym.mod(a, k), sym.constant(0)), a, b),
                lambda: sym.wrap(a, 3, True),
                lambda: sym.wrap(a, 2, False, cast=True),
            ]
        )
    )
    return made()


def truths(leaves: Sequence[sym.Expr]) -> st.SearchStrategy[sym.Expr]:
    """Comparisons, and both of two or either."""
    relations: st.SearchStrategy[sym.Relation] = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    compared = st.builds(sym.comparison, relations, exprs(leaves, 1), exprs(leaves, 1))
    return st.one_of(
        compared, st.builds(sym.conjunction, compared, compared), st.builds(sym.disjunction, compared, compared)
    )


@st.composite
def grids(draw: st.DrawFn, inputs: Sequence[sym.Expr] = INPUTS) -> Grid:
    """One to three dimensions of a few steps, some bounds unknown, some contracts."""
    rank = draw(st.sampled_from([1, 2, 2, 3]))
    most = sym.constant({1: 7, 2: 4, 3: 3}[rank])
    unknown = st.builds(sym.minimum, st.just(most), exprs(inputs, 1))
    bounds = [draw(st.one_of(st.integers(1, most.range.hi).map(sym.constant), unknown)) for _ in range(rank)]
    meanings = [draw(st.sampled_from(["parallel", "arbitrary"])) for _ in range(rank)]
    conditions = draw(st.lists(truths(inputs), max_size=2))
    contracts = tuple(Contract(str(condition), condition) for condition in conditions)
    return Grid(tuple(bounds), tuple(meanings), contracts)


@st.composite
def windows(draw: st.DrawFn, grid: Grid, inputs: Sequence[sym.Expr] = INPUTS, rank: int | None = None) -> Window:
    """A window over one or two dimensions of an array, some given by elements, some guarded."""
    rank = draw(st.integers(1, 2)) if rank is None else rank
    indices = INDICES[: len(grid.bounds)]
    leaves = (*indices * 2, *(sym.mod(d, sym.constant(2)) for d in indices), *inputs)
    index = tuple(draw(exprs(leaves, draw(st.integers(0, 2)))) for _ in range(rank))
    block = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    array = tuple(sym.constant(draw(st.integers(1, 7))) for _ in range(rank))
    strides, offsets = block, (0,) * rank
    if draw(st.integers(0, 2)) == 0:
        strides = tuple(draw(st.integers(1, 3)) for _ in range(rank))
        offsets = tuple(draw(st.integers(-2, 2)) for _ in range(rank))
    guards = (draw(truths(leaves)),) if draw(st.integers(0, 4)) == 0 else ()
    return Window(index, block, array, strides, offsets, guards)


@dataclasses.dataclass(frozen=True)
class World:
    """Inputs that keep the contracts, and the steps that they give."""

    values: Values
    bounds: Point
    steps: tuple[Point, ...]


def value(expr: sym.Expr, values: Values) -> int:
    """The expression's value where the unknowns have these."""
    return sym.value_of(expr, {leaf: values[str(leaf)] for leaf in sym.leaves_of(expr)})


def inputs_of(grid: Grid) -> Iterator[Values]:
    """All inputs that keep the contracts."""
    for n, m in itertools.product(range(4), (-2, 0, 2, 4)):
        values = {"n": n, "m": m}
        if all(value(contract.condition, values) for contract in grid.contracts):
            yield values


def worlds(grid: Grid) -> list[World]:
    """All that the contracts allow, in order."""
    return [world_of(grid, values) for values in inputs_of(grid)]


def world_of(grid: Grid, values: Values) -> World:
    """The steps for these inputs, in order."""
    bounds = tuple(value(bound, values) for bound in grid.bounds)
    return World(values, bounds, tuple(itertools.product(*map(range, bounds))))


def completed(witness: sym.Witness) -> Values:
    """A witness's inputs; those it leaves out don't matter."""
    return {"n": 0, "m": 0, **dict(witness.values)}


def at(step: Point, world: World) -> Values:
    """The values of all names at a step."""
    return {**world.values, **{f"d{axis}": place for axis, place in enumerate(step)}}


def index_at(window: Window, step: Point, world: World) -> Point:
    """What the index map gives at a step."""
    return tuple(value(index, at(step, world)) for index in window.index)


def is_seen(window: Window, step: Point, world: World) -> bool:
    """Whether the guards hold."""
    return all(value(guard, at(step, world)) for guard in window.guards)


def elements(window: Window, index: Point) -> tuple[range, ...]:
    """What a window shows in each dimension."""
    starts = [
        place * stride + offset for place, stride, offset in zip(index, window.strides, window.offsets, strict=True)
    ]
    return tuple(range(start, start + size) for start, size in zip(starts, window.block, strict=True))


def overlap(one: Sequence[range], other: Sequence[range]) -> bool:
    """Whether two boxes share an element."""
    return all(a.start < b.stop and b.start < a.stop for a, b in zip(one, other, strict=True))
