"""Cores that signal each other on the CPU: what one writes before a barrier another reads behind it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hooked import hooked, quietly
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import tpu_sc as plsc
from releases import tensor_cores

import mosaic_grid
from mosaic_grid.cpu.convert import UnsupportedKernelError
from mosaic_grid.errors import UserError

X = np.arange(16 * 128, dtype=np.int32).reshape(16, 128)
COUNTER = pltpu.SemaphoreType.REGULAR


@pytest.fixture(autouse=True)
def on_cpu() -> Iterator[None]:
    """Every test runs with the option."""
    with hooked(cpu="v5p"):
        yield


def exchanged(meet: Callable[[Any], None], cores: int | None = None) -> Any:
    """Each core adds one to its part of the rows, and then takes over that of the core behind it."""

    def kernel(x_ref: Any, shared: Any, o_ref: Any, semaphores: Any, buffer: Any) -> None:
        number, core = lax.axis_size("core"), lax.axis_index("core")
        size = 16 // number
        mine, next_ones = pl.ds(core * size, size), pl.ds((core + 1) % number * size, size)
        part = buffer.at[pl.ds(0, size)]
        pltpu.sync_copy(x_ref.at[mine], part)
        buffer[...] += 1
        pltpu.sync_copy(part, shared.at[mine])
        meet(semaphores)
        pltpu.sync_copy(shared.at[next_ones], part)
        pltpu.sync_copy(part, o_ref.at[mine])

    mesh = tensor_cores(cores)
    like = jax.ShapeDtypeStruct(X.shape, X.dtype)
    scratch = [COUNTER((2,)), pltpu.VMEM((16, 128), jnp.int32)]
    return jax.jit(lambda x: pl.kernel(kernel, out_type=(like, like), mesh=mesh, scratch_types=scratch)(x)[1])


def barrier(semaphores: Any) -> None:
    """The one that comes with Pallas."""
    pltpu.core_barrier(semaphores.at[1], core_axis_name="core")


def signal_everybody(semaphores: Any) -> None:
    """A signal to each core, itself included, by its constant number."""
    number = lax.axis_size("core")
    for core in range(number):
        pl.semaphore_signal(semaphores.at[0], core_index=core)
    pl.semaphore_wait(semaphores.at[0], number)


def signal_the_next(semaphores: Any) -> None:
    """A signal to a core whose number is computed, and back."""
    number, core = lax.axis_size("core"), lax.axis_index("core")
    pl.semaphore_signal(semaphores.at[0], device_id={"core": (core + 1) % number})
    pl.semaphore_wait(semaphores.at[0], 1)
    pl.semaphore_signal(semaphores.at[1], device_id={"core": (core + number - 1) % number})
    pl.semaphore_wait(semaphores.at[1], 1)


def scoped_barrier(_: Any) -> None:
    """A barrier by a semaphore that is there for it alone."""
    pl.run_scoped(lambda semaphore: pltpu.core_barrier(semaphore, core_axis_name="core"), COUNTER)


@pytest.mark.parametrize("meet", [barrier, scoped_barrier, signal_everybody, signal_the_next])
@pytest.mark.parametrize("cores", [None, 1, 2])
def test_cores_exchange(meet: Callable[[Any], None], cores: int | None) -> None:
    """Two cores swap their halves over a barrier; a single one meets itself."""
    wanted = X if cores == 1 else np.roll(X, 8, axis=0)
    np.testing.assert_array_equal(exchanged(meet, cores)(X), wanted + 1)


def test_semaphores_are_used_up() -> None:
    """Each core counts its own signals: what is left after a wait is what it was sent and hasn't taken."""

    def kernel(o_ref: Any, semaphore: Any, count: Any) -> None:
        core = lax.axis_index("core")

        @pl.when(core == 0)
        def _() -> None:
            pl.semaphore_signal(semaphore, 5, core_index=1)

        pl.semaphore_signal(semaphore, 2)
        pl.semaphore_wait(semaphore, 1)
        count[0] = pl.semaphore_read(semaphore)
        pltpu.sync_copy(count, o_ref.at[core])

    mesh = tensor_cores(2)
    scratch = [COUNTER, pltpu.SMEM((1,), jnp.int32)]
    call = pl.kernel(kernel, out_type=jax.ShapeDtypeStruct((2, 1), jnp.int32), mesh=mesh, scratch_types=scratch)
    np.testing.assert_array_equal(jax.jit(call)(), [[1], [6]])


