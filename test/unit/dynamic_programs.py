"""Pallas kernels with dynamic grids, lowered for TPU by JAX: what users have, with inputs to run them on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from mosaic_grid.cpu.arrays import Array

BLOCK = (8, 128)


def lower(function: Callable[..., Any], *arguments: Array) -> str:
    """StableHLO text of a function of these arguments, for TPU."""
    text: str = jax.jit(function).trace(*arguments).lower(lowering_platforms=("tpu",)).as_text()
    return text


def array(*shape: int) -> Any:
    """The abstract value of an f32 array."""
    make: Any = jax.ShapeDtypeStruct  # which has no types of its own
    return make(shape, jnp.float32)


def params(*semantics: Any) -> Any:
    """Compiler parameters with these dimension semantics."""
    return pltpu.CompilerParams(dimension_semantics=semantics)


def numbers(*shape: int) -> Array:
    """Small whole numbers as f32, of which sums are exact."""
    return np.random.default_rng(0).integers(-8, 8, shape).astype(np.float32)


def scale_in_place(n: Any, x: Any) -> Any:
    """Doubles the first n blocks of rows where they are; adds how many programs there are and which one this is."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        shift = pl.num_programs(0) * 1000 + pl.program_id(0) * 10 + pl.program_id(1)
        o_ref[...] = x_ref[...] * 2.0 + shift.astype(jnp.float32)

    spec = pl.BlockSpec(BLOCK, lambda i, j: (i, j))
    launch = pl.pallas_call(
        kernel,
        array(*x.shape),
        grid=(n, 3),
        in_specs=[spec],
        out_specs=spec,
        input_output_aliases={0: 0},
        compiler_params=params("parallel", "arbitrary"),
    )
    return launch(x)


def matmul(n: Any, k: Any, x: Any, y: Any) -> Any:
    """A product of n blocks of rows over k blocks, summed up in scratch."""

    def kernel(x_ref: Any, y_ref: Any, o_ref: Any, sum_ref: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            sum_ref[...] = jnp.zeros_like(sum_ref)

        sum_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _() -> None:
            o_ref[...] = sum_ref[...]

    launch = pl.pallas_call(
        kernel,
        array(x.shape[0], y.shape[1]),
        grid=(n, 2, k),
        in_specs=[pl.BlockSpec(BLOCK, lambda i, j, k: (i, k)), pl.BlockSpec((128, 128), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec(BLOCK, lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM(BLOCK, jnp.float32)],
        compiler_params=params("parallel", "arbitrary", "arbitrary"),
    )
    return launch(x, y)


def gather(n: Any, table: Any, factor: Any, x: Any) -> Any:
    """Reads the block of rows that a prefetched table names; a factor is in SMEM."""

    def kernel(table_ref: Any, factor_ref: Any, x_ref: Any, o_ref: Any) -> None:
        row = table_ref[pl.program_id(0)].astype(jnp.float32)
        o_ref[...] = x_ref[...] * factor_ref[0] + row
        o_ref[0, :] = jnp.exp(x_ref[0]) + jnp.sum(x_ref[...], axis=0)

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(2, n),
        in_specs=[
            pl.BlockSpec(memory_space=pltpu.SMEM),
            pl.BlockSpec((None, *BLOCK), lambda j, i, table: (table[i], 0, j)),
        ],
        out_specs=pl.BlockSpec((None, *BLOCK), lambda j, i, table: (i, 0, j)),
    )
    launch = pl.pallas_call(kernel, array(*x.shape), grid_spec=spec, compiler_params=params("arbitrary", "parallel"))
    return launch(table, factor, x)


def rows(n: Any, x: Any, unused: Any) -> Any:
    """Sums the first rows of a window that moves by half its rows, in a loop; another operand stays in HBM."""

    def kernel(x_ref: Any, unused_ref: Any, o_ref: Any) -> None:
        def add(row: Any, total: Any) -> Any:
            return total + x_ref[row, :]

        total = jax.lax.fori_loop(0, jnp.minimum(pl.program_id(0), 7) + 1, add, jnp.zeros((128,), jnp.float32))
        o_ref[...] = jnp.broadcast_to(total[None], BLOCK) + jnp.max(x_ref[...])

    launch = pl.pallas_call(
        kernel,
        array(*x.shape),
        grid=(n,),
        in_specs=[
            pl.BlockSpec((pl.Element(8), pl.Element(128)), lambda i: (i * 4, 0)),
            pl.BlockSpec(memory_space=pl.ANY),
        ],
        out_specs=pl.BlockSpec(BLOCK, lambda i: (i, 0)),
        compiler_params=params("parallel"),
    )
    return launch(x, unused)


def outer_product(n: Any, m: Any, x: Any, y: Any) -> Any:
    """Two dynamic parallel dimensions, computed from the arguments by arithmetic of the outer function."""

    def kernel(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * y_ref[...]

    launch = pl.pallas_call(
        kernel,
        array(x.shape[0], y.shape[1]),
        grid=(jnp.minimum(n, 7), pl.cdiv(jnp.maximum(m, 1), 128)),
        in_specs=[pl.BlockSpec((8, 1), lambda i, j: (i, 0)), pl.BlockSpec((1, 128), lambda i, j: (0, j))],
        out_specs=pl.BlockSpec(BLOCK, lambda i, j: (i, j)),
        compiler_params=params("parallel", "parallel"),
    )
    return launch(x, y)


@functools.cache
def programs() -> dict[str, tuple[str, tuple[Array, ...]]]:
    """Each kernel as text, with its inputs behind the dynamic bound `n`, which comes first and goes up to 7."""
    n = np.asarray(0, np.int32)
    inputs: dict[Callable[..., Any], tuple[Array, ...]] = {
        scale_in_place: (numbers(60, 384),),  # the last block of rows is cut
        matmul: (np.asarray(2, np.int32), numbers(56, 256), numbers(256, 256)),
        gather: (np.arange(7, dtype=np.int32)[::-1].copy(), numbers(1), numbers(7, 8, 256)),
        rows: (numbers(56, 128), numbers(56, 128)),
        outer_product: (np.asarray(300, np.int32), numbers(56, 1), numbers(1, 384)),
    }
    return {function.__name__: (lower(function, n, *rest), rest) for function, rest in inputs.items()}
