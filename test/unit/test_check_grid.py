"""The sanitizer on what the grid does: blocks outside of their arrays, and cores that race."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from checked_kernels import BLOCK, F32, Said, call, findings, rows
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from mosaic_grid.cpu.options import Options

X = rows(32)


def copy(x_ref: Any, o_ref: Any) -> None:
    """Copies a block."""
    o_ref[...] = x_ref[...]


def at(*maps: Any, grid: tuple[Any, ...] = (4,), out: int = 32, **options: Any) -> Any:
    """A copy of blocks from one map to another."""
    return call(copy, (out, 128), grid, maps=maps, **options)


def test_a_block_behind_the_end() -> None:
    """The block, the window and the first step are named, once for each window."""
    reads, writes, missing = findings(lambda x: at(lambda i: (2 * i, 0), lambda i: (i + 1, 0))(x), X)
    assert reads == Said(
        "window-out-of-bounds",
        "error",
        "'kernel' reads block (4, 0) of 'x_ref', which is outside of its array, "
        "first at grid point (2), 2 times in all",
        "reads, writes, missing = findings(lambda x: at(lambda i: (2 * i, 0), lambda i: (i + 1, 0))(x), X)",
    )
    assert writes.message.startswith("'kernel' writes block (4, 0) of 'o_ref', which is outside of its array, at grid")
    assert missing.name == "output-not-written"


def test_a_block_before_the_beginning() -> None:
    """A negative index is outside too, in whichever dimension."""
    (found,) = findings(at(lambda i: (i, i - 1), lambda i: (i, 0)), rows(32, 384))
    assert "reads block (0, -1) of 'x_ref', which is outside of its array, at grid point (0)" in found.message


def test_a_block_that_sticks_out() -> None:
    """A last block that is not whole is as it should be; its index map in elements instead of blocks isn't."""
    assert findings(at(lambda i: (i, 0), lambda i: (i, 0), out=27), X[:27]) == []
    found = findings(at(lambda i: (8 * i, 0), lambda i: (i, 0)), X)
    assert ["reads block (8, 0)" in each.message for each in found] == [True]


