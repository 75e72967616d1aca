"""`specialize-grid` keeps what a kernel computes: original and specialized programs run on the same inputs and agree.

One compiled program serves all bounds: inside of the variants, between them and outside.
"""

from __future__ import annotations

import itertools

import dynamic_programs
import numpy as np
import pytest
from grid_samples import Dim, Sample, Semantics, Term
from index_maps import IndexMaps, moves, walks
from jaxlib.mlir import ir
from launched import Launches
from specialize_checks import BUCKETS, Bucket, assert_same_meaning, specialized

from mosaic_grid.context import create_context
from mosaic_grid.passes.partition_cores import PartitionCores
from mosaic_grid.passes.specialize_grid import SpecializeGrid
from mosaic_grid.session import Session
from mosaic_grid.unpack import unpack

CONTEXT = create_context()
AROUND = (-5, 0, 1, 2, 3, 4, 5, 6, 7, 8, -(2**31))
"""Bounds inside of the variants 2, 4 and 6, between them and outside."""

EXACT = SpecializeGrid(values=("2", "4", "6"))
ROUNDED = SpecializeGrid(values=("2", "4", "6"), bucket="round-up")


@pytest.mark.parametrize("options", [EXACT, ROUNDED], ids=["exact", "round-up"])
@pytest.mark.parametrize(
    "inner", [(), (Dim(3),), (Dim(2), Dim(2)), (Dim(3, dynamic=True),)], ids=["none", "3", "2,2", "dynamic"]
)
@pytest.mark.parametrize("semantics", ["parallel", "arbitrary"])
def test_one_dynamic_dimension(options: SpecializeGrid, inner: tuple[Dim, ...], semantics: Semantics) -> None:
    """Any bound gives the bits of the original, whichever kernel runs it."""
    grid = (Dim(2), Dim(8, semantics, True), *inner)
    axes = tuple(range(len(grid)))
    sample = Sample(grid, axes, (tuple(map(Term, axes)), (Term(1, "table"), Term(1, "reversed"))), axes, in_place=True)
    with CONTEXT, ir.Location.unknown():
        wishes = SpecializeGrid(values=("1=2", "4", "6"), bucket=options.bucket)
        program = specialized(sample.text(), wishes)
        assert len(program.grids) == 4
        assert_same_meaning(program, [sample.arguments([n, *(2 for d in inner if d.dynamic)]) for n in AROUND])


@pytest.mark.parametrize("bucket", BUCKETS)
def test_two_dynamic_dimensions(bucket: Bucket) -> None:
    """Two bounds, each of which may fit a variant or not; steps beyond both of them do nothing."""
    grid = (Dim(5, "parallel", True), Dim(2), Dim(5, "arbitrary", True))
    sample = Sample(grid, (0, 1, 2), ((Term(0), Term(2, "table")), (Term(2, "reversed"),)), asked=(0, 2), in_place=True)
    with CONTEXT, ir.Location.unknown():
        options = SpecializeGrid(values=("0=2", "4", "2=1", "3"), bucket=bucket)
        program = specialized(sample.text(), options)
        assert len(program.grids) == 5
        pairs = itertools.product((-1, 0, 1, 2, 3, 4, 5), repeat=2)
        assert_same_meaning(program, [sample.arguments(pair) for pair in pairs])


@pytest.mark.parametrize(
    ("n", "picked"),
    [*((n, f"kernel_d0_{n + n % 2}") for n in range(1, 7)), (7, "kernel"), (0, "kernel"), (-(2**31), "kernel")],
)
def test_buckets_hold_what_they_say(n: int, picked: str) -> None:
    """A bound runs the least variant that holds it, and the original where none does."""
    sample = Sample((Dim(8, dynamic=True), Dim(2)), (0, 1))
    with CONTEXT, ir.Location.unknown():
        assert specialized(sample.text(), ROUNDED).picks(*sample.arguments([n])) == picked


