"""`partition-cores` on random kernels: any grid, shared or left alone, computes what it did, bit for bit."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import get_args

import pytest
from grid_samples import Dim, Sample, Semantics, Term
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxlib.mlir import ir
from partition_checks import check, is_partitioned, launches_of, trust_every_kernel

from mosaic_grid.context import create_context
from mosaic_grid.partition.plan import Strategy

PLAIN: tuple[Semantics, ...] = ("parallel", "arbitrary")
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
CONTEXT = create_context()


@pytest.fixture
def trusting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests the rewriting, and not the legality check."""
    trust_every_kernel(monkeypatch)


def shares(grid: Sequence[Dim], cores: int) -> bool:
    """Whether the pass has something to share: what it says in its documentation."""
    special = [dim for dim in grid if dim.semantics == "core_parallel"]
    if any(dim.dynamic or dim.bound > cores for dim in special):
        return True
    loops = [dim for dim in special if dim.bound < cores]
    parallel = [dim for dim in grid if dim.semantics != "arbitrary" and dim not in loops]
    return any(dim.dynamic for dim in parallel) and not any(not dim.dynamic and dim.bound >= 2 for dim in parallel)


@st.composite
def samples(draw: st.DrawFn, cores: int) -> Sample:
    """A kernel whose parallel dimensions are: each is in the output's index map, and scratch starts afresh."""
    rank = draw(st.integers(1, 4))
    grid = [draw(dims(cores, most=7 if rank < 4 else 4)) for _ in range(rank)]
    special = draw(st.none() | st.integers(0, rank - 1))
    if special is not None:
        grid[special] = dataclasses.replace(grid[special], semantics="core_parallel")
    parallel = [axis for axis, dim in enumerate(grid) if dim.semantics != "arbitrary"]
    others = [axis for axis in range(rank) if axis not in parallel and draw(st.booleans())]
    output = tuple(draw(st.permutations(parallel + others)))
    # overwriting an input is only well-defined where no block is visited again after others
    in_place = len(output) == max(output, default=-1) + 1 and draw(st.booleans())
    inputs = draw(st.lists(st.lists(terms(rank), max_size=3, unique_by=lambda t: t.axis).map(tuple), max_size=2))
    asked = draw(st.lists(st.integers(0, rank - 1), max_size=2, unique=True))
    return Sample(tuple(grid), output, tuple(inputs), tuple(asked), in_place)


@st.composite
def dims(draw: st.DrawFn, cores: int, most: int) -> Dim:
    """One dimension; bounds around the cores, powers of two and what is neither."""
    semantics: Semantics = draw(st.sampled_from(PLAIN))
    if draw(st.booleans()):
        return Dim(max(0, draw(bounds(most))), semantics)
    match draw(st.sampled_from(("unknown", "clamped", "multiple"))):
        case "multiple":
            factor = draw(st.sampled_from((2, cores)))
            return Dim(
                factor * draw(st.integers(1, max(1, most // factor))), semantics, True, "multiple", factor=factor
            )
        case "clamped":
            bound = draw(bounds(most))
            return Dim(bound, semantics, True, "clamped", floor=draw(st.integers(min(0, bound), bound)))
    return Dim(draw(st.integers(1, most)), semantics, True)


def bounds(most: int) -> st.SearchStrategy[int]:
    """Bounds, with fewer of those that run no step."""
    return st.integers(1, most) | st.integers(1, most) | st.integers(-1, 1)


def terms(rank: int) -> st.SearchStrategy[Term]:
    """One dimension of an input's index map."""
    return st.builds(Term, st.integers(0, rank - 1), st.sampled_from(("same", "half", "reversed", "table")))


def check_random(data: st.DataObject, cores: int, strategy: Strategy, seed: int) -> None:
    """Checks a random sample on all its launches, and whether it was shared at all."""
    sample = data.draw(samples(cores))
    with CONTEXT, ir.Location.unknown():
        program = check(sample.text(), launches_of(sample, cores), cores, strategy, seed)
        assert is_partitioned(program.grids, cores) == shares(sample.grid, cores), program.grids


@pytest.mark.usefixtures("trusting")
@settings(max_examples=20)
@given(data=st.data(), cores=st.sampled_from((2, 3, 4, 8)), strategy=st.sampled_from(STRATEGIES), seed=st.integers(0))
def test_random_grids_keep_their_meaning(data: st.DataObject, cores: int, strategy: Strategy, seed: int) -> None:
    """Any grid of up to four dimensions, shared or left alone, computes what it did, and is shared where it can be."""
    check_random(data, cores, strategy, seed)


@pytest.mark.full
@pytest.mark.usefixtures("trusting")
@settings(max_examples=300)
@given(data=st.data(), cores=st.sampled_from((2, 3, 4, 8)), strategy=st.sampled_from(STRATEGIES), seed=st.integers(0))
def test_many_random_grids(data: st.DataObject, cores: int, strategy: Strategy, seed: int) -> None:
    """The same with many more."""
    check_random(data, cores, strategy, seed)