def test_a_block_counted_in_elements() -> None:
    """Such a block must not stick out at all, unless the window is padded."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...]

    def launch(step: int, padding: tuple[int, int] = (0, 0)) -> Any:
        shape = (pl.Element(8, padding), pl.Element(128))
        spec = pl.BlockSpec(shape, lambda i: (step * i, 0))
        out = pl.BlockSpec(BLOCK, lambda i: (i, 0))
        return pl.pallas_call(
            kernel, grid=(4,), in_specs=[spec], out_specs=out, out_shape=jax.ShapeDtypeStruct((32, 128), F32)
        )

    assert findings(launch(8), X) == []
    assert findings(launch(7), X) == []
    (found,) = findings(launch(9), X)
    assert "reads the block from element (27, 0) on of 'x_ref', which is outside" in found.message
    assert [each.name for each in findings(launch(9, (0, 3)), X)] == ["padding-read"]


@pytest.mark.parametrize("aliases", [{}, {0: 0}])
def test_a_block_outside_races_with_nobody(aliases: dict[int, int]) -> None:
    """The simulation moves it inside, where another step's block is: that is no race between cores."""
    launch = at(lambda i: (i, 0), lambda i: (i, 0), grid=(6,), semantics=("parallel",), aliases=aliases)
    assert {each.name for each in findings(launch, X)} == {"window-out-of-bounds"}
    both = at(lambda i: (i, 0), lambda i: (jnp.where(i < 4, i // 2, i), 0), grid=(5,), semantics=("parallel",))
    race = next(each for each in findings(both, X) if each.name == "core-race")
    assert "that grid point (0) has written, maybe on another core, first at grid point (1), 2 times" in race.message


def test_an_index_map_that_reads_a_table() -> None:
    """An index that is only known at run time is looked at too."""

    def launch(table: Any, x: Any) -> Any:
        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(4,),
            in_specs=[pl.BlockSpec(BLOCK, lambda i, table: (table[i], 0))],
            out_specs=pl.BlockSpec(BLOCK, lambda i, table: (i, 0)),
        )
        body = lambda table, x_ref, o_ref: copy(x_ref, o_ref)  # noqa: E731
        return pl.pallas_call(body, grid_spec=spec, out_shape=jax.ShapeDtypeStruct((32, 128), F32))(table, x)

    assert findings(launch, np.array([0, 1, 2, 3], np.int32), X) == []
    (found,) = findings(launch, np.array([0, 1, -1, 9], np.int32), X)
    assert "block (-1, 0) of 'x_ref'" in found.message
    assert "first at grid point (2), 2 times in all" in found.message


def summing(*semantics: str, out: Any = lambda i, j: (0, 0)) -> Any:
    """A kernel that adds all blocks up in the block of its output that is at `out`."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        @pl.when(pl.program_id(1) == 0)
        def _() -> None:
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...]

    return call(kernel, (16, 128), (2, 2), maps=(lambda i, j: (2 * i + j, 0), out), semantics=semantics)


@pytest.mark.parametrize("seed", [None, 0])
@pytest.mark.parametrize("word", ["parallel", "core_parallel"])
def test_cores_that_write_one_block(word: str, seed: int | None) -> None:
    """A block of the output that is the same along a parallel dimension is raced for, in whatever order."""
    found = findings(lambda x: summing(word, "arbitrary")(x), X, options=Options(interleave=seed))
    race = next(each for each in found if each.name == "core-race")
    assert race.severity == "error"
    assert race.message.startswith("'kernel' writes elements of 'o_ref' that grid point (")
    assert ", _) has written, maybe on another core" in race.message
    assert race.notes == (f"steps that differ in dimension 0 ({word}) may run on different cores, in any order",)
    assert race.source.startswith("found = findings(lambda x: summing")


def test_blocks_of_its_own_for_each_core() -> None:
    """A block that is revisited on one core is nobody else's, nor one of a dimension that isn't shared."""
    assert findings(summing("parallel", "arbitrary", out=lambda i, j: (i, 0)), X) == []
    assert [each.name for each in findings(summing("arbitrary", "arbitrary"), X)] == ["output-not-written"]


def test_a_shared_dimension_of_one_step() -> None:
    """There is nobody to race with."""
    launch = at(lambda i: (i, 0), lambda i: (i, 0), grid=(1,), out=8, semantics=("parallel",))
    assert findings(launch, X[:8]) == []


def test_everybody_may_read() -> None:
    """Cores that read the same block don't race."""
    assert findings(at(lambda i: (0, 0), lambda i: (i, 0), semantics=("parallel",)), X[:8]) == []


@pytest.mark.parametrize(("step", "raced"), [(0, False), (1, True)])
def test_an_input_that_is_an_output_too(step: int, raced: bool) -> None:
    """A core may overwrite what it has read, but not what another one reads."""
    launch = at(lambda i: (jnp.minimum(i + step, 3), 0), lambda i: (i, 0), semantics=("parallel",), aliases={0: 0})
    found = findings(launch, X)
    assert [each.name for each in found] == ["core-race"] * raced
    if raced:
        assert "writes elements of 'o_ref' that grid point (0) has read" in found[0].message
        assert "first at grid point (1)" in found[0].message


@pytest.mark.parametrize(("rows_", "raced"), [(8, False), (9, True)])
def test_copies_to_an_array(rows_: int, raced: bool) -> None:
    """Each core copies rows to where the next one begins, or one row too many."""

    def kernel(x_ref: Any, o_ref: Any, sem: Any) -> None:
        start = 8 * pl.program_id(0)
        copy = pltpu.make_async_copy(x_ref.at[pl.ds(start, rows_)], o_ref.at[pl.ds(start, rows_)], sem)
        copy.start()
        copy.wait()

    launch = call(
        kernel, (40, 128), (4,), maps=(None, None), semantics=("parallel",), scratch=(pltpu.SemaphoreType.DMA(()),)
    )
    found = [each for each in findings(launch, rows(40)) if each.name != "output-not-written"]
    assert [each.name for each in found] == ["core-race"] * raced
    if raced:
        assert "writes elements of 'o_ref' that grid point (0) has written" in found[0].message
        assert "first at grid point (1), 3 times in all" in found[0].message
        assert found[0].source == "copy.start()"
