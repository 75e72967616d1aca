"""The sanitizer on memory that is read before it is written: when that matters, and when it doesn't."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from checked_kernels import BLOCK, F32, Said, call, findings, rows
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

X = rows(32)
STEPS = (lambda i: (i, 0), lambda i: (i, 0))


def accumulating(start: Any, *semantics: str) -> Any:
    """A kernel that adds up blocks in scratch, which it clears at the steps where `start` of the index holds."""

    def kernel(x_ref: Any, o_ref: Any, acc: Any) -> None:
        @pl.when(start(pl.program_id(0)))
        def _() -> None:
            acc[...] = jnp.zeros_like(acc)

        acc[...] += x_ref[...]
        o_ref[...] = acc[...]

    return call(kernel, (32, 128), (4,), maps=STEPS, scratch=(pltpu.VMEM(BLOCK, F32),), semantics=semantics)


def test_scratch_that_is_never_cleared() -> None:
    """The first read of it is an error, with how much, where, and how often."""
    (found,) = findings(accumulating(lambda i: i < 0), X)
    assert found == Said(
        "unwritten-read",
        "error",
        "'kernel' reads 1024 elements of scratch 'acc' that nobody wrote, and results depend on them, "
        "at grid point (0)",
        "acc[...] += x_ref[...]",
    )


def test_scratch_that_is_cleared_too_late() -> None:
    """Reads before the clearing count, those after it don't."""
    (found,) = findings(accumulating(lambda i: i == 2), X)
    assert "that nobody wrote, and results depend on them, at grid point (0)" in found.message


@pytest.mark.parametrize("semantics", ["arbitrary", "parallel"])
def test_scratch_that_is_cleared_in_each_step(semantics: str) -> None:
    """Nothing is said of scratch that is cleared whenever it is used."""
    assert findings(accumulating(lambda i: i >= 0, semantics), X) == []


def test_scratch_handed_on_along_a_parallel_dimension() -> None:
    """What another core may have done is as good as not done; along an arbitrary dimension it is kept."""
    assert findings(accumulating(lambda i: i == 0, "arbitrary"), X) == []
    (found,) = findings(accumulating(lambda i: i == 0, "parallel"), X)
    assert (found.name, found.severity) == ("unwritten-read", "error")
    assert "first at grid point (1), 3 times in all" in found.message
    assert "dimension 0 (parallel)" in found.notes[0]


def masked(use: Any) -> Any:
    """A kernel that writes the first rows of scratch, reads all of it, and returns what `use` makes of that."""

    def kernel(x_ref: Any, o_ref: Any, tile: Any) -> None:
        tile[:5] = x_ref[:5]
        row = jax.lax.broadcasted_iota(jnp.int32, BLOCK, 0)
        o_ref[...] = use(tile[...], row < 5)

    return call(kernel, (32, 128), (4,), maps=STEPS, scratch=(pltpu.VMEM(BLOCK, F32),))


def test_what_is_masked_is_a_remark() -> None:
    """A whole tile may be read where the rest of it is left out."""
    (found,) = findings(masked(lambda tile, inside: jnp.where(inside, tile, 0)), X)
    assert found == Said(
        "unwritten-read",
        "remark",
        "'kernel' reads 384 elements of scratch 'tile' that nobody wrote, but no result was seen to depend on them, "
        "first at grid point (0), 4 times in all",
        "o_ref[...] = use(tile[...], row < 5)",
    )


@pytest.mark.parametrize(
    "use",
    [
        lambda tile, inside: tile + 1,
        lambda tile, inside: jnp.where(inside, 1.0, 0.0) * tile,  # NaN isn't masked by a product
        lambda tile, inside: jnp.where(tile > 0, 1.0, 2.0),
        lambda tile, inside: jnp.where(tile < 0, 1.0, 2.0),
        lambda tile, inside: jnp.where(tile == 0, 1.0, 2.0),
        lambda tile, inside: jnp.where(tile != tile, 1.0, 2.0),
        lambda tile, inside: jnp.where(inside, tile, 0) + jnp.max(tile, axis=0, keepdims=True),
    ],
)
def test_what_is_not_masked_is_an_error(use: Any) -> None:
    """However little of it comes through."""
    (found,) = findings(masked(use), X)
    assert (found.name, found.severity) == ("unwritten-read", "error")
    assert "reads 384 elements" in found.message


