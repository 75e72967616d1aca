"""What nobody refuses and goes wrong or slow in silence: the flag says so while JAX lowers, on both platforms alike."""

# RUN: env JAX_MOSAIC_GRID=check "JAX_MOSAIC_GRID_CONTRACTS=0 <= lengths[*] <= 1024" %python %s told tpu | FileCheck %s
# RUN: env JAX_MOSAIC_GRID=check JAX_MOSAIC_GRID_CPU=v5p "JAX_MOSAIC_GRID_CONTRACTS=0 <= lengths[*] <= 1024" \
# RUN:   %python %s told cpu | FileCheck %s
# RUN: env JAX_MOSAIC_GRID=on %python %s tpu > %t.mlir
# RUN: %mosaic-opt %t.mlir --split-input-file --unpacked | FileCheck %s --check-prefix=TPU
# RUN: env JAX_MOSAIC_GRID=on JAX_MOSAIC_GRID_CPU=v5p %python %s cpu | FileCheck %s --check-prefix=CPU

import jax
import jax.numpy as jnp
import numpy as np
from Inputs.situations import Situation, main
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def call(grid, index_map, x, *, kernel=copy, block=(128, 128), out=None, out_map=None, semantics=None, **more):
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(out or x.shape, x.dtype),
        grid=grid,
        in_specs=[pl.BlockSpec(block, index_map)],
        out_specs=pl.BlockSpec(block, out_map or index_map),
        compiler_params=pltpu.CompilerParams(dimension_semantics=semantics),
        **more,
    )(x)


# CHECK:     dynamic_parallel: {{.*}}idle-cores
# TPU-LABEL: module @jit_dynamic_parallel
# TPU:         stablehlo.case
# CPU:       dynamic_parallel is right
def dynamic_parallel(n, x):
    return call((n, 8), lambda i, j: (i, j), x, semantics=("parallel", "arbitrary"))


# CHECK:     too_many_cores: {{.*}}core-parallel-exceeds-cores
# TPU-LABEL: module @jit_too_many_cores
# TPU:         iteration_bounds = array<i64: 2,
# CPU:       too_many_cores is right
def too_many_cores(x):
    return call((8, 8), lambda i, j: (i, j), x, semantics=("core_parallel", "arbitrary"))


# CHECK:     vmap_becomes_a_loop: {{.*}}vmap-became-loop
# TPU-LABEL: module @jit_vmap_becomes_a_loop
# TPU:         stablehlo.custom_call @tpu_custom_call{{.*}}, tensor<2x1024x1024xf32>) -> tensor<2x1024x1024xf32>
# CPU:       vmap_becomes_a_loop is right
def vmap_becomes_a_loop(n, x):
    return jax.vmap(lambda n, x: call((n,), lambda i: (i, 0), x))(n, x)


# CHECK:     race: {{.*}}parallel-race
# TPU-LABEL: module @jit_race
# TPU:         iteration_bounds = array<i64: 8, 8>
# CPU:       race runs
def race(x):
    return call((8, 8), lambda b, i: (b, i), x, out=(128, 128), out_map=lambda b, i: (0, 0),
                semantics=("parallel", "arbitrary"))  # fmt: skip


# CHECK:     elements_for_blocks: {{.*}}index-map-in-elements
# TPU-LABEL: module @jit_elements_for_blocks
# CPU:       elements_for_blocks runs
def elements_for_blocks(x):
    return call((8,), lambda i: (i * 128, 0), x)


# CHECK:     revisited: {{.*}}nonconsecutive-revisit
# TPU-LABEL: module @jit_revisited
# CPU:       revisited runs
def revisited(x):
    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...]

    return call((8, 8), lambda k, j: (k, j), x, kernel=kernel, out=(128, 1024), out_map=lambda k, j: (0, j))


# CHECK:     not_a_prefix: {{.*}}parallel-not-prefix
# TPU-LABEL: module @jit_not_a_prefix
# CPU:       not_a_prefix is right
def not_a_prefix(x):
    return call((8, 8), lambda i, j: (i, j), x, semantics=("arbitrary", "parallel"))


