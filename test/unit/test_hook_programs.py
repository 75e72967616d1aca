"""Kernels with a program for each kind of SparseCore, on the CPU under the hook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hooked import hooked, lowered, quietly
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import tpu_sc as plsc

import mosaic_grid
from mosaic_grid.cpu.convert import UnsupportedKernelError
from mosaic_grid.errors import UserError

OUTPUT = jax.ShapeDtypeStruct((8,), jnp.int32)
X = jnp.arange(8, dtype=jnp.int32)


@pytest.fixture(autouse=True)
def on_cpu() -> Iterator[None]:
    """Every test runs with the option."""
    with hooked(cpu="v5p"):
        yield


def meshes() -> list[Any]:
    """Two SparseCores, with four vector subcores each."""
    return [
        plsc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore", num_cores=2, num_subcores=4),
        plsc.ScalarSubcoreMesh(axis_name="core", num_cores=2),
    ]


def add(x: Any) -> Any:
    """Vector subcores add one to rows of the first half, scalar ones two to rows of the second half."""

    def vector(x_ref: Any, o_ref: Any, shared: Any) -> None:
        row = lax.axis_index("core") * 4 + lax.axis_index("subcore")

        def body(own: Any) -> None:
            pltpu.sync_copy(x_ref, shared.at[row])
            pltpu.sync_copy(shared.at[row], own)
            own[...] += 1
            pltpu.sync_copy(own, o_ref.at[row])

        pl.run_scoped(body, pltpu.VMEM((8,), jnp.int32))

    def scalar(x_ref: Any, o_ref: Any, _: Any) -> None:
        def body(own: Any) -> None:
            pltpu.sync_copy(x_ref, own)

            @pl.loop(0, 8)
            def _(i: Any) -> None:
                own[i] += 2

            pltpu.sync_copy(own, o_ref.at[8 + lax.axis_index("core")])

        pl.run_scoped(body, pltpu.SMEM((8,), jnp.int32))

    kernel: Any = pl.kernel(
        [vector, scalar],
        jax.ShapeDtypeStruct((10, 8), jnp.int32),
        mesh=meshes(),
        scratch_types=(pltpu.VMEM_SHARED((8, 8), jnp.int32),),
    )
    return kernel(x)


def test_every_program_runs() -> None:
    """Each does its part of one output, on cores of its own."""
    expected = np.concatenate([np.tile(X + 1, (8, 1)), np.tile(X + 2, (2, 1))])
    np.testing.assert_array_equal(quietly(jax.jit(add), X), expected)  # JAX wants None for a semaphore
    program = quietly(lowered, add, X)
    (result,) = mosaic_grid.run(program, X)
    np.testing.assert_array_equal(result, expected)
    with pytest.raises(UserError, match="several programs"):
        mosaic_grid.run(program, X, check=True)


def test_programs_that_wait_for_each_other_are_refused() -> None:
    """They run one after the other, so that nobody could signal the first."""
    both = meshes()
    semaphores = [pltpu.SemaphoreType.REGULAR(()) @ both[0]]

    def vector(_: Any, semaphore: Any) -> None:
        pl.semaphore_wait(semaphore, 1)

    def scalar(_: Any, semaphore: Any) -> None:
        core = lax.axis_index("core")
        for subcore in range(4):
            pl.semaphore_signal(semaphore, device_id={"core": core, "subcore": subcore})

    kernel: Any = pl.kernel([vector, scalar], OUTPUT, mesh=both, scratch_types=semaphores)
    with pytest.raises(UnsupportedKernelError) as refusal:
        jax.jit(kernel)()
    assert {each.op for each in refusal.value.unsupported} == {"tpu.sem_signal", "tpu.sem_wait"}
    assert all("several programs" in each.reason for each in refusal.value.unsupported)