@pytest.mark.parametrize(
    "use",
    [
        lambda number, x: jnp.where(number > 10, x, 0),
        lambda number, x: jnp.where(number == 1, x, 0),
        lambda number, x: jnp.where(number != 100, x, 0),
        lambda number, x: jnp.where(number <= -50, x, 0),
        lambda number, x: jax.lax.cond(number == 77, lambda: x + 1, lambda: x),
        lambda number, x: x * jnp.clip(number, 5, 9).astype(F32),
        lambda number, x: jax.lax.fori_loop(0, number, lambda _, each: each + 1, x),
    ],
)
def test_an_integer_that_decides(use: Any) -> None:
    """What is compared with a number, or is one of rounds, shows with contents near that number."""

    def kernel(x_ref: Any, o_ref: Any, number: Any) -> None:
        o_ref[...] = use(number[0], x_ref[...])

    (found,) = findings(call(kernel, (32, 128), (4,), maps=STEPS, scratch=(pltpu.SMEM((1,), jnp.int32),)), X)
    assert (found.name, found.severity) == ("unwritten-read", "error")
    assert found.source == "o_ref[...] = use(number[0], x_ref[...])"


def test_an_integer_that_decides_nothing() -> None:
    """One that is compared, but decides nothing, is a remark, and that says what is known."""

    def kernel(x_ref: Any, o_ref: Any, number: Any) -> None:
        o_ref[...] = jnp.where((number[0] > 10) & (pl.program_id(0) > 7), 0, x_ref[...])

    (found,) = findings(call(kernel, (32, 128), (4,), maps=STEPS, scratch=(pltpu.SMEM((1,), jnp.int32),)), X)
    assert found.severity == "remark"
    assert "but no result was seen to depend on them" in found.message


def test_what_is_handed_on_as_it_was() -> None:
    """A part of a result that has what was in memory is a warning, as one that stays unwritten is; all is an error."""
    (found,) = findings(masked(lambda tile, inside: tile), X)
    assert (found.name, found.severity) == ("unwritten-read", "warning")
    assert "that nobody wrote, and results have them as they are, first at grid point (0)" in found.message
    (found,) = findings(lambda x: masked(lambda tile, inside: tile)(x)[5:8], X)
    assert (found.name, found.severity) == ("unwritten-read", "error")
    (found,) = findings(lambda x: masked(lambda tile, inside: tile)(x).astype(jnp.bfloat16), X)
    assert found.severity == "warning"
    (found,) = findings(lambda x: 2 * masked(lambda tile, inside: tile)(x), X)
    assert (found.severity, "and results depend on them" in found.message) == ("error", True)


def test_only_memory_that_matters_is_an_error() -> None:
    """Of two buffers that are read too early, the one whose contents are masked is a remark."""

    def kernel(x_ref: Any, o_ref: Any, used: Any, unused: Any) -> None:
        o_ref[...] = x_ref[...] + used[...] + jnp.where(x_ref[...] < 0, unused[...], 0)

    scratch = (pltpu.VMEM(BLOCK, F32), pltpu.VMEM(BLOCK, F32))
    first, second = findings(call(kernel, (32, 128), (4,), maps=STEPS, scratch=scratch), X)
    assert (first.severity, second.severity) == ("error", "remark")
    assert "scratch 'used'" in first.message
    assert "scratch 'unused'" in second.message


def test_the_rest_of_a_wide_element() -> None:
    """Half of the rows of 16 bits are a quarter of the rows of 32 bits that they share memory with."""

    def kernel(x_ref: Any, o_ref: Any, tile: Any) -> None:
        tile.bitcast(jnp.bfloat16)[:8] = x_ref[...].astype(jnp.bfloat16)
        o_ref[...] = tile[...]

    (found,) = findings(call(kernel, (8, 128), maps=(lambda: (0, 0),) * 2, scratch=(pltpu.VMEM(BLOCK, F32),)), X[:8])
    assert "reads 512 elements of scratch 'tile' that nobody wrote, and results have them as they are" in found.message