@pytest.mark.parametrize(
    "values", [("2", "4", "6"), ("3", "4", "5"), ("5", "1", "7"), ("6",), ("1", "8"), ("2..4", "7")]
)
def test_exact_variants_are_picked_for_their_bound_only(values: tuple[str, ...]) -> None:
    """However the index is computed, a bound runs the variant made for it, and any other the original."""
    sample = Sample((Dim(9, dynamic=True), Dim(2)), (0, 1))
    with CONTEXT, ir.Location.unknown():
        program = specialized(sample.text(), SpecializeGrid(values=values))
        launches = Launches(program.after)
        made = {int(symbol.rpartition("_")[2]) for symbol in program.grids if symbol != "kernel"}
        for n in (*range(-9, 10), -(2**31), -(2**31) + 4, 2**31 - 1):
            assert launches(*sample.arguments([n])).kernel.symbol == (f"kernel_d0_{n}" if n in made else "kernel")


@pytest.mark.parametrize(
    "inner", [(), (Dim(3),), (Dim(3, dynamic=True),), (Dim(2), Dim(3))], ids=["none", "3", "dynamic", "2,3"]
)
def test_no_block_moves_that_did_not_move_before(inner: tuple[Dim, ...]) -> None:
    """Steps beyond the true bound fetch nothing and write nothing back.

    Which blocks move is told from the index maps: a run on the CPU doesn't show it.
    """
    grid = (Dim(2), Dim(8, dynamic=True), *inner)
    axes = tuple(range(len(grid)))
    sample = Sample(grid, axes, (tuple(map(Term, axes)), (Term(1, "reversed"),)), asked=axes, in_place=True)
    with CONTEXT, ir.Location.unknown():
        program = specialized(sample.text(), SpecializeGrid(values=("1=4", "8"), bucket="round-up"))
        before, after = Launches(program.before), Launches(program.after)
        maps = {kernel.symbol: IndexMaps(kernel) for kernel in (*before.kernels, *after.kernels)}
        for bound in range(1, 9):
            arguments = sample.arguments([bound, *(dim.bound for dim in inner if dim.dynamic)])
            original, rounded = before(*arguments), after(*arguments)
            assert rounded.kernel.symbol == f"kernel_d1_{4 if bound <= 4 else 8}"
            old, new = (walks(each, maps[each.kernel.symbol]) for each in (original, rounded))
            assert moves(new) == moves(old)


@pytest.mark.parametrize("cores", [2, 3])
@pytest.mark.parametrize(
    "inner",
    [(), (Dim(4),), (Dim(3),), (Dim(3, dynamic=True),), (Dim(2), Dim(3))],
    ids=["none", "4", "3", "dynamic", "2,3"],
)
def test_a_guarded_parallel_dimension_is_shared(inner: tuple[Dim, ...], cores: int) -> None:
    """Each core runs its share of any bound with a step for each, moves the blocks of the original, and the same bits
    come out; fewer steps run the original.
    """
    grid = (Dim(9, "parallel", True), *inner)
    axes = tuple(range(len(grid)))
    sample = Sample(grid, axes, (tuple(map(Term, axes)), (Term(0, "reversed"),)), asked=axes, in_place=True)
    with CONTEXT, ir.Location.unknown():
        program = specialized(sample.text(), SpecializeGrid(values=("0=5", "9"), bucket="round-up"), cores=cores)
        grids = [grid for symbol, grid in program.grids.items() if symbol != "kernel"]
        assert len(grids) == 2
        assert all(grid.startswith(f"{cores} core_parallel, ") for grid in grids)
        before, after = Launches(program.before), Launches(program.after)
        maps = {kernel.symbol: IndexMaps(kernel) for kernel in (*before.kernels, *after.kernels)}
        bounds = range(-1, 10)
        launches = [sample.arguments([n, *(dim.bound for dim in inner if dim.dynamic)]) for n in bounds]
        for bound, arguments in zip(bounds, launches, strict=True):
            original, shared = before(*arguments), after(*arguments)
            fits = "kernel" if bound < cores else f"kernel_d0_{5 if bound <= 5 else 9}"
            assert shared.kernel.symbol == fits
            if fits != "kernel":
                old, new = (walks(each, maps[each.kernel.symbol]) for each in (original, shared))
                assert moves(new) == moves(old)
        assert_same_meaning(program, launches)