@pytest.mark.parametrize("cores", [1, 2])
def test_subcores_meet_in_their_core_s_memory(cores: int) -> None:
    """What a subcore writes to shared memory before a barrier the others of its core read behind it."""

    def kernel(x_ref: Any, o_ref: Any, row: Any, shared: Any) -> None:
        core, subcore = lax.axis_index("core"), lax.axis_index("subcore")
        pltpu.sync_copy(x_ref.at[core, subcore], row)
        pltpu.sync_copy(row, shared.at[subcore])
        plsc.subcore_barrier()
        pltpu.sync_copy(shared.at[15 - subcore], row)
        pltpu.sync_copy(row, o_ref.at[core, subcore])

    mesh = plsc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore", num_cores=cores)
    scratch = [pltpu.VMEM((8,), jnp.int32), pltpu.VMEM_SHARED((16, 8), jnp.int32)]
    like = jax.ShapeDtypeStruct((cores, 16, 8), jnp.int32)
    x = np.arange(cores * 128, dtype=np.int32).reshape(like.shape)
    call = pl.kernel(kernel, out_type=like, mesh=mesh, scratch_types=scratch)
    np.testing.assert_array_equal(quietly(jax.jit(call), x), x[:, ::-1])


@pytest.mark.parametrize(("steps", "dynamic"), [(1, False), (3, False), (0, True), (1, True), (3, True)])
def test_cores_that_meet_in_each_of_their_steps(steps: int, dynamic: bool) -> None:
    """Cores with steps of their own go through these together; each has blocks and scratch."""
    x = np.arange(2 * 3 * 8 * 128, dtype=np.int32).reshape(6, 8, 128)

    def kernel(x_ref: Any, mailbox: Any, o_ref: Any, semaphore: Any, row: Any, count: Any) -> None:
        core, step = pl.program_id(0), pl.program_id(1)

        def meet() -> None:
            pl.semaphore_signal(semaphore, core_index=1 - core)
            pl.semaphore_wait(semaphore, 1)

        @pl.when(step == 0)
        def _() -> None:
            count[0] = 0

        count[0] += core + 1
        row[...] = x_ref[...]
        pltpu.sync_copy(row, mailbox.at[core])
        meet()
        pltpu.sync_copy(mailbox.at[1 - core], row)
        meet()
        o_ref[...] = row[...] + 100_000 * count[0]

    def call(n: Any, x: Any) -> Any:
        block = pl.BlockSpec((None, 8, 128), lambda i, j: (3 * i + j, 0, 0))
        whole = pl.BlockSpec(memory_space=pl.ANY)
        return pl.pallas_call(
            kernel,
            out_shape=(jax.ShapeDtypeStruct((2, 8, 128), x.dtype), jax.ShapeDtypeStruct(x.shape, x.dtype)),
            grid=(2, n),
            in_specs=[block],
            out_specs=(whole, block),
            scratch_shapes=[COUNTER, pltpu.VMEM((8, 128), jnp.int32), pltpu.SMEM((1,), jnp.int32)],
            compiler_params=pltpu.CompilerParams(dimension_semantics=(pltpu.CORE_PARALLEL, pltpu.ARBITRARY)),
        )(x)[1]

    found = jax.jit(call)(steps, x) if dynamic else jax.jit(lambda x: call(steps, x))(x)
    for core in range(2):
        for step in range(steps):
            expected = x[3 * (1 - core) + step] + 100_000 * (core + 1) * (step + 1)
            np.testing.assert_array_equal(found[3 * core + step], expected)


