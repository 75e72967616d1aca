"""`partition-cores` keeps what a kernel computes: original and partitioned programs run on the same inputs and agree.

Each partitioned program runs with its cores one after the other and taking turns, and must give the very bits that the
original gives, also in what it leaves unwritten. One compiled program serves all bounds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import get_args

import dynamic_programs
import numpy as np
import pytest
from cpu_programs import assert_same, compiled
from grid_samples import Dim, Sample, Semantics, Term
from hypothesis import given, settings
from hypothesis import strategies as st
from index_maps import IndexMaps, moves
from jaxlib.mlir import ir
from launched import Launches

import mosaic_grid.legality
from mosaic_grid.context import create_context
from mosaic_grid.cpu.arrays import Array
from mosaic_grid.cpu.options import Options
from mosaic_grid.objections import Judgement
from mosaic_grid.partition.plan import Strategy
from mosaic_grid.passes.partition_cores import PartitionCores
from mosaic_grid.program import Program
from mosaic_grid.session import Session
from mosaic_grid.unpack import unpack

PLAIN: tuple[Semantics, ...] = ("parallel", "arbitrary")
CORES = (2, 3, 8)
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
CONTEXT = create_context()


@pytest.fixture
def trusting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes every kernel for one that may be shared: the samples are, and here the rewriting is tested."""
    monkeypatch.setattr(mosaic_grid.legality, "judge", lambda *args: Judgement((), ()))


def grids(module: ir.Operation) -> dict[str, str]:
    """The grids of the program's kernels, as text, by symbol."""
    kernels = Program(module).kernels.items()
    return {symbol: ", ".join(f"{d} {d.semantics.value}" for d in kernel.grid) for symbol, kernel in kernels}


@dataclasses.dataclass(frozen=True)
class Checked:
    """A program before and after the pass, unpacked; both did the same for all arguments."""

    before: ir.Operation
    after: ir.Operation

    @property
    def grids(self) -> dict[str, str]:
        """The grids after the pass."""
        return grids(self.after)


def partitioned(text: str, cores: int, strategy: Strategy = "auto") -> Checked:
    """A program before and after the pass, which must not have refused anything. Nothing is run."""
    before = ir.Operation.parse(text).operation
    unpack(before)
    after = before.clone().operation
    session = Session()
    PartitionCores(cores=cores, strategy=strategy).run(after, session)
    after.verify()
    refusals = [d for d in session.diagnostics if d.name == "not-partitioned"]
    assert not refusals, "\n".join(line for d in refusals for line in d.lines())
    return Checked(before, after)


def check(
    text: str, launches: Sequence[Sequence[Array]], cores: int, strategy: Strategy = "auto", seed: int = 0
) -> Checked:
    """Runs a program before and after the pass on the arguments of all launches, and compares the results.

    The context must be current.
    """
    program = partitioned(text, cores, strategy)
    original = compiled(program.before)
    expected = [original(*arguments) for arguments in launches]
    for options in (Options(), Options(interleave=seed)) if program.grids != grids(program.before) else ():
        executable = compiled(program.after, options)
        for arguments, wanted in zip(launches, expected, strict=True):
            scalars = [int(argument) for argument in arguments if not argument.shape]
            assert_same(executable(*arguments), wanted, f"scalars {scalars}, {options}, {program.grids}")
    return program


def is_partitioned(found: Mapping[str, str], cores: int) -> bool:
    """Whether some kernel was made for these cores, with a dimension for them in front."""
    made = [grid for symbol, grid in found.items() if f"_cores{cores}_" in symbol]
    assert all(grid.startswith(f"{cores} core_parallel, ") for grid in made), found
    return bool(made)


def shares(grid: Sequence[Dim], cores: int) -> bool:
    """Whether the pass has something to share: what it says in its documentation."""
    special = [dim for dim in grid if dim.semantics == "core_parallel"]
    if any(dim.dynamic or dim.bound > cores for dim in special):
        return True
    loops = [dim for dim in special if dim.bound < cores]
    parallel = [dim for dim in grid if dim.semantics != "arbitrary" and dim not in loops]
    return any(dim.dynamic for dim in parallel) and not any(not dim.dynamic and dim.bound >= 2 for dim in parallel)


# Random grids: every dimension of any semantics, with what is known of its bound.


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


def launches_of(sample: Sample, cores: int) -> list[list[Array]]:
    """Arguments with every bound as large as it can be, then around the number of cores, odd, none and negative."""
    dynamic = [dim for dim in sample.grid if dim.dynamic]
    wanted = (0, 1, cores - 1, cores, cores + 1, 5, -1, -(2**31))
    choices = [[dim.bound, *(n for n in wanted if n <= dim.bound)] for dim in dynamic]
    rows = [list(column) for column in zip(*(choice * len(wanted) for choice in choices), strict=False)]
    mixed = [
        [choice[(k * (axis + 1)) % len(choice)] for axis, choice in enumerate(choices)] for k in range(len(wanted))
    ]
    return [sample.arguments(row, seed) for seed, row in enumerate([*rows[: len(wanted)], *mixed] if dynamic else [[]])]


def check_random(data: st.DataObject, cores: int, strategy: Strategy, seed: int) -> None:
    """Checks a random sample on all its launches, and whether it was shared at all."""
    sample = data.draw(samples(cores))
    with CONTEXT, ir.Location.unknown():
        program = check(sample.text(), launches_of(sample, cores), cores, strategy, seed)
        assert is_partitioned(program.grids, cores) == shares(sample.grid, cores), program.grids


@pytest.mark.usefixtures("trusting")
@settings(max_examples=30)
@given(data=st.data(), cores=st.sampled_from((2, 3, 4, 8)), strategy=st.sampled_from(STRATEGIES), seed=st.integers(0))
def test_random_grids_keep_their_meaning(data: st.DataObject, cores: int, strategy: Strategy, seed: int) -> None:
    """Any grid of up to four dimensions, shared or left alone, computes what it did, and is shared where it can be."""
    check_random(data, cores, strategy, seed)


@pytest.mark.full
@pytest.mark.usefixtures("trusting")
@settings(max_examples=1000)
@given(data=st.data(), cores=st.sampled_from((2, 3, 4, 8)), strategy=st.sampled_from(STRATEGIES), seed=st.integers(0))
def test_many_random_grids(data: st.DataObject, cores: int, strategy: Strategy, seed: int) -> None:
    """The same with many more."""
    check_random(data, cores, strategy, seed)


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

    How often a block moves is counted from the index maps: a run on the CPU has no traffic.
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
            assert moves(shared, maps[shared.kernel.symbol]) == moves(original, maps[original.kernel.symbol])
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
