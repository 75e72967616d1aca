"""Kernels that drive the matrix unit by hand, on the CPU under the hook."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hooked import hooked
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from releases import needs_0_12

from mosaic_grid.cpu.convert import UnsupportedKernelError

SIDE = 128
NUMBERS = np.random.default_rng(0)


def numbers(rows: int, columns: int, dtype: Any) -> Any:
    """Small integers, whose products and sums are exact in every type."""
    return jnp.asarray(NUMBERS.integers(-3, 4, (rows, columns))).astype(dtype)


def exact(x: Any, y: Any) -> Any:
    """The product, in 64-bit integers."""
    return np.asarray(x).astype(np.int64) @ np.asarray(y).astype(np.int64)


@needs_0_12("has no queue")
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.float8_e5m2, jnp.int8])
def test_rows_leave_the_queue_in_order(dtype: Any, transpose: bool) -> None:
    """More rows than fit go through it, a few at a time, taken in other portions, with two matrices in turn."""
    count, rows = 40, 32
    kind = jnp.int32 if dtype == jnp.int8 else jnp.float32

    def kernel(x_ref: Any, y_ref: Any, z_ref: Any, o_ref: Any) -> None:
        pltpu.matmul_push_rhs(y_ref[...], 0, 0, transpose=transpose)
        pltpu.matmul_push_rhs(z_ref[...], 1, 0, transpose=transpose)

        @pl.loop(0, count)
        def _(i: Any) -> None:
            x = x_ref[pl.ds(i * rows, rows)]
            pltpu.matmul_lhs_fifo(x, 0, load_staged_rhs=0)
            pltpu.matmul_lhs_fifo(x, 0, load_staged_rhs=1)
            for part in range(4):
                taken = pltpu.matmul_pop_fifo((rows // 2, SIDE), kind, 0)
                o_ref[part // 2, pl.ds(i * rows + part % 2 * (rows // 2), rows // 2)] = taken

    x, y, z = numbers(count * rows, SIDE, dtype), numbers(SIDE, SIDE, dtype), numbers(SIDE, SIDE, dtype)
    with hooked(cpu="v5e"):
        call = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((2, count * rows, SIDE), kind))
        result = jax.jit(call)(x, y, z)
    right = [each.T if transpose else each for each in (y, z)]
    np.testing.assert_array_equal(result, np.stack([exact(x, each) for each in right]))


@needs_0_12("addresses accumulators by number")
def test_accumulators_add_up_until_they_are_taken() -> None:
    """What isn't loaded anew is multiplied with again; an accumulator is zero when it has been taken."""

    def kernel(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        def body(first: Any, second: Any) -> None:
            pltpu.matmul_push_rhs(y_ref[...], 0, 0)
            pltpu.matmul_push_rhs(y_ref[...], 1, 0, transpose=True)
            pltpu.matmul_acc_lhs(first, x_ref[...], load_staged_rhs=0)
            pltpu.matmul_acc_lhs(first, x_ref[...])
            pltpu.matmul_acc_lhs(second, x_ref[...], load_staged_rhs=1)
            o_ref[0] = pltpu.matmul_pop(first)
            o_ref[1] = pltpu.matmul_pop(second)
            pltpu.matmul_acc_lhs(first, x_ref[...])
            o_ref[2] = pltpu.matmul_pop(first)

        accumulator: Any = pltpu.ACC(0)((64, 256), jnp.float32)
        pl.run_scoped(body, accumulator, accumulator)

    x, y = numbers(64, 256, jnp.bfloat16), numbers(256, 256, jnp.bfloat16)
    with hooked(cpu="tpu7x"):
        call = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((3, 64, 256), jnp.float32))
        result = jax.jit(call)(x, y)
    np.testing.assert_array_equal(result, np.stack([2 * exact(x, y), exact(x, y.T), exact(x, y.T)]))


@needs_0_12("has no queue")
def test_registers_of_two_types_are_refused() -> None:
    """What a register holds has to be known beforehand."""

    def kernel(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        for register, ref in enumerate((x_ref, y_ref)):
            pltpu.matmul_push_rhs(ref[...], register, 0)
            pltpu.matmul_lhs_fifo(ref[:16], 0, load_staged_rhs=register)
            o_ref[...] = pltpu.matmul_pop_fifo((16, SIDE), jnp.float32, 0)

    x, y = numbers(SIDE, SIDE, jnp.float32), numbers(SIDE, SIDE, jnp.bfloat16)
    with hooked(cpu="v5e"), pytest.raises(UnsupportedKernelError) as refusal:
        jax.jit(pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((16, SIDE), jnp.float32)))(x, y)
    assert any("holds matrices of several types or sizes" in note for note in refusal.value.notes)
