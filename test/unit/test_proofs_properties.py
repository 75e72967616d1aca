"""Every verdict on random small grids against looking at every step of every grid that the contracts allow."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import proof_problems as pp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mosaic_grid import symbolic as sym
from mosaic_grid.symbolic import obvious, proofs
from mosaic_grid.symbolic.proofs import Grid

# a few of these are nothing that a person writes, and take more than a question usually may
MOST = 20 * proofs.MOST
# what is asked of a world and a window: the failures there, and how a witness tells one
Failures = Callable[[pp.World], list[tuple[object, ...]]]
Told = Callable[[sym.Witness], tuple[object, ...]]


def judged(
    verdict: sym.Verdict, grid: Grid, failures: Failures, told: Callable[[sym.Witness], tuple[object, ...]]
) -> None:
    """The verdict is right, and the witness is one of the failures."""
    worlds = pp.worlds(grid)
    match verdict:
        case sym.Proved():
            found = [(world.values, failure) for world in worlds for failure in failures(world)]
            assert not found, found[0]
        case sym.Refuted(witness):
            world = pp.world_of(grid, pp.completed(witness))
            assert world in worlds, f"{witness} breaks a contract"
            assert told(witness) in failures(world), f"{witness} is none"
        case sym.Unknown(reason):
            raise AssertionError(f"unknown for quasi-affine input: {reason}")


def points(*roles: str) -> Told:
    """The points of a witness and its block."""

    def told(witness: sym.Witness) -> tuple[object, ...]:
        assert tuple(role for role, _ in witness.points) == roles
        return (*(point for _, point in witness.points), witness.block)

    return told


def check_races(data: st.DataObject) -> None:
    """`no_race` of one window, and of two on one array."""
    grid = data.draw(pp.grids())
    one = data.draw(pp.windows(grid))
    two = data.draw(st.one_of(st.none(), pp.windows(grid, rank=len(one.index))))
    other = two or one

    def failures(world: pp.World) -> list[tuple[object, ...]]:
        shown = [(s, pp.index_at(one, s, world)) for s in world.steps if pp.is_seen(one, s, world)]
        others = [(s, pp.index_at(other, s, world)) for s in world.steps if pp.is_seen(other, s, world)]
        return [
            (a, b, first)
            for (a, first), (b, second) in itertools.product(shown, others)
            if any(a[axis] != b[axis] for axis in grid.parallel)
            and pp.overlap(pp.elements(one, first), pp.elements(other, second))
        ]

    judged(proofs.no_race(grid, one, two, most=MOST), grid, failures, points("first", "second"))


def check_revisits(data: st.DataObject) -> None:
    """`revisits_follow`: its witness names the step right before the block comes back."""
    grid = data.draw(pp.grids())
    window = data.draw(pp.windows(grid))
    leaves = (*pp.INDICES[: len(grid.bounds)], *pp.INPUTS)
    again = data.draw(st.lists(pp.truths(leaves), max_size=1))

    def failures(world: pp.World) -> list[tuple[object, ...]]:
        shown = [(s, pp.index_at(window, s, world)) for s in world.steps]
        return [
            (a, b, c, third)
            for k, ((b, second), (c, third)) in enumerate(itertools.pairwise(shown))
            if second != third and all(pp.value(truth, pp.at(c, world)) for truth in again)
            for a, first in shown[:k]
            if first == third
        ]

    verdict = proofs.revisits_follow(grid, window, again, most=MOST)
    judged(verdict, grid, failures, points("first", "left", "again"))
    if obvious.revisits_follow(grid, window):
        assert not any(map(failures, pp.worlds(grid)))


def check_coverage(data: st.DataObject) -> None:
    """`covered`, in blocks or in elements."""
    grid = data.draw(pp.grids())
    window = data.draw(pp.windows(grid))
    tiled = [window.is_tiled(axis) for axis in range(len(window.block))]
    sizes = [size.range.hi for size in window.array]
    counts = [-(-n // b) if t else n for n, b, t in zip(sizes, window.block, tiled, strict=True)]

    def failures(world: pp.World) -> list[tuple[object, ...]]:
        hit: set[pp.Point] = set()
        for step in world.steps:
            if pp.is_seen(window, step, world):
                index = pp.index_at(window, step, world)
                boxes = pp.elements(window, index)
                whole = ((i,) if t else box for i, box, t in zip(index, boxes, tiled, strict=True))
                hit.update(itertools.product(*whole))
        blocks = itertools.product(*map(range, counts)) if world.steps else ()
        return [(block,) for block in blocks if block not in hit]

    judged(proofs.covered(grid, window, most=MOST), grid, failures, lambda witness: (witness.block,))
    if obvious.covered(grid, window):
        assert not any(map(failures, pp.worlds(grid)))


def check_windows(data: st.DataObject) -> None:
    """`meets_array`: a block that reaches over an end is inside."""
    grid = data.draw(pp.grids())
    window = data.draw(pp.windows(grid))
    array = [range(size.range.hi) for size in window.array]

    def failures(world: pp.World) -> list[tuple[object, ...]]:
        shown = [(s, pp.index_at(window, s, world)) for s in world.steps if pp.is_seen(window, s, world)]
        return [(step, index) for step, index in shown if not pp.overlap(pp.elements(window, index), array)]

    judged(proofs.meets_array(grid, window, most=MOST), grid, failures, points("only"))
    if obvious.meets_array(grid, window):
        assert not any(map(failures, pp.worlds(grid)))


def check_values(data: st.DataObject) -> None:
    """`extent` of an expression of inputs."""
    grid = data.draw(pp.grids())
    expr = data.draw(pp.exprs(pp.INPUTS))
    values = [pp.value(expr, inputs) for inputs in pp.inputs_of(grid)]
    if values:
        assert proofs.extent(expr, grid.contracts) == sym.Range(min(values), max(values))


CHECKS = [check_races, check_revisits, check_coverage, check_windows, check_values]
quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_verdicts(check: Callable[[st.DataObject], None]) -> None:
    """Proved and refuted are true, a witness is one, and nothing quasi-affine is unknown."""
    settings(max_examples=80, deadline=None, suppress_health_check=quiet)(given(st.data())(check))()


@pytest.mark.full
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_verdicts_in_thousands(check: Callable[[st.DataObject], None]) -> None:
    """The same, of thousands of grids."""
    settings(max_examples=4000, deadline=None, suppress_health_check=quiet)(given(st.data())(check))()
