"""Kernels that ship with JAX, lowered for TPU with a parallel dimension of their grid made dynamic.

The kernels are JAX's own to the last op; only the grid that their wrappers pass to `pallas_call` is changed.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any
from unittest import mock

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp

Grid = tuple[Any, ...]


@contextlib.contextmanager
def changed_grid(module: ModuleType, change: Callable[[Grid], Grid]) -> Iterator[None]:
    """Within it, the wrappers of a kernel module pass a changed grid to `pallas_call`."""
    original = module.pl.pallas_call

    def pallas_call(kernel: Any, *args: Any, grid_spec: Any, **kwargs: Any) -> Any:
        object.__setattr__(grid_spec, "grid", change(grid_spec.grid))
        return original(kernel, *args, grid_spec=grid_spec, **kwargs)

    with mock.patch.object(module.pl, "pallas_call", pallas_call):
        yield


def lower_for_tpu(function: Callable[..., Any], *arguments: Any) -> str:
    """The StableHLO text of a function lowered for TPU, on any machine, with its source locations."""
    return str(jax.jit(function).trace(*arguments).lower(lowering_platforms=("tpu",)).as_text(debug_info=True))


def dynamic_gmm() -> str:
    """megablox's grouped matmul, (1024, 1024) by 8 groups of (1024, 2048) in bf16, over its live columns only.

    How many of the 2048 columns are live is known at run time: the grid has 2 to 4 tiles of 512 of them.
    """
    megablox = importlib.import_module("jax.experimental.pallas.ops.tpu.megablox.gmm")

    def gmm(live_columns: jax.Array, lhs: jax.Array, rhs: jax.Array, group_sizes: jax.Array) -> jax.Array:
        tiles = jnp.clip(-(-live_columns // 512), 2, 4)
        with changed_grid(megablox, lambda grid: (tiles, *grid[1:])):
            result: jax.Array = megablox.gmm(
                lhs, rhs, group_sizes, preferred_element_type=jnp.float32, tiling=(128, 512, 512)
            )
        return result

    scalar = jax.ShapeDtypeStruct((), jnp.int32)
    lhs = jax.ShapeDtypeStruct((1024, 1024), jnp.bfloat16)
    rhs = jax.ShapeDtypeStruct((8, 1024, 2048), jnp.bfloat16)
    return lower_for_tpu(gmm, scalar, lhs, rhs, jax.ShapeDtypeStruct((8,), jnp.int32))


def dynamic_flash_attention() -> str:
    """Flash attention of 512 queries on 2048 keys, depth 128, causal, over a dynamic number of heads."""
    flash = importlib.import_module("jax.experimental.pallas.ops.tpu.flash_attention")
    blocks = flash.BlockSizes(block_q=512, block_k_major=512, block_k=512, block_b=1)

    def attend(heads: jax.Array, q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        with changed_grid(flash, lambda grid: (grid[0], heads, *grid[2:])):
            result: jax.Array = flash.flash_attention(q, k, v, causal=True, block_sizes=blocks)
        return result

    queries = jax.ShapeDtypeStruct((1, 8, 512, 128), jnp.float32)
    keys = jax.ShapeDtypeStruct((1, 8, 2048, 128), jnp.float32)
    return lower_for_tpu(attend, jax.ShapeDtypeStruct((), jnp.int32), queries, keys, keys)


def dynamic_copy() -> str:
    """The smallest kernel there is: an 8 by 128 block copied a step, grid (n, 8), the first dimension parallel."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def copy(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...]

    def run(n: jax.Array, x: jax.Array) -> jax.Array:
        block = pl.BlockSpec((8, 128), lambda i, j: (i, j))
        params = pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary"))
        out = jax.ShapeDtypeStruct(x.shape, x.dtype)
        call = pl.pallas_call(
            copy, grid=(n, 8), in_specs=[block], out_specs=block, out_shape=out, compiler_params=params, name="copy"
        )
        result: jax.Array = call(x)
        return result

    return lower_for_tpu(run, jax.ShapeDtypeStruct((), jnp.int32), jax.ShapeDtypeStruct((1024, 1024), jnp.float32))
