"""Every verdict on random small grids against looking at every step of every grid that the contracts allow."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import proof_problems as pp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mosaic_grid import symbolic as sym
from mosaic_grid.symbolic import proofs
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
    """`revisits_follow`: its witness names the step at which the block is left."""
    grid = data.draw(pp.grids())
    window = data.draw(pp.windows(grid))

    def failures(world: pp.World) -> list[tuple[object, ...]]:
        shown = [(s, pp.index_at(window, s, world)) for s in world.steps]
        return [
            (a, b, c, first)
            for k, ((a, first), (b, second)) in enumerate(itertools.pairwise(shown))
            if first != second
            for c, third in shown[k + 2 :]
            if third == first
        ]

    judged(proofs.revisits_follow(grid, window, most=MOST), grid, failures, points("first", "left", "again"))


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


def check_windows(data: st.DataObject) -> None:
    """`meets_array`: a block that reaches over an end is inside."""
    grid = data.draw(pp.grids())
    window = data.draw(pp.windows(grid))
    array = [range(size.range.hi) for size in window.array]

    def failures(world: pp.World) -> list[tuple[object, ...]]:
        shown = [(s, pp.index_at(window, s, world)) for s in world.steps if pp.is_seen(window, s, world)]
        return [(step, index) for step, index in shown if not pp.overlap(pp.elements(window, index), array)]

    judged(proofs.meets_array(grid, window, most=MOST), grid, failures, points("only"))


def check_grids(data: st.DataObject) -> None:
    """`has_steps` and `countable`."""
    grid = data.draw(pp.grids())
    limit = data.draw(st.integers(0, 20))

    def empty(world: pp.World) -> list[tuple[object, ...]]:
        return [()] if min(world.bounds) <= 0 else []

    def large(world: pp.World) -> list[tuple[object, ...]]:
        return [()] if min(world.bounds) > 0 and math.prod(world.bounds) > limit else []

    judged(proofs.has_steps(grid), grid, empty, lambda witness: witness.points)
    judged(proofs.countable(grid, limit), grid, large, lambda witness: witness.points)


def check_values(data: st.DataObject) -> None:
    """`always`, `extent` and `imbalance` of an expression of inputs."""
    grid = data.draw(pp.grids())
    truth = data.draw(pp.truths(pp.INPUTS))
    expr = data.draw(pp.exprs(pp.INPUTS))
    cores = data.draw(st.integers(1, 4))

    def untrue(world: pp.World) -> list[tuple[object, ...]]:
        return [()] if not pp.value(truth, world.values) else []

    judged(proofs.always(truth, grid.contracts), grid, untrue, lambda witness: witness.points)
    values = [pp.value(expr, inputs) for inputs in pp.inputs_of(grid)]
    if values:
        assert proofs.extent(expr, grid.contracts) == sym.Range(min(values), max(values))
    found = proofs.imbalance(expr, cores, grid.contracts)
    ratios = [(-(-v // cores) * cores / v, v) for v in values if v > 0]
    if not ratios:
        assert found is None
        return
    assert isinstance(found, proofs.Imbalance)
    assert float(found.worst) == max(ratios)[0]
    assert (float(found.worst), found.bound) in ratios
    assert pp.value(expr, pp.completed(found.witness)) == found.bound


CHECKS = [check_races, check_revisits, check_coverage, check_windows, check_grids, check_values]
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