def test_a_masked_store_writes_what_its_mask_has() -> None:
    """The other elements stay unwritten."""

    def kernel(x_ref: Any, o_ref: Any, tile: Any) -> None:
        lane = jax.lax.broadcasted_iota(jnp.int32, BLOCK, 1)
        pltpu.store(tile.at[...], x_ref[...], mask=lane < 100)
        o_ref[...] = tile[...]

    (found,) = findings(call(kernel, (8, 128), maps=(lambda: (0, 0),) * 2, scratch=(pltpu.VMEM(BLOCK, F32),)), X[:8])
    assert f"reads {8 * 28} elements of scratch 'tile'" in found.message


def test_an_output_that_is_visited_again() -> None:
    """Its block comes back empty after another was visited, but not while it stays."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...]

    maps = (lambda k, j: (2 * k + j, 0), lambda k, j: (j, 0))
    (found,) = findings(call(kernel, (16, 128), (2, 2), maps=maps), X)
    assert (found.name, found.severity, found.source) == ("unwritten-read", "error", "o_ref[...] += x_ref[...]")
    assert "'o_ref' that nobody wrote, and results depend on them, first at grid point (1, 0), 2 times" in found.message
    steady = (lambda k, j: (2 * k + j, 0), lambda k, j: (0, 0))
    assert [f.message for f in findings(call(kernel, (8, 128), (2, 2), maps=steady), X)] == []


def summed(mask: bool) -> Any:
    """A kernel that adds up the rows of blocks, the last of which sticks out of its array."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        row = jax.lax.broadcasted_iota(jnp.int32, BLOCK, 0) + 8 * pl.program_id(0)
        value = jnp.where(row < 20, x_ref[...], 0) if mask else x_ref[...]
        o_ref[...] = jnp.broadcast_to(jnp.sum(value, axis=0, keepdims=True), BLOCK)

    return call(kernel, (24, 128), (3,), maps=STEPS)


def test_the_padding_of_an_edge_block() -> None:
    """What is behind the end of an array is an error where it matters, and nothing is said of it where it doesn't."""
    (found,) = findings(summed(mask=False), X[:20])
    assert (found.name, found.severity) == ("padding-read", "error")
    assert "reads 512 elements of 'x_ref' beyond the end of its array, and results depend on them" in found.message
    assert "at grid point (2)" in found.message
    assert findings(summed(mask=True), X[:20]) == []


def test_a_result_that_nobody_writes() -> None:
    """All of it is an error, a part of it a warning, and a part that the caller drops a remark."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        @pl.when(x_ref[0, 0] < 0)
        def _() -> None:
            o_ref[...] = x_ref[...]

    def copy(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...]

    (found,) = findings(lambda x: call(kernel, (32, 128), (4,), maps=STEPS)(x), X)
    assert (found.name, found.severity) == ("output-not-written", "error")
    assert found.message == "'kernel' leaves all of 'o_ref' unwritten"
    assert found.source.startswith("(found,) = findings(lambda x: call(kernel")
    partly = call(copy, (40, 128), (2,), maps=(lambda i: (i, 0), lambda i: (2 * i, 0)))
    (found,) = findings(partly, X)
    assert found.severity == "warning"
    assert found.message == "'kernel' leaves 3072 of 5120 elements of 'o_ref' unwritten, the first at [8, 0]"
    (found,) = findings(lambda x: partly(x)[:8], X)
    assert found.severity == "remark"
    assert found.message.endswith("but no result was seen to depend on them")


def test_a_copy_of_what_nobody_wrote() -> None:
    """A result isn't written by a copy of memory that isn't: it is left unwritten, and its origin is what it is of."""

    def kernel(x_ref: Any, o_ref: Any, tile: Any, sem: Any) -> None:
        tile[:4] = x_ref[:4]
        copy = pltpu.make_async_copy(tile, o_ref, sem)
        copy.start()
        copy.wait()

    scratch = (pltpu.VMEM(BLOCK, F32), pltpu.SemaphoreType.DMA(()))
    launch = call(kernel, (8, 128), maps=(lambda: (0, 0), None), scratch=scratch)
    (found,) = findings(launch, X[:8])
    assert (found.name, found.severity) == ("output-not-written", "warning")
    assert "leaves 512 of 1024 elements of 'o_ref' unwritten, the first at [4, 0]" in found.message
    (found,) = findings(lambda x: launch(x)[:4], X[:8])
    assert found.severity == "remark"
