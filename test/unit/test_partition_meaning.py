"""`partition-cores` keeps what a kernel computes: original and partitioned programs run on the same inputs and agree.

Each partitioned program runs with its cores one after the other and taking turns, and must give the very bits that the
original gives, also in what it leaves unwritten. One compiled program serves all bounds.
"""

from __future__ import annotations

from typing import get_args

import dynamic_programs
import numpy as np
import pytest
from grid_samples import Dim, Sample, Term
from index_maps import IndexMaps, moves, walks
from jaxlib.mlir import ir
from launched import Launches
from partition_checks import check, is_partitioned, launches_of, partitioned, trust_every_kernel

from mosaic_grid.context import create_context
from mosaic_grid.partition.plan import Strategy
from mosaic_grid.passes.partition_cores import PartitionCores
from mosaic_grid.session import Session

CORES = (2, 3, 8)
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
CONTEXT = create_context()


@pytest.fixture
def trusting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests the rewriting, and not the legality check."""
    trust_every_kernel(monkeypatch)


# Bounds around the number of cores.


@pytest.mark.usefixtures("trusting")
@pytest.mark.parametrize("cores", CORES)
@pytest.mark.parametrize(
    "inner",
    [(), (Dim(4),), (Dim(3),), (Dim(3, dynamic=True),), (Dim(2), Dim(3), Dim(2))],
    ids=["none", "4", "3", "dynamic", "2,3,2"],
)
def test_no_block_moves_that_did_not_move_before(cores: int, inner: tuple[Dim, ...]) -> None:
    """With any bound every core has a share, and steps beyond its end fetch nothing and write nothing back.

    Which blocks move is told from the index maps: a run on the CPU doesn't show it, and puts a block that lies beyond
    its array at the array's end.
    """
    grid = (Dim(3 * cores, "parallel", dynamic=True), *inner)
    axes = tuple(range(len(grid)))
    sample = Sample(grid, axes, (tuple(map(Term, axes)),), asked=axes, in_place=True)
    with CONTEXT, ir.Location.unknown():
        program = partitioned(sample.text(), cores)
        before, after = Launches(program.before), Launches(program.after)
        maps = {kernel.symbol: IndexMaps(kernel) for kernel in (*before.kernels, *after.kernels)}
        for bound in (-5, 0, 1, cores - 1, cores, cores + 1, 3 * cores - 1):
            arguments = sample.arguments([bound, *(dim.bound for dim in inner if dim.dynamic)])
            original, shared = before(*arguments), after(*arguments)
            after_all, before_all = (walks(each, maps[each.kernel.symbol]) for each in (shared, original))
            assert moves(after_all) == moves(before_all)
            assert shared.cores == (cores if bound >= cores else 1)


@pytest.mark.usefixtures("trusting")
@pytest.mark.parametrize("cores", CORES)
def test_many_steps(cores: int) -> None:
    """A thousand steps of tiny blocks, and any number below."""
    sample = Sample((Dim(1000, "parallel", True), Dim(2)), (0,), ((Term(0, "table"), Term(1)),), asked=(0,))
    with CONTEXT, ir.Location.unknown():
        launches = [sample.arguments([n]) for n in (1000, 999, 501, 17, cores, 0)]
        assert is_partitioned(check(sample.text(), launches, cores).grids, cores)


@pytest.mark.usefixtures("trusting")
@pytest.mark.parametrize("cores", CORES)
def test_a_proved_bound_needs_no_choice(cores: int) -> None:
    """Where the outer function shows that every core has a step, or that shares are even, the original is gone."""
    for dim in (
        Dim(2 * cores + 1, "parallel", True, "clamped", floor=cores),
        Dim(3 * cores, "parallel", True, "multiple", factor=cores),
    ):
        sample = Sample((Dim(2), dim, Dim(3)), (1,), ((Term(1, "half"), Term(2)),), asked=(1,))
        with CONTEXT, ir.Location.unknown():
            program = check(sample.text(), launches_of(sample, cores), cores)
            assert list(program.grids) == [f"kernel_cores{cores}_d1"]


@pytest.mark.usefixtures("trusting")
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("cores", [3])
@pytest.mark.parametrize(
    "between", [(), (Dim(1, "parallel"),), (Dim(1),), (Dim(3),)], ids=["adjacent", "1 parallel", "1", "3"]
)
def test_two_dynamic_dimensions(strategy: Strategy, cores: int, between: tuple[Dim, ...]) -> None:
    """Of two dynamic parallel dimensions, next to each other or not, one is shared or both together."""
    grid = (Dim(5, "parallel", True), *between, Dim(7, "parallel", True), Dim(2))
    first, last = 0, len(grid) - 2
    sample = Sample(grid, (last, first), ((Term(first, "reversed"), Term(last, "table")),), asked=(last,))
    sizes = ((5, 7), (1, 7), (5, 2), (3, 3), (0, 4), (-1, -7), (-3, 5))
    with CONTEXT, ir.Location.unknown():
        program = check(sample.text(), [sample.arguments(pair) for pair in sizes], cores, strategy)
        joint = f"kernel_cores{cores}" + "".join(f"_d{axis}" for axis in range(last + 1))
        counted_together = strategy == "linearize" and all(dim.bound == 1 for dim in between)
        assert (joint in program.grids) == counted_together  # under `auto` it doesn't pay: the steps are too short
        launches = Launches(program.after)
        for n, m in sizes:
            if min(n, m) > 0:
                steps = n * m if counted_together else max(n, m)
                assert launches(*sample.arguments((n, m))).cores == (cores if steps >= cores else 1)


@pytest.mark.usefixtures("trusting")
@pytest.mark.parametrize(
    ("cores", "bound", "dynamic"),
    [*((3, bound, False) for bound in (0, 1, 2, 3, 7)), *((n, 2 * n + 1, True) for n in CORES), (8, 17, False)],
)
def test_core_parallel_beyond_the_cores(cores: int, bound: int, dynamic: bool) -> None:
    """A core_parallel bound that no compiler takes, because it is dynamic or too large, is shared; no other is."""
    grid = (Dim(2), Dim(bound, "core_parallel", dynamic), Dim(2, "parallel"), Dim(3))
    sample = Sample(grid, (1, 2), ((Term(1), Term(3)),), asked=(1, 3))
    with CONTEXT, ir.Location.unknown():
        program = check(sample.text(), launches_of(sample, cores), cores)
        assert is_partitioned(program.grids, cores) == (dynamic or bound > cores)
        launches = Launches(program.after)
        for n in (bound, 0, cores - 1, cores) if dynamic else (bound,):
            assert launches(*sample.arguments([n] if dynamic else [])).cores == (cores if n >= cores else 1)


@pytest.mark.usefixtures("trusting")
def test_core_parallel_of_one_step_is_in_nobodys_way() -> None:
    """A core_parallel dimension of a single step leaves the cores to a dynamic parallel one."""
    sample = Sample((Dim(1, "core_parallel"), Dim(5, "parallel", True)), (0, 1))
    with CONTEXT, ir.Location.unknown():
        assert is_partitioned(check(sample.text(), launches_of(sample, 2), 2).grids, 2)


@pytest.mark.usefixtures("trusting")
def test_more_steps_than_can_be_counted() -> None:
    """A static core_parallel dimension beyond 32 bits is left as it is: there is no share to compute."""
    text = Sample((Dim(4, "core_parallel"), Dim(2)), (0,)).text().replace("array<i64: 4, 2>", f"array<i64: {2**30}, 2>")
    with CONTEXT, ir.Location.unknown():
        module = ir.Operation.parse(text).operation
        PartitionCores(cores=2).run(module, Session())
        assert str(module) == str(ir.Operation.parse(text))


@pytest.mark.usefixtures("trusting")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_step_counts_that_would_wrap_are_left_alone(strategy: Strategy) -> None:
    """Dimensions with too many steps for 32 bits are never shared together, whatever their product looks like."""
    sample = Sample((Dim(4, "parallel", True), Dim(4, "parallel", True)), (0, 1))
    with CONTEXT, ir.Location.unknown():
        launches = Launches(partitioned(sample.text(), 2, strategy).after)
        for pair in ((2**16, 2**16), (2**16 + 1, 2**16 - 1), (2**31 - 1, 3), (-(2**31), 2), (46341, 46341)):
            kernel = launches(*sample.arguments(pair)).kernel.symbol
            assert kernel in ("kernel", *(["kernel_cores2_d0", "kernel_cores2_d1"] if strategy != "linearize" else []))


@pytest.mark.usefixtures("trusting")
def test_launches_share_what_they_can() -> None:
    """Several launches of one kernel, in a chain and in functions that are called, keep their meaning each."""
    sample = Sample((Dim(5, "parallel", True), Dim(2)), (0,), ((Term(0),),), asked=(0,))
    text = sample.text()
    kernel = text[text.index("module @kernel") :]
    launch = text[text.index("func.func public") : text.index("module @kernel")]
    called = launch.replace("public @main", "private @inner")
    twice = """
        func.func public @main(%n: tensor<i32>, %m: tensor<i32>, %x: tensor<5x3xi32>) -> tensor<5x3xi32> {
          %0 = func.call @inner(%n, %x) : (tensor<i32>, tensor<5x3xi32>) -> tensor<5x3xi32>
          %1 = func.call @inner(%m, %0) : (tensor<i32>, tensor<5x3xi32>) -> tensor<5x3xi32>
          %2 = func.call @inner(%n, %1) : (tensor<i32>, tensor<5x3xi32>) -> tensor<5x3xi32>
          return %2 : tensor<5x3xi32>
        }"""
    _, *inputs = sample.arguments()
    launches = [[np.asarray(5, np.int32), np.asarray(m, np.int32), *inputs] for m in (0, 1, 2, 5)]
    with CONTEXT, ir.Location.unknown():
        assert is_partitioned(check("module {" + twice + called + kernel, launches, 2).grids, 2)


# Kernels from JAX, judged by the real legality check.


@pytest.mark.parametrize("name", ["scale_in_place", "matmul", "gather", "rows", "outer_product"])
@pytest.mark.parametrize("cores", [2, 3])
def test_pallas_kernels_keep_their_meaning(name: str, cores: int) -> None:
    """What JAX lowers is shared, and computes for every bound what it did."""
    text, inputs = dynamic_programs.programs()[name]
    launches = [[np.asarray(bound, np.int32), *inputs] for bound in (0, 1, 2, 3, 7)]
    with CONTEXT, ir.Location.unknown():
        program = check(text, launches, cores)
        assert is_partitioned(program.grids, cores)
        launched = Launches(program.after)
        for arguments in launches:
            assert launched(*arguments).cores == cores or arguments[0] < cores


# The checks themselves: they would notice.


@pytest.mark.usefixtures("trusting")
def test_a_race_shows() -> None:
    """A kernel whose parallel claim is false gives other results when its cores share it."""
    sample = Sample((Dim(6, "parallel", True), Dim(2)), (1,), ((Term(0),),))
    with CONTEXT, ir.Location.unknown(), pytest.raises(AssertionError, match=r"result 0, scalars \[6\]"):
        check(sample.text(), [sample.arguments()], 2)


@pytest.mark.usefixtures("trusting")
def test_a_look_beyond_a_table_shows() -> None:
    """An index map that reads more of a table than there is fails, though on the CPU the place would be clamped."""
    text = Sample((Dim(4, dynamic=True),), (0,), ((Term(0, "table"),),)).text()
    with CONTEXT, ir.Location.unknown():
        module = ir.Operation.parse(text).operation
        launches = Launches(module)
        maps = IndexMaps(launches.kernels[0])
        arguments = [np.asarray(5, np.int32), np.arange(4, dtype=np.int32), np.zeros((4, 3), np.int32)]
        assert maps.blocks(launches(*arguments), 3) == [(3, 0), (3, 0)]
        with pytest.raises(AssertionError, match="beyond a table"):
            maps.blocks(launches(*arguments), 4)