@pytest.mark.parametrize(
    ("grid", "shared"),
    [
        # the compiler shares a dimension outside of the guarded one by itself
        ((Dim(4, "parallel"), Dim(8, "parallel", True)), False),
        ((Dim(4), Dim(8, "parallel", True)), True),
        # in place of one inside it, which a guard keeps from being shared
        ((Dim(8, "parallel", True), Dim(4, "parallel")), True),
        ((Dim(8, "arbitrary", True), Dim(4)), False),
    ],
    ids=["outside", "ordered outside", "inside", "not parallel"],
)
def test_which_guarded_dimensions_are_shared(grid: tuple[Dim, ...], shared: bool) -> None:
    """Where the compiler leaves one core to the guarded variant, and only parallel dimensions."""
    sample = Sample(grid, (0, 1), in_place=True)
    axis = next(axis for axis, dim in enumerate(grid) if dim.dynamic)
    with CONTEXT, ir.Location.unknown():
        program = specialized(sample.text(), SpecializeGrid(values=(f"{axis}=4", "8"), bucket="round-up"))
        variants = [grid for symbol, grid in program.grids.items() if symbol != "kernel"]
        assert len(variants) == 2
        assert all(("core_parallel" in grid) == shared for grid in variants)
        assert_same_meaning(program, [sample.arguments([n]) for n in range(9)])


def test_two_guarded_dimensions_share_the_outer_one() -> None:
    """The guard of the inner one holds on each core."""
    grid = (Dim(5, "parallel", True), Dim(2), Dim(5, "arbitrary", True))
    sample = Sample(grid, (0, 1, 2), ((Term(0), Term(2, "table")), (Term(2, "reversed"),)), asked=(0, 2), in_place=True)
    with CONTEXT, ir.Location.unknown():
        program = specialized(sample.text(), SpecializeGrid(values=("0=5", "2=1", "4"), bucket="round-up"))
        assert sum("core_parallel" in grid for grid in program.grids.values()) == 2
        assert_same_meaning(program, [sample.arguments(pair) for pair in itertools.product(range(6), repeat=2)])


@pytest.mark.parametrize("bucket", BUCKETS)
def test_a_proved_range_needs_no_original(bucket: Bucket) -> None:
    """Where each bound that is possible has a variant the original is gone, and with it the comparison."""
    clamped = Dim(3, "parallel", True, "clamped", floor=2)  # 2 to 5
    multiple = Dim(6, "parallel", True, "multiple", factor=3)
    for dim, bounds in ((clamped, {2, 3, 4, 5}), (multiple, {3, 6, 9, 12, 15, 18, 21, 24})):
        sample = Sample((dim, Dim(2)), (0, 1), ((Term(0),),), asked=(0,))
        with CONTEXT, ir.Location.unknown():
            program = specialized(sample.text(), SpecializeGrid(bucket=bucket))
            assert {int(s.rpartition("_")[2]) for s in program.grids if s != "kernel"} == bounds
            assert ("kernel" in program.grids) == (dim is multiple)  # 0 is possible
            assert_same_meaning(program, [sample.arguments([n]) for n in (-3, 0, 1, 2, 3, 5, 6) if n <= dim.bound])


@pytest.mark.parametrize("options", [EXACT, ROUNDED], ids=["exact", "round-up"])
@pytest.mark.parametrize("name", ["scale_in_place", "matmul", "gather", "rows", "outer_product"])
def test_pallas_kernels_keep_their_meaning(name: str, options: SpecializeGrid) -> None:
    """What JAX lowers gets its variants, and computes for every bound what it did."""
    text, inputs = dynamic_programs.programs()[name]
    with CONTEXT, ir.Location.unknown():
        program = specialized(text, options, target="v5e")
        assert len(program.grids) >= 4
        assert_same_meaning(program, [[np.asarray(n, np.int32), *inputs] for n in range(8)])


def test_shared_kernels_are_specialized_too() -> None:
    """A kernel that partition-cores has shared gets guarded variants of each core's share."""
    text, inputs = dynamic_programs.programs()["scale_in_place"]
    with CONTEXT, ir.Location.unknown():
        shared = ir.Operation.parse(text).operation
        unpack(shared)
        PartitionCores(cores=2).run(shared, Session())
        program = specialized(str(shared), SpecializeGrid(values=("1=6", "12"), bucket="round-up"))
        assert any(grid.startswith("2 core_parallel, 12 arbitrary") for grid in program.grids.values())
        assert_same_meaning(program, [[np.asarray(n, np.int32), *inputs] for n in range(8)])