def test_cores_meet_as_often_as_there_are_steps() -> None:
    """The grid's bounds are the same on each core, a dynamic one too."""

    def kernel(o_ref: Any, semaphore: Any, count: Any) -> None:
        core = pl.program_id(0)
        count[...] = jnp.zeros_like(count)

        @pl.loop(0, pl.num_programs(1))
        def _(_: Any) -> None:
            pl.semaphore_signal(semaphore, core + 1, core_index=1 - core)
            pl.semaphore_wait(semaphore, 2 - core)
            count[...] += core + 1

        o_ref[...] = count[...]

    def call(n: Any) -> Any:
        return pl.pallas_call(
            kernel,
            out_shape=jax.ShapeDtypeStruct((2, 8, 128), jnp.int32),
            grid=(2, n),
            out_specs=pl.BlockSpec((None, 8, 128), lambda i, _: (i, 0, 0)),
            scratch_shapes=[COUNTER, pltpu.VMEM((8, 128), jnp.int32)],
            compiler_params=pltpu.CompilerParams(dimension_semantics=(pltpu.CORE_PARALLEL, pltpu.ARBITRARY)),
        )()

    for n in (1, 3):
        np.testing.assert_array_equal(jax.jit(call)(n)[:, 0, 0], [n, 2 * n])


def test_no_core_has_nothing_to_wait_for() -> None:
    """A kernel for no core at all does nothing."""

    def kernel(x_ref: Any, o_ref: Any, semaphore: Any) -> None:
        pl.semaphore_signal(semaphore, core_index=1 - pl.program_id(0))
        pl.semaphore_wait(semaphore, 1)
        o_ref[...] = x_ref[...] + 1

    block = pl.BlockSpec((8, 128), lambda i, j: (i, j))
    call = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(X.shape, X.dtype),
        grid=(0, 1),
        in_specs=[block],
        out_specs=block,
        input_output_aliases={0: 0},
        scratch_shapes=[COUNTER],
        compiler_params=pltpu.CompilerParams(dimension_semantics=(pltpu.CORE_PARALLEL, pltpu.ARBITRARY)),
    )
    np.testing.assert_array_equal(jax.jit(call)(X), X)


def test_each_core_draws_its_own_numbers() -> None:
    """A core's generator goes on where its own last step left it, whatever the other one does between two waits."""

    def drawn(*, waits: bool) -> Any:
        def kernel(o_ref: Any, semaphore: Any) -> None:
            core, step = pl.program_id(0), pl.program_id(1)

            @pl.when(step == 0)
            def _() -> None:
                pltpu.prng_seed(core)

            if waits:
                pl.semaphore_signal(semaphore, core_index=1 - core)
                pl.semaphore_wait(semaphore, 1)
            o_ref[...] = pltpu.bitcast(pltpu.prng_random_bits((8, 128)), jnp.int32)

        return pl.pallas_call(
            kernel,
            out_shape=jax.ShapeDtypeStruct((2, 24, 128), jnp.int32),
            grid=(2, 3),
            out_specs=pl.BlockSpec((None, 8, 128), lambda i, j: (i, j, 0)),
            scratch_shapes=[COUNTER],
            compiler_params=pltpu.CompilerParams(dimension_semantics=(pltpu.CORE_PARALLEL, pltpu.ARBITRARY)),
        )()

    alone, together = (jax.jit(functools.partial(drawn, waits=waits))() for waits in (False, True))
    assert len(np.unique(alone)) > 6000
    np.testing.assert_array_equal(together, alone)


def test_wait_in_a_loop_is_refused() -> None:
    """Where a wait isn't surely met by every core alike the kernel is refused, at the wait."""

    def meet(semaphores: Any) -> None:
        @pl.loop(0, lax.axis_index("core") + 1)
        def _(_: Any) -> None:
            signal_everybody(semaphores)

    with pytest.raises(UnsupportedKernelError, match=r"test_cpu_lockstep.py:\d+:\d+: tpu.sem_wait: .* a loop"):
        exchanged(meet)(X)


def in_a_loop(semaphores: Any) -> None:
    """Three barriers, one a round."""

    @pl.loop(0, 3)
    def _(_: Any) -> None:
        barrier(semaphores)


