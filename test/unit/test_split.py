"""Splits: shares are fair and complete, what the launch and the kernel compute agrees with them, and nothing wraps."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math

import numpy as np
import pytest
from grid_samples import Dim, Sample
from hypothesis import given, settings
from hypothesis import strategies as st
from index_maps import IndexMaps
from jaxlib.mlir import ir
from launched import Launched, Launches

import mosaic_grid.legality
from mosaic_grid.context import create_context
from mosaic_grid.grid import I32_MAX, Dimension, Semantics
from mosaic_grid.objections import Judgement
from mosaic_grid.partition.plan import BoundFacts, Nothing, make_option, runs_to_share
from mosaic_grid.partition.split import Split, fusable
from mosaic_grid.partition.table import table_of
from mosaic_grid.passes.partition_cores import PartitionCores
from mosaic_grid.session import Session

CONTEXT = create_context()

PARALLEL, ARBITRARY, CORE_PARALLEL = Semantics.PARALLEL, Semantics.ARBITRARY, Semantics.CORE_PARALLEL


@pytest.fixture(autouse=True, scope="module")
def _trusting() -> object:
    """Takes every kernel for one that may be shared: here only the arithmetic is tested."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mosaic_grid.legality, "judge", lambda *args: Judgement((), ()))
        yield


@dataclasses.dataclass(frozen=True)
class Shared:
    """The partitioned kernel that a launch picked."""

    launched: Launched
    maps: IndexMaps

    @property
    def share(self) -> int:
        """The bound of the cores' loop."""
        return self.launched.bounds[1]

    def indices(self, core: int, step: int, *inner: int) -> tuple[int, ...]:
        """What the output's index map makes of a step."""
        return self.maps.blocks(self.launched, core, step, *inner)[-1]


@functools.cache
def partitioned(cores: int, inner: tuple[int, ...]) -> tuple[Launches, dict[str, IndexMaps]]:
    """Shares a dynamic dimension in front of static ones; the index maps by kernel."""
    grid = (Dim(8, "parallel", dynamic=True), *(Dim(bound) for bound in inner))
    sample = Sample(grid, tuple(range(len(grid))))
    with CONTEXT, ir.Location.unknown():
        module = ir.Operation.parse(sample.text()).operation
        PartitionCores(cores=cores).run(module, Session())
        launches = Launches(module)
        return launches, {kernel.symbol: IndexMaps(kernel) for kernel in launches.kernels}


def launched(n: int, cores: int, inner: tuple[int, ...] = ()) -> Shared | None:
    """Shares n steps in front of static dimensions; `None` where the launch picked the original."""
    launches, maps = partitioned(cores, inner)
    with CONTEXT:
        found = launches(np.asarray(n, np.int32))
        return None if found.kernel.symbol == "kernel" else Shared(found, maps[found.kernel.symbol])


def fair_shares(n: int, cores: int) -> list[range]:
    """The shares as the documentation has them, by brute force: dealt out, the remainder to the first."""
    if cores == 2:
        lengths = [math.ceil(n / 2), n - math.ceil(n / 2)]
    else:
        lengths = [len(range(core, n, cores)) for core in range(cores)]
    ends = list(itertools.accumulate(lengths))
    return [range(end - length, end) for end, length in zip(ends, lengths, strict=True)]


@given(n=st.integers(0, 10**6), cores=st.integers(2, 9))
def test_fair_shares_are_fair(n: int, cores: int) -> None:
    """The reference itself: shares are disjoint, cover all steps and differ by at most one."""
    shares = fair_shares(n, cores)
    assert [shares[0].start, *(share.stop for share in shares)] == [0, *(share.start for share in shares[1:]), n]
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@settings(max_examples=60)
@given(n=st.integers(1, 40), cores=st.integers(2, 6), inner=st.sampled_from([(), (2,), (4, 2), (3,), (2, 3)]))
def test_kernel_and_table_agree_with_brute_force(n: int, cores: int, inner: tuple[int, ...]) -> None:
    """Each core's index map names its share's steps in order, and then the last of them as long as its loop runs."""
    shared = launched(n, cores, inner)
    if n < cores:
        assert shared is None
        return
    assert shared is not None
    fused = math.prod(powers(inner))
    outside = [range(bound) for bound in inner[len(powers(inner)) :]]
    assert shared.share == max(map(len, fair_shares(n, cores))) * fused
    for core, share in enumerate(fair_shares(n, cores)):
        wanted = list(itertools.product(share, *map(range, inner)))
        loop = list(itertools.product(range(shared.share), *outside))
        found = [shared.indices(core, *step)[:-1] for step in loop]
        assert found == wanted + [wanted[-1]] * (len(loop) - len(wanted))


def powers(inner: tuple[int, ...]) -> tuple[int, ...]:
    """The leading bounds that are powers of two."""
    return tuple(itertools.takewhile(lambda bound: bound & (bound - 1) == 0, inner))


@pytest.mark.parametrize("cores", [2, 3, 4, 8])
@pytest.mark.parametrize("inner", [(), (2,), (1024,), (2**16,)], ids=str)
def test_nothing_wraps_up_to_the_limit(cores: int, inner: tuple[int, ...]) -> None:
    """With as many steps as a split allows every number is exact in 32 bits; with one more the original runs."""
    fused = math.prod(inner)
    grid = (Dimension(None, PARALLEL), *(Dimension(bound, ARBITRARY) for bound in inner))
    limit = Split(grid, cores, (0,), (1,) * len(inner), even=False).step_limit
    for n in (cores, limit - 1, limit):
        shared = launched(n, cores, inner)
        assert shared is not None, n
        assert shared.share == max(map(len, fair_shares(n, cores))) * fused
        for core, share in enumerate(fair_shares(n, cores)):
            last = (share.stop - 1, *(bound - 1 for bound in inner))
            assert shared.indices(core, len(share) * fused - 1)[:-1] == last
            assert shared.indices(core, shared.share - 1)[:-1] == last  # beyond the end, where it isn't the end
            assert shared.indices(core, 0)[:-1] == (share.start, *(0 for _ in inner))
    assert launched(limit + 1, cores, inner) is None
    assert launched(I32_MAX, cores, inner) is None


