"""A kernel that waits for what can't come is an error under the hook, too, wherever in the program it is launched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest
from hook_kernels import like
from hooked import hooked
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from releases import tensor_cores

X = np.arange(32 * 128, dtype=np.float32).reshape(32, 128)
COUNTER = pltpu.SemaphoreType.REGULAR
RAISED = (jax.errors.JaxRuntimeError, ValueError)
"""What JAX makes of an error in a function that a program calls: one or the other, by how the program was called."""


@pytest.fixture(autouse=True)
def on_cpu() -> Iterator[None]:
    """Every test runs with the option."""
    with hooked(cpu="v5p"):
        yield


def doubled(n: Any, x: Any) -> Any:
    """Doubles blocks; the third one is late by a signal, if `n` is 1."""

    def kernel(n_ref: Any, x_ref: Any, o_ref: Any, semaphore: Any) -> None:
        @pl.when(pl.program_id(0) == 2)
        def _() -> None:
            pl.semaphore_signal(semaphore, 1 - n_ref[0])
            pl.semaphore_wait(semaphore, 1)

        o_ref[...] = x_ref[...] * 2

    block = pl.BlockSpec((8, 128), lambda i, n: (i, 0))
    grid = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(4,), in_specs=[block], out_specs=block, scratch_shapes=[COUNTER]
    )
    return pl.pallas_call(kernel, out_shape=like(X), grid_spec=grid)(n, x)


def once(n: Any) -> Any:
    """The launch alone."""
    return doubled(n, X)


def in_a_loop(n: Any) -> Any:
    """The last round waits in vain."""
    return lax.fori_loop(0, 3, lambda i, x: doubled(n * (i == 2), x) / 2, X)


def batched(n: Any) -> Any:
    """One element of two waits in vain."""
    return jax.vmap(doubled, (0, None))(n * np.array([[0], [1]], np.int32), X)


@pytest.mark.parametrize("function", [once, in_a_loop, batched])
def test_a_wait_in_vain_is_an_error(function: Callable[[Any], Any]) -> None:
    """It names the kernel, the semaphore, the numbers and the step; the same program runs where the signal comes."""
    call = jax.jit(function)
    call(np.array([0], np.int32)).block_until_ready()
    numbers = r"in vain: it counts 0, and 1 are waited for.*\(2\)"
    message = rf"test_hook_stuck.py:\d+:\d+: error: 'kernel' waits for (semaphore '\w+'|scratch 0) {numbers}"
    with pytest.raises(RAISED, match=message):
        call(np.array([1], np.int32)).block_until_ready()


def test_a_copy_that_nobody_started() -> None:
    """The same of copies."""

    def kernel(x_ref: Any, o_ref: Any, semaphore: Any) -> None:
        pltpu.make_async_copy(x_ref, o_ref, semaphore).wait()

    whole = pl.BlockSpec(memory_space=pl.ANY)
    call = pl.pallas_call(
        kernel, out_shape=like(X), in_specs=[whole], out_specs=whole, scratch_shapes=[pltpu.SemaphoreType.DMA]
    )
    with pytest.raises(RAISED, match=r"'kernel' waits for (semaphore '\w+'|scratch 0) in vain: it counts 0"):
        jax.jit(call)(X).block_until_ready()


def test_cores_that_wait_for_more_than_all_send() -> None:
    """Cores that signal each other are told of, too, each with its own place in the grid."""

    def kernel(o_ref: Any, semaphore: Any) -> None:
        pl.semaphore_signal(semaphore, core_index=1 - lax.axis_index("core"))
        pl.semaphore_wait(semaphore, 2)

    call = pl.kernel(kernel, out_type=like(X), mesh=tensor_cores(2), scratch_types=[COUNTER])
    with pytest.raises(RAISED, match=r"in vain: it counts 1, and 2 are waited for, first at grid point \(0\)"):
        jax.jit(call)().block_until_ready()
