"""The kernels whose speed on the CPU is measured, and plain JAX that computes the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas.ops.tpu import flash_attention

Function = Callable[..., Any]

BLOCK = 128


def matmul(x: Any, y: Any) -> Any:
    """`x @ y`, a block of the result at a time: its products are added up in scratch."""

    def step(x: Any, y: Any, out: Any, total: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            total[...] = jnp.zeros_like(total)

        total[...] += jnp.dot(x[...], y[...], preferred_element_type=jnp.float32)

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _() -> None:
            out[...] = total[...]

    return pl.pallas_call(
        step,
        grid=(x.shape[0] // BLOCK, y.shape[1] // BLOCK, x.shape[1] // BLOCK),
        in_specs=[
            pl.BlockSpec((BLOCK, BLOCK), lambda i, j, k: (i, k)),
            pl.BlockSpec((BLOCK, BLOCK), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((BLOCK, BLOCK), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((x.shape[0], y.shape[1]), jnp.float32),
        scratch_shapes=[pltpu.VMEM((BLOCK, BLOCK), jnp.float32)],
    )(x, y)


def products(count: int, x: Any, y: Any) -> Any:
    """Adds up `count` products of two blocks; each factor differs, as far as XLA can tell."""

    def step(number: Any, total: Any) -> Any:
        return total + jnp.dot(x + (number < 0).astype(x.dtype), y, preferred_element_type=jnp.float32)

    return jax.lax.fori_loop(0, count, step, jnp.zeros((x.shape[0], y.shape[1]), jnp.float32))


def repeated_sum(steps: Any, x: Any) -> Any:
    """Adds up blocks of `x`, one a step, from the first on again after the last."""

    def step(x: Any, total: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            total[...] = jnp.zeros_like(total)

        total[...] += x[...]

    return pl.pallas_call(
        step,
        grid=(steps,),
        in_specs=[pl.BlockSpec((BLOCK, BLOCK), lambda i: (i % (x.shape[0] // BLOCK), 0))],
        out_specs=pl.BlockSpec((BLOCK, BLOCK), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((BLOCK, BLOCK), jnp.float32),
    )(x)


def update(table: Any, x: Any) -> Any:
    """Adds 1 to the blocks of `x` that the table names, one a step, in place."""

    def step(table: Any, x: Any, out: Any) -> None:
        del table
        out[...] = x[...] + 1

    def place(i: Any, table: Any) -> tuple[Any, int]:
        return table[i], 0

    return pl.pallas_call(
        step,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(table.shape[0],),
            in_specs=[pl.BlockSpec((BLOCK, BLOCK), place)],
            out_specs=pl.BlockSpec((BLOCK, BLOCK), place),
        ),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        input_output_aliases={1: 0},
    )(table, x)


def attention(*, causal: bool) -> Function:
    """JAX's flash attention in the blocks that it takes itself."""
    return lambda q, k, v: flash_attention.flash_attention(q, k, v, causal=causal)


def reference(*, causal: bool) -> Function:
    """Attention in plain JAX."""
    return lambda q, k, v: flash_attention.mha_reference(q, k, v, None, causal=causal)
