"""Forms of launches and copies that few kernels have, on the CPU under the hook."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hook_kernels import ANYWHERE, like, plus_one
from hooked import hooked, quietly
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import tpu_sc as plsc
from releases import needs_0_12, tensor_cores

X = np.arange(32 * 128, dtype=np.float32).reshape(32, 128)


@pytest.fixture(autouse=True)
def on_cpu() -> Iterator[None]:
    """Every test runs with the option."""
    with hooked(cpu="v5p"):
        yield


@pytest.mark.parametrize("mode", ["off", "on"])
@pytest.mark.parametrize("steps", [0, 3])
def test_a_bound_may_be_an_array_of_one_element(steps: int, mode: str) -> None:
    """JAX takes it, and so does the CPU."""
    block = pl.BlockSpec((8, 128), lambda i: (i, 0))

    def call(bound: Any, x: Any) -> Any:
        parallel = pltpu.CompilerParams(dimension_semantics=("parallel",))
        kernel: Any = pl.pallas_call(
            plus_one, out_shape=like(x), grid=(bound,), in_specs=[block], out_specs=block, compiler_params=parallel
        )
        return kernel(x)

    with hooked(mode, "v5p"):
        result = quietly(jax.jit(call), jnp.array([steps], jnp.int32), X)
    np.testing.assert_array_equal(result[: steps * 8], X[: steps * 8] + 1)


@pytest.mark.parametrize("count", [0, 3, 8])
@pytest.mark.parametrize("form", ["gather", "add", "scatter"])
def test_rows_whose_number_is_known_at_run_time(form: str, count: int) -> None:
    """So many are gathered or scattered, and the others stay as they are."""
    rows, order = jnp.arange(16 * 8, dtype=jnp.int32).reshape(16, 8), jax.random.permutation(jax.random.key(0), 16)
    here = order[4 : 4 + count]

    def kernel(x_ref: Any, order_ref: Any, count_ref: Any, o_ref: Any, listed: Any, buffer: Any, n: Any) -> None:
        pltpu.sync_copy(order_ref, listed)
        pltpu.sync_copy(count_ref, n)
        pltpu.sync_copy(x_ref.at[pl.ds(0, 8)], buffer)
        some = n[...][0]
        offsets, part = listed.at[pl.ds(4, some)], buffer.at[pl.ds(0, some)]
        ends = (part, o_ref.at[offsets]) if form == "scatter" else (x_ref.at[offsets], part)

        def copy(semaphore: Any) -> None:
            pltpu.async_copy(*ends, semaphore, add=form == "add").wait()

        pl.run_scoped(copy, pltpu.SemaphoreType.DMA)
        if form != "scatter":
            pltpu.sync_copy(buffer, o_ref)

    call: Any = pl.kernel(
        kernel,
        jax.ShapeDtypeStruct((16 if form == "scatter" else 8, 8), jnp.int32),
        mesh=plsc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore", num_cores=1, num_subcores=1),
        scratch_types=[pltpu.VMEM(shape, jnp.int32) for shape in ((16,), (8, 8), (8,))],
    )
    result = quietly(jax.jit(call), rows, order, jnp.full(8, count, jnp.int32))  # JAX wants None for a semaphore
    if form == "scatter":
        np.testing.assert_array_equal(result[here], rows[:count])
    else:
        before = rows[:count] if form == "add" else 0
        np.testing.assert_array_equal(result, rows[:8].at[:count].set(rows[here] + before))


def test_the_only_device_is_its_own_neighbor() -> None:
    """A copy to the next device around a ring is one to itself where the program is for one device."""

    def kernel(x_ref: Any, o_ref: Any, sent: Any, received: Any) -> None:
        following = lax.rem(lax.axis_index("x") + 1, lax.axis_size("x"))
        barrier = pltpu.get_barrier_semaphore()
        pl.semaphore_signal(barrier, 1, device_id=following)
        pl.semaphore_wait(barrier, 1)
        pltpu.make_async_remote_copy(x_ref, o_ref, sent, received, device_id=following).start()
        pltpu.make_async_remote_copy(x_ref, o_ref, sent, received, device_id=following).wait()

    def call(x: Any) -> Any:
        return pl.pallas_call(
            kernel,
            out_shape=like(x),
            in_specs=[ANYWHERE],
            out_specs=ANYWHERE,
            scratch_shapes=[pltpu.SemaphoreType.DMA] * 2,
            compiler_params=pltpu.CompilerParams(collective_id=0),
        )(x)

    automatic = (jax.sharding.AxisType.Auto,)
    mesh = jax.make_mesh((1,), ("x",), axis_types=automatic, devices=jax.devices()[:1])
    spread = jax.sharding.PartitionSpec("x")
    function = jax.jit(jax.shard_map(call, mesh=mesh, in_specs=spread, out_specs=spread, check_vma=False))
    np.testing.assert_array_equal(function(X), X)


@pytest.mark.parametrize("form", ["scratch", "scoped", "loop", "parts", "array"])
def test_cores_copy_to_each_other(form: str) -> None:
    """Both cores swap what they have, after a barrier: in scratch or own memory, in parts, again and again."""
    half, rounds = X.shape[1] // 2, 3 if form == "loop" else 1

    def kernel(x_ref: Any, o_ref: Any, mine: Any, theirs: Any, copied: Any, sent: Any, received: Any) -> None:
        core = lax.axis_index("core")
        other = (core + 1) % lax.axis_size("core")
        pltpu.async_copy(x_ref.at[:, pl.ds(core * half, half)], mine, copied).wait()

        def meet() -> None:
            barrier = pltpu.get_barrier_semaphore()
            pl.semaphore_signal(barrier, 1, device_id={"core": other})
            pl.semaphore_wait(barrier, 1)

        def send(source: Any, target: Any) -> None:
            copy = pltpu.make_async_remote_copy(source, target, sent, received, device_id={"core": other})
            copy.start()
            copy.wait()

        meet()
        if form == "array":
            send(mine, o_ref.at[:, pl.ds(other * half, half)])
            return
        if form == "loop":

            @pl.loop(0, rounds)
            def _(_: Any) -> None:
                send(mine, theirs)
                mine[...] = theirs[...] + 1
                meet()

        elif form == "parts":
            for start in (0, 16):
                send(mine.at[pl.ds(start, 16)], theirs.at[pl.ds(16 - start, 16)])
        else:
            send(mine, theirs)
        pltpu.async_copy(mine if form == "loop" else theirs, o_ref.at[:, pl.ds(core * half, half)], copied).wait()

    scratch = [pltpu.VMEM((32, half), jnp.float32)] * 2 + [pltpu.SemaphoreType.DMA] * 3
    scoped: Any = lambda x_ref, o_ref: pl.run_scoped(functools.partial(kernel, x_ref, o_ref), *scratch)  # noqa: E731
    call: Any = pl.kernel(
        scoped if form == "scoped" else kernel,
        like(X),
        mesh=tensor_cores(),
        scratch_types=() if form == "scoped" else scratch,
        compiler_params=pltpu.CompilerParams(collective_id=0),
    )
    swapped = np.roll(X, half, axis=1)
    expected = {"loop": swapped + rounds, "parts": np.roll(swapped, 16, axis=0)}.get(form, swapped)
    np.testing.assert_array_equal(jax.jit(call)(X), expected)


def subcores(cores: int) -> Any:
    """A mesh of vector subcores, four of each core."""
    return plsc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore", num_cores=cores, num_subcores=4)


@needs_0_12("drops what names a subcore from a signal")
@pytest.mark.parametrize("named", ["subcore", "both"])
def test_subcores_signal_each_other(named: str) -> None:
    """Each waits for the one before it, of its own core or of the other one, and then reads what that has written."""

    def kernel(o_ref: Any, own: Any, semaphore: Any) -> None:
        core, subcore = lax.axis_index("core"), lax.axis_index("subcore")
        own[...] = jnp.full(8, 10 * core + subcore, jnp.int32)
        pltpu.sync_copy(own, o_ref.at[0, core, subcore])
        following = {"subcore": (subcore + 1) % 4} | ({"core": 1 - core} if named == "both" else {})
        pl.semaphore_signal(semaphore, 1, device_id=following)
        pl.semaphore_wait(semaphore, 1)
        pltpu.sync_copy(o_ref.at[0, 1 - core if named == "both" else core, (subcore + 3) % 4], own)
        pltpu.sync_copy(own, o_ref.at[1, core, subcore])

    scratch = [pltpu.VMEM((8,), jnp.int32), pltpu.SemaphoreType.REGULAR]
    call: Any = pl.kernel(
        kernel, jax.ShapeDtypeStruct((2, 2, 4, 8), jnp.int32), mesh=subcores(2), scratch_types=scratch
    )
    written = 10 * np.arange(2)[:, None] + np.arange(4)
    read = np.roll(written, (1, 1), (0, 1)) if named == "both" else np.roll(written, 1, 1)
    np.testing.assert_array_equal(quietly(jax.jit(call))[..., 0], np.stack([written, read]))


def test_subcores_count_together() -> None:
    """All add to the counter of one of them, and each gets what was there before."""

    def kernel(o_ref: Any, counter: Any, own: Any) -> None:
        subcore = lax.axis_index("subcore")
        counter[0] = 100
        plsc.subcore_barrier()
        before = plsc.fetch_and_add(counter.at[0], subcore + 1, subcore_id=2)
        plsc.subcore_barrier()
        own[...] = jnp.where(jnp.arange(8) < 4, before, counter[0])
        pltpu.sync_copy(own, o_ref.at[subcore])

    scratch = [pltpu.SMEM((1,), jnp.int32), pltpu.VMEM((8,), jnp.int32)]
    call: Any = pl.kernel(kernel, jax.ShapeDtypeStruct((4, 8), jnp.int32), mesh=subcores(1), scratch_types=scratch)
    result = np.asarray(quietly(jax.jit(call)))
    assert sorted(result[:, 7]) == [100, 100, 100, 110]
    assert result[2, 7] == 110
    gained = [min([other for other in [*result[:, 0], 110] if other > one]) - one for one in result[:, 0]]
    assert gained == [1, 2, 3, 4]


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_copy_may_be_waited_for_in_another_kernel(rounds: int) -> None:
    """The semaphore that one launch returns has counted the copy when the next one waits for it."""
    counted = pl.BlockSpec(memory_space=pltpu.SEMAPHORE)

    def start(x: Any) -> Any:
        def kernel(x_ref: Any, _: Any, o_ref: Any, semaphore: Any) -> None:
            pltpu.make_async_copy(x_ref, o_ref, semaphore).start()

        return pl.pallas_call(
            kernel,
            out_shape=(like(x), like(x), pltpu.SemaphoreType.DMA(())),
            in_specs=[ANYWHERE],
            out_specs=(ANYWHERE, ANYWHERE, counted),
            input_output_aliases={0: 0},
        )(x)

    def done(x: Any, copy: Any, semaphore: Any) -> Any:
        def kernel(x_ref: Any, copy_ref: Any, semaphore: Any, _: Any) -> None:
            pltpu.make_async_copy(x_ref, copy_ref, semaphore).wait()

        return pl.pallas_call(
            kernel,
            out_shape=like(x),
            in_specs=[ANYWHERE, ANYWHERE, counted],
            out_specs=ANYWHERE,
            input_output_aliases={1: 0},
        )(x, copy, semaphore)

    def function(x: Any) -> Any:
        last = lax.fori_loop(1, rounds, lambda _, flying: start(done(*flying) + 1), start(x))
        return done(*last)

    np.testing.assert_array_equal(jax.jit(function)(X), X + rounds - 1)