def scoped_in_a_loop(semaphores: Any) -> None:
    """Rounds whose number is computed, each with a semaphore of its own."""

    @pl.loop(0, lax.axis_size("core") * 2, step=2)
    def _(_: Any) -> None:
        scoped_barrier(semaphores)


def in_a_condition(semaphores: Any) -> None:
    """The second round of two has the barrier, in a loop of its own."""

    @pl.loop(0, 2)
    def _(i: Any) -> None:
        @pl.when(i == 1)
        def _() -> None:
            in_a_loop(semaphores)


@pytest.mark.parametrize("meet", [in_a_loop, scoped_in_a_loop, in_a_condition])
@pytest.mark.parametrize("cores", [1, 2])
def test_cores_meet_in_loops_and_conditions(meet: Callable[[Any], None], cores: int) -> None:
    """Where they are the same on all cores these go through them together."""
    wanted = X if cores == 1 else np.roll(X, 8, axis=0)
    np.testing.assert_array_equal(exchanged(meet, cores)(X), wanted + 1)


def test_rounds_hand_on_what_each_core_has() -> None:
    """What a core keeps from round to round, in memory or as a value, is its own; what it sends the other gets."""

    def kernel(x_ref: Any, shared: Any, o_ref: Any, semaphores: Any, row: Any, counts: Any) -> None:
        core = lax.axis_index("core")
        pltpu.sync_copy(x_ref.at[core], row)

        def exchange(i: Any, total: Any) -> Any:
            pltpu.sync_copy(row, shared.at[core])
            barrier(semaphores)
            pltpu.sync_copy(shared.at[1 - core], row)
            barrier(semaphores)
            row[...] += core + 1
            return total + 10 * (core + 1) + i

        counts[...] = jnp.full(counts.shape, lax.fori_loop(0, 3, exchange, jnp.int32(core)), jnp.int32)
        pltpu.sync_copy(row, o_ref.at[core, 0])
        pltpu.sync_copy(counts, o_ref.at[core, 1])

    x = np.stack([X[:8], 100 + X[8:]])
    block = pltpu.VMEM((8, 128), jnp.int32)
    out = (jax.ShapeDtypeStruct((2, 8, 128), jnp.int32), jax.ShapeDtypeStruct((2, 2, 8, 128), jnp.int32))
    call = pl.kernel(
        kernel, out_type=out, mesh=tensor_cores(2), scratch_types=[COUNTER((2,)), block, block]
    )  # fmt: skip
    rows, counts = jax.jit(call)(x)[1].swapaxes(0, 1)
    np.testing.assert_array_equal(rows, np.stack([x[1] + 1 + 2 + 1, x[0] + 2 + 1 + 2]))
    np.testing.assert_array_equal(counts[:, 0, 0], [0 + 3 * 10 + 3, 1 + 3 * 20 + 3])


def test_why_cores_can_not_go_on_together() -> None:
    """A signal to another core is refused with the reason: their number, or how the kernel is run."""

    def kernel(o_ref: Any, semaphore: Any) -> None:
        pl.semaphore_signal(semaphore, core_index=1 - pl.program_id(0))
        pl.semaphore_wait(semaphore, 1)
        o_ref[...] = jnp.zeros_like(o_ref)

    def call(n: Any) -> Any:
        return pl.pallas_call(
            kernel,
            out_shape=jax.ShapeDtypeStruct(X.shape, X.dtype),
            grid=(n,),
            out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
            scratch_shapes=[COUNTER],
            compiler_params=pltpu.CompilerParams(dimension_semantics=(pltpu.CORE_PARALLEL,)),
        )()

    program = jax.jit(lambda: call(2)).trace().lower(lowering_platforms=("tpu",))
    for how, why in (
        ({"check": True}, "cores are checked one after the other"),
        ({"dma": "late"}, "cores whose copies land late run one after the other"),
    ):
        with pytest.raises(UserError) as caught:
            mosaic_grid.run(program, **how)
        assert f"tpu.sem_signal: a signal to another core; {why}" in str(caught.value)
    with pytest.raises(UnsupportedKernelError, match="another core; the number of cores is only known at run time"):
        jax.jit(call)(np.int32(2))
