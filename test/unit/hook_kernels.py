"""Kernels for the tests of the hook."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from releases import tensor_cores

Function = Callable[..., Any]
PARALLEL, ARBITRARY = pltpu.PARALLEL, pltpu.ARBITRARY
ANYWHERE = pl.BlockSpec(memory_space=pl.ANY)


def like(x: Any) -> Any:
    """The shape of an output that is like an input."""
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def plus_one(x_ref: Any, o_ref: Any) -> None:
    """The body of most kernels here."""
    o_ref[...] = x_ref[...] + 1


def rows(n: Any, x: Any, semantics: Any = "parallel") -> Any:
    """Adds one to the first n blocks of 8 rows."""
    block = pl.BlockSpec((8, 128), lambda i, j: (i, j))
    return pl.pallas_call(
        plus_one,
        out_shape=like(x),
        grid=(n, x.shape[1] // 128),
        in_specs=[block],
        out_specs=block,
        compiler_params=pltpu.CompilerParams(dimension_semantics=(semantics, "arbitrary")),
        name="rows",
    )(x)


def pipeline(
    grid: Function,
    semantics: tuple[Any, ...],
    cores: Function = lambda count: (2,),
    axis: Any = 0,
    outer: Any = ("parallel",),
) -> Function:
    """An emit_pipeline that adds one to blocks of (8, 128), shared by the programs of an outer grid.

    The function takes three sizes, the array and what the result is where nothing is written. `grid` makes the
    pipeline's grid of the sizes, `cores` the outer one of the third.
    """

    def kernel(sizes: Any, x_ref: Any, _: Any, o_ref: Any) -> None:
        block = pl.BlockSpec((8, 128), lambda i, j: (i, j))
        pltpu.emit_pipeline(
            plus_one,
            grid=grid(sizes),
            in_specs=[block],
            out_specs=[block],
            core_axis=axis,
            dimension_semantics=semantics,
        )(x_ref, o_ref)

    def call(sizes: Any, x: Any, empty: Any) -> Any:
        return pl.pallas_call(
            kernel,
            out_shape=like(x),
            input_output_aliases={2: 0},
            compiler_params=pltpu.CompilerParams(dimension_semantics=outer),
            grid_spec=pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=1, grid=cores(sizes[2]), in_specs=[ANYWHERE, ANYWHERE], out_specs=ANYWHERE
            ),
        )(sizes, x, empty)

    return call


def batched_pipeline(x: Any) -> Any:
    """A pipeline for each row of a batch, whose number of steps is the row's, under `jax.vmap`."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        def run(n: Any, x_row: Any, o_row: Any) -> None:
            block = pl.BlockSpec((8, 128), lambda i, j: (i, j))

            def body(a: Any, o: Any) -> None:
                o[...] = a[...] + pl.program_id(1) * 10 + pl.num_programs(0)

            pltpu.emit_pipeline(body, grid=(n % 3, n), in_specs=[block], out_specs=[block])(x_row, o_row)

        jax.vmap(run)(jnp.arange(x.shape[0], dtype=jnp.int32), x_ref, o_ref)

    return pl.kernel(kernel, out_type=like(x), mesh=tensor_cores(1))(x)


REFUSED: dict[str, tuple[Function, str]] = {
    "two dynamic dimensions": (
        pipeline(lambda s: (s[0], s[1]), (PARALLEL, PARALLEL)),
        "Cannot partition over multiple dynamic parallel dimensions",
    ),
    "dynamic number of cores": (
        pipeline(lambda s: (s[0], s[1]), (PARALLEL, PARALLEL), lambda count: (count,)),
        "Cannot partition grid over dynamic number of cores",
    ),
    "no parallel dimension": (
        pipeline(lambda s: (s[0], s[1]), (ARBITRARY, ARBITRARY)),
        "Cannot partition over cores without parallel grid dimensions",
    ),
}
"""What JAX refuses to split, with its words."""
