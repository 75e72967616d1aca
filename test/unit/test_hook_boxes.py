"""Sharing a pipeline's grid between cores: boxes against all cells of the grid, and splits against all splits."""

from __future__ import annotations

import itertools
import math

import jax.numpy as jnp
from hypothesis import given, settings
from hypothesis import strategies as st

from mosaic_grid.jax_hook.boxes import best_splits, factorisations
from mosaic_grid.jax_hook.ragged import Ragged
from mosaic_grid.jax_hook.shares import share_of

GRIDS = st.lists(st.integers(0, 7), min_size=1, max_size=3)
CORES = st.sampled_from([1, 2, 3, 4, 6, 8, 12, 32])


@st.composite
def shared_grids(draw: st.DrawFn) -> tuple[list[int], list[bool], list[bool]]:
    """Bounds, which dimensions are parallel, and which bounds are dynamic."""
    grid = draw(GRIDS)
    flags = st.lists(st.booleans(), min_size=len(grid), max_size=len(grid))
    return grid, draw(flags), draw(flags)


def boxes(grid: list[int], parallel: list[bool], dynamic: list[bool], cores: object) -> list[list[tuple[int, ...]]]:
    """The cells that each core works on."""
    bounds = [jnp.int32(bound) if known else bound for bound, known in zip(grid, dynamic, strict=True)]
    number = int(cores)  # type: ignore[call-overload]
    found = []
    for core in range(number):
        sizes, starts = share_of(bounds, parallel, cores, core)
        ranges = [range(int(start), int(start) + int(size)) for size, start in zip(sizes, starts, strict=True)]
        found.append(list(itertools.product(*ranges)))
    return found


def smallest_largest(grid: list[int], parallel: list[bool], cores: int) -> int:
    """The size of the largest box of the best split, by trying all."""
    best = math.prod(grid)
    for parts in itertools.product(range(1, cores + 1), repeat=len(grid)):
        if math.prod(parts) == cores and all(p or part == 1 for p, part in zip(parallel, parts, strict=True)):
            best = min(best, math.prod(-(-bound // part) for bound, part in zip(grid, parts, strict=True)))
    return best


@settings(max_examples=40, deadline=None)
@given(shared_grids(), CORES)
def test_boxes_are_a_partition_with_the_smallest_largest_box(
    shared: tuple[list[int], list[bool], list[bool]], cores: int
) -> None:
    """Every cell is one core's, and no split into boxes has a smaller largest one, static or dynamic."""
    grid, parallel, dynamic = shared
    found = boxes(grid, parallel, dynamic, cores)
    assert sorted(itertools.chain.from_iterable(found)) == list(itertools.product(*map(range, grid)))
    assert max(map(len, found)) == (smallest_largest(grid, parallel, cores) if any(parallel) else math.prod(grid))


@settings(max_examples=20, deadline=None)
@given(shared_grids(), st.integers(1, 7))
def test_unknown_number_of_cores_cuts_the_best_dimension(
    shared: tuple[list[int], list[bool], list[bool]], cores: int
) -> None:
    """A traced number of cores gives a partition too, and its largest box is that of the best single dimension."""
    grid, parallel, dynamic = shared
    found = boxes(grid, parallel, dynamic, jnp.int32(cores))
    assert sorted(itertools.chain.from_iterable(found)) == list(itertools.product(*map(range, grid)))
    single = [
        -(-grid[cut] // cores) * math.prod(grid[:cut] + grid[cut + 1 :])
        for cut, shared in enumerate(parallel)
        if shared
    ]
    assert max(map(len, found)) == min(single, default=math.prod(grid))


@given(st.integers(1, 24), st.integers(1, 3))
def test_factorisations_are_all_of_them(number: int, count: int) -> None:
    """Each product of that many factors is listed, and once."""
    listed = list(factorisations(number, count))
    every = [parts for parts in itertools.product(range(1, number + 1), repeat=count) if math.prod(parts) == number]
    assert sorted(listed) == sorted(every)


def test_even_static_dimension_is_the_first_choice() -> None:
    """Where JAX splits evenly the same dimension is cut: bounds stay Python's integers."""
    assert best_splits(2, (3, 4, 8), (True, True, True)) == ((1, 2, 1),)
    assert best_splits(2, (None, 4), (True, True)) == ((1, 2),)
    sizes, _ = share_of((3, 4, jnp.int32(8)), (True, True, True), 2, jnp.int32(1))
    assert sizes[:2] == (3, 2)


def test_unit_dimension_is_not_cut() -> None:
    """A dynamic dimension is cut rather than one of a single step, which would leave a core without work."""
    sizes = [[int(size) for size in share_of((jnp.int32(6), 1), (True, True), 2, core)[0]] for core in range(2)]
    assert sizes == [[3, 1], [3, 1]]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3).flatmap(lambda rank: st.lists(st.tuples(*[st.integers(0, 4)] * rank), min_size=1, max_size=5)))
def test_ragged_steps_are_those_of_the_grids_in_order(grids: list[tuple[int, ...]]) -> None:
    """Each number of a step leads to the next cell of the next grid that has one, with that grid's bounds."""
    ragged = Ragged.of([tuple(jnp.int32(bound) for bound in grid) for grid in grids])
    wanted = [
        (number, cell, grid) for number, grid in enumerate(grids) for cell in itertools.product(*map(range, grid))
    ]
    assert int(ragged.total) == len(wanted)
    for step, expected in enumerate(wanted):
        found = ragged.locate(jnp.int32(step))
        assert (int(found.grid), tuple(map(int, found.indices)), tuple(map(int, found.bounds))) == expected
