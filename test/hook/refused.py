"""What JAX refuses while it traces or lowers: with the flag each is a kernel for both cores, and right."""

# RUN: env JAX_MOSAIC_GRID=on %python %s tpu > %t.mlir
# RUN: %mosaic-opt %t.mlir --split-input-file --unpacked | FileCheck %s --check-prefix=TPU
# RUN: env JAX_MOSAIC_GRID=on JAX_MOSAIC_GRID_CPU=v5p %python %s cpu | FileCheck %s --check-prefix=CPU

import jax
import jax.numpy as jnp
import numpy as np
from Inputs.situations import Situation, main
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

X = np.arange(40 * 384, dtype=np.float32).reshape(40, 384)


def blocks(n, m):
    """The result where n by m blocks are written."""
    result = np.full_like(X, np.nan)
    result[: n * 8, : m * 128] = X[: n * 8, : m * 128] + 1
    return result


def plus_one(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 1


def pipeline(grid, semantics, sizes, x, cores=(2,)):
    def kernel(s_ref, x_ref, o_ref):
        block = pl.BlockSpec((8, 128), lambda i, j: (i, j))
        pltpu.emit_pipeline(
            plus_one,
            grid=grid(s_ref),
            in_specs=[block],
            out_specs=[block],
            core_axis=0,
            dimension_semantics=semantics,
        )(x_ref, o_ref)

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=cores, in_specs=[anywhere], out_specs=anywhere
        ),
        name="pipeline",
    )(sizes, x)


PARALLEL, ARBITRARY = pltpu.PARALLEL, pltpu.ARBITRARY


# TPU-LABEL: module @jit_two_dynamic_dimensions
# TPU:         iteration_bounds = array<i64: 2>
# TPU:         scf.for
# CPU:       two_dynamic_dimensions is right
def two_dynamic_dimensions(sizes, x):
    return pipeline(lambda s: (s[0], s[1]), (PARALLEL, PARALLEL), sizes, x)


# A dimension of one step is not the one to share.
# TPU-LABEL: module @jit_unit_dimension
# TPU:         iteration_bounds = array<i64: 2>
# CPU:       unit_dimension is right
def unit_dimension(sizes, x):
    return pipeline(lambda s: (s[0], 1), (PARALLEL, PARALLEL), sizes, x)


# The number of cores is a grid of its own, which is shared between those there are.
# TPU-LABEL: module @jit_dynamic_number_of_cores
# TPU:         stablehlo.case
# TPU:         iteration_bounds = array<i64: 2, -9223372036854775808>
# CPU:       dynamic_number_of_cores is right
def dynamic_number_of_cores(sizes, x):
    return pipeline(lambda s: (5, 3), (PARALLEL, ARBITRARY), sizes, x, cores=(sizes[0],))


# One core has all steps, and the other none.
# TPU-LABEL: module @jit_no_parallel_dimension
# TPU:         iteration_bounds = array<i64: 2>
# CPU:       no_parallel_dimension is right
def no_parallel_dimension(sizes, x):
    return pipeline(lambda s: (5, 3), (ARBITRARY, ARBITRARY), sizes, x)


# TPU-LABEL: module @jit_dynamic_core_parallel
# TPU:         stablehlo.case
# TPU:         dimension_semantics = [#tpu.dimension_semantics<core_parallel>
# TPU-SAME:    iteration_bounds = array<i64: 2, -9223372036854775808, 3>
# CPU:       dynamic_core_parallel is right
def dynamic_core_parallel(n, x):
    block = pl.BlockSpec((8, 128), lambda i, j: (i, j))
    return pl.pallas_call(
        plus_one,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(n, 3),
        in_specs=[block],
        out_specs=block,
        compiler_params=pltpu.CompilerParams(dimension_semantics=("core_parallel", "arbitrary")),
        name="copy",
    )(x)


SIZES = jnp.array([3, 2], jnp.int32)

main(
    [
        Situation(two_dynamic_dimensions, (SIZES, X), blocks(3, 2)),
        Situation(unit_dimension, (SIZES, X), blocks(3, 1)),
        Situation(dynamic_number_of_cores, (SIZES, X), blocks(5, 3)),
        Situation(no_parallel_dimension, (SIZES, X), blocks(5, 3)),
        Situation(dynamic_core_parallel, (jnp.int32(3), X), blocks(3, 3)),
    ]
)