# CHECK:     no_steps: {{.*}}zero-trip-grid
# TPU-LABEL: module @jit_no_steps
# CPU:       no_steps is right
def no_steps(x):
    return call((x.shape[0] // 2048,), lambda i: (i, 0), x)


# CHECK:     too_large: {{.*}}vmem-overflow
# TPU-LABEL: module @jit_too_large
# CPU:       too_large is right
def too_large(x):
    return call((1,), lambda i: (0, 0), x, block=(8192, 2048))


# CHECK:     stale_bound: {{.*}}stale-bound-constant
# TPU-LABEL: module @jit_stale_bound
# CPU:       stale_bound is right
def stale_bound(n, x):
    def kernel(x_ref, o_ref, sum_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            sum_ref[...] = jnp.zeros_like(sum_ref)

        sum_ref[...] += x_ref[...]

        @pl.when(pl.program_id(0) == 7)
        def _():
            o_ref[...] = sum_ref[...]

    return call((n,), lambda i: (i, 0), x, kernel=kernel, out=(128, 128), out_map=lambda i: (0, 0),
                scratch_shapes=[pltpu.VMEM((128, 128), jnp.float32)])  # fmt: skip


# CHECK:     beyond_the_array: {{.*}}window-out-of-bounds
# TPU-LABEL: module @jit_beyond_the_array
# CPU:       beyond_the_array is right
def beyond_the_array(n, x):
    return call((n,), lambda i: (i, 0), x)


# CHECK:     not_covered: {{.*}}output-not-covered
# TPU-LABEL: module @jit_not_covered
# CPU:       not_covered is right
def not_covered(x):
    return call((4,), lambda i: (2 * i, 0), x, block=(128, 1024))


# CHECK:     table_too_large: {{.*}}smem-overflow
# TPU-LABEL: module @jit_table_too_large
# CPU:       table_too_large is right
def table_too_large(table, x):
    rows = pl.BlockSpec((128, 1024), lambda i, t: (i, 0))
    spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(8,), in_specs=[rows], out_specs=rows)
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(lambda t, x_ref, o_ref: copy(x_ref, o_ref), out_shape=shape, grid_spec=spec)(table, x)


# The last whole block of a sequence that may be shorter than one, as the contract says.
# CHECK:     negative_entry: {{.*}}window-out-of-bounds
# TPU-LABEL: module @jit_negative_entry
# CPU:       negative_entry is right
def negative_entry(lengths, x):
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(8,),
        in_specs=[pl.BlockSpec((128, 1024), lambda i, lengths: (jax.lax.div(lengths[i], 128) - 1, 0))],
        out_specs=pl.BlockSpec((128, 1024), lambda i, lengths: (i, 0)),
    )
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(lambda t, x_ref, o_ref: copy(x_ref, o_ref), out_shape=shape, grid_spec=spec)(lengths, x)


# CHECK:     unaligned_rows: {{.*}}unproven-alignment
# TPU-LABEL: module @jit_unaligned_rows
# CPU:       unaligned_rows is right
def unaligned_rows(start, x):
    def kernel(start_ref, x_ref, o_ref):
        o_ref[...] = x_ref[pl.ds(start_ref[0], 8), :]

    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((8, 1024), x.dtype),
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.VMEM)],
    )(start, x)


X = np.arange(1024 * 1024, dtype=np.float32).reshape(1024, 1024)
BIG = np.ones((8192, 2048), np.float32)
ROWS = np.arange(1024)[:, None]
LENGTHS = np.arange(8, 0, -1, dtype=np.int32) * 128 + 5
BATCH = np.stack([X, X + 1])

main(
    [
        Situation(dynamic_parallel, (jnp.int32(3), X), np.where(ROWS < 384, X, np.nan)),
        Situation(too_many_cores, (X,), X),
        Situation(vmap_becomes_a_loop, (jnp.array([1, 3], jnp.int32), BATCH),
                  np.where((np.array([128, 384])[:, None, None] > ROWS) & (np.arange(1024) < 128), BATCH, np.nan)),
        Situation(race, (X,)),
        Situation(elements_for_blocks, (X,)),
        Situation(revisited, (X,)),
        Situation(not_a_prefix, (X,), X),
        Situation(no_steps, (X,), np.full_like(X, np.nan)),
        Situation(too_large, (BIG,), BIG),
        Situation(stale_bound, (jnp.int32(8), X), X[:, :128].reshape(8, 128, 128).sum(0)),
        Situation(beyond_the_array, (jnp.int32(3), X), np.where((ROWS < 384) & (np.arange(1024) < 128), X, np.nan)),
        Situation(not_covered, (X,), np.where(ROWS // 128 % 2 == 0, X, np.nan)),
        Situation(table_too_large, (np.zeros((2048, 1024), np.int32), X), X),
        Situation(negative_entry, (LENGTHS, X), X.reshape(8, 128, 1024)[::-1].reshape(X.shape)),
        Situation(unaligned_rows, (np.array([3], np.int32), X), X[3:11]),
    ]
)  # fmt: skip