def test_the_limit_is_not_far_from_what_wraps() -> None:
    """Counting the steps beyond it would really wrap: the limit gives away less than a step for each core and one."""
    for cores, fused in itertools.product((2, 3, 4, 8), (1, 2, 1024)):
        grid = (Dimension(None, PARALLEL), Dimension(fused, ARBITRARY))
        limit = Split(grid, cores, (0,), (1,), even=False).step_limit
        assert (limit + cores) * fused <= I32_MAX < (limit + cores + 1) * fused


@given(bounds=st.lists(st.sampled_from([1, 2, 3, 4, 6, 8, 12, None, 0]), min_size=1, max_size=5), data=st.data())
def test_every_dimension_has_its_place(bounds: list[int | None], data: st.DataObject) -> None:
    """Outer, shared, fused and inner dimensions make up the grid; outer and inner ones keep their bounds."""
    grid = tuple(Dimension(bound, PARALLEL) for bound in bounds)
    start = data.draw(st.integers(0, len(grid) - 1))
    axes = tuple(range(start, data.draw(st.integers(start, len(grid) - 1)) + 1))
    split = Split(grid, 2, axes, fusable(grid, axes), even=False)
    assert (*split.outer, *split.axes, *split.fused, *split.inner) == tuple(range(len(grid)))
    made = split.partitioned_grid
    assert made[0] == Dimension(2, CORE_PARALLEL)
    assert all(made[split.position(axis)] == Dimension(bounds[axis], ARBITRARY) for axis in split.outer + split.inner)
    assert len(made) == 2 + len(split.outer) + len(split.inner)
    assert split.counted not in [split.position(axis) for axis in split.outer + split.inner]
    for axis in split.fused:
        bound = bounds[axis]
        assert bound is not None
        assert bound.bit_count() == 1
    table = table_of(split, frozenset(axes))
    places = [*([0] if table.last else []), *range(table.first_at, table.first_at + table.firsts)]
    assert [*places, *map(table.bound_at, table.bounds)] == list(range(table.size))


@pytest.mark.parametrize("cores", [2, 3, 4])
@given(low=st.integers(-3, 12), extra=st.integers(0, 9), divisor=st.integers(1, 8))
def test_no_guard_means_no_core_without_a_step(cores: int, low: int, extra: int, divisor: int) -> None:
    """A split needs no guard only if every bound that its facts allow gives each core a step, or no core one."""
    facts = BoundFacts(low, low + extra, divisor)
    option = make_option((Dimension(None, PARALLEL),), (0,), cores, {0: facts})
    allowed = [n for n in range(low, low + extra + 1) if n % divisor == 0]
    if not option.guarded:
        assert all(n >= cores or n == 0 for n in allowed)
    if option.split.even:
        assert all(n % cores == 0 for n in allowed)


def test_what_the_compiler_shares_is_left_to_it() -> None:
    """A static parallel dimension of two steps or more is shared by the compiler; of one step it is in nobody's way."""
    for other in (Dimension(None, PARALLEL), Dimension(4, ARBITRARY)):
        assert isinstance(runs_to_share((Dimension(2, PARALLEL), other), 2, "auto"), Nothing)
    assert runs_to_share((Dimension(1, PARALLEL), Dimension(None, PARALLEL)), 2, "auto") == ((1,),)
    assert runs_to_share((Dimension(5, CORE_PARALLEL), Dimension(2, PARALLEL)), 2, "auto") == ((0,),)
    assert isinstance(runs_to_share((Dimension(None, ARBITRARY),), 2, "auto"), Nothing)


def test_strategies_offer_single_dimensions_or_runs() -> None:
    """`linearize` offers runs of neighbours where there are some, `split` single dimensions, `auto` both."""
    pair = (Dimension(None, PARALLEL), Dimension(None, PARALLEL))
    assert runs_to_share(pair, 2, "split") == ((0,), (1,))
    assert runs_to_share(pair, 2, "linearize") == ((0, 1),)
    assert runs_to_share(pair, 2, "auto") == ((0,), (1,), (0, 1))
    apart = (pair[0], Dimension(3, ARBITRARY), pair[1])
    assert runs_to_share(apart, 2, "linearize") == ((0,), (2,))


@pytest.mark.parametrize(
    ("bounds", "fused"),
    [
        ((None, 8, 4), (1, 2)),
        ((None, 8, 3, 4), (1,)),
        ((None, 1, 2), (1, 2)),
        ((None, 2**16, 2), (1,)),
        ((None, 2**17), ()),
        ((None, 2**15, 2, 2), (1, 2)),
        ((None, None), ()),
        ((None, 0), ()),
    ],
)
def test_fused_dimensions(bounds: tuple[int | None, ...], fused: tuple[int, ...]) -> None:
    """Powers of two right behind the shared dimension, as long as many shared steps can still be counted."""
    grid = [Dimension(bound, ARBITRARY) for bound in bounds]
    assert fusable(grid, (0,)) == fused
    assert Split(tuple(grid), 2, (0,), fused, even=False).step_limit >= 2**15 - 3
