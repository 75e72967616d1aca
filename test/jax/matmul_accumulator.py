"""A matmul that sums in scratch over its innermost dimension, with a dynamic number of tiles of rows."""

# RUN: %python %s tpu > %t.mlir
# RUN: %mosaic-opt %t.mlir --split-input-file --unpacked | FileCheck %s --check-prefix=TPU
# RUN: %mosaic-opt %t.mlir --split-input-file --unpacked -p 'partition-cores{cores=2}' \
# RUN:   | FileCheck %s --check-prefix=SHARED
# RUN: %mosaic-opt %t.mlir --split-input-file -p 'partition-cores{cores=2}' -o %t.out 2>&1 \
# RUN:   | FileCheck %s --check-prefix=REMARK
# RUN: %python %s cpu | FileCheck %s --check-prefix=CPU

import jax
import jax.numpy as jnp
import numpy as np
from Inputs.cases import Case, main
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


# The sum is set to zero and stored in the steps of the innermost dimension, which isn't shared. Its 2 steps, and the 2
# of the columns, are counted along with the rows: a shift and a mask tell the first and the last.
# TPU-LABEL:    module @jit_matmul
# TPU:          func.func @matmul(
# TPU-SAME:       dimension_semantics = [#tpu.dimension_semantics<parallel>, #tpu.dimension_semantics<arbitrary>,
# TPU-SAME:         #tpu.dimension_semantics<arbitrary>]
# TPU-SAME:       iteration_bounds = array<i64: -9223372036854775808, 2, 2>
# TPU-SAME:       scratch_operands = 1 : i64
# SHARED-LABEL: module @jit_matmul
# SHARED:       "stablehlo.case"
# SHARED:         mosaic.kernel = @matmul,
# SHARED:         mosaic.kernel = @matmul_cores2_d0,
# SHARED:       module @matmul_cores2_d0
# SHARED:         iteration_bounds = array<i64: 2, -9223372036854775808>, scalar_prefetch = 1 : i64
# SHARED-SAME:      scratch_operands = 1 : i64
# SHARED:         %[[K:.*]] = arith.andi
# SHARED:         scf.if
# SHARED:           arith.cmpi eq, %[[K]],
# SHARED:           scf.if
# SHARED:           tpu.matmul
# SHARED:           arith.cmpi eq, %[[K]],
# SHARED:           scf.if
# CPU-LABEL:    TEST: matmul
# CPU:          module @jit_matmul
# CPU:          stablehlo.while
# CPU:          stablehlo.dot_general
# CPU-NOT:      tpu_custom_call
# CPU:          matmul is right
def matmul(tiles, x, y, interpret=False):
    def kernel(x_ref, y_ref, o_ref, sum_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            sum_ref[...] = jnp.zeros_like(sum_ref)

        sum_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _():
            o_ref[...] = sum_ref[...]

    return pl.pallas_call(
        kernel,
        grid=(tiles, 2, 2),
        in_specs=[
            pl.BlockSpec((128, 128), lambda i, j, k: (i, k)),
            pl.BlockSpec((128, 128), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((x.shape[0], y.shape[1]), jnp.float32),
        scratch_shapes=[pltpu.VMEM((128, 128), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary", "arbitrary")),
        interpret=interpret,
        name="matmul",
    )(x, y)


# Shared over its innermost dimension the same sum would be torn apart: it is refused, although the dimension is called
# parallel, and the program is left as it was. The remark stands at the line of the kernel that reads the sum.
# REMARK-NOT:   remark:
# REMARK:       matmul_accumulator.py:{{[0-9]+}}:{{[0-9]+}}: remark: the kernel 'matmul' can't be shared
# REMARK-SAME:  between cores along dimension 1:
# REMARK-SAME:  [not-partitioned]
# REMARK:       note: the kernel is left as it was
# REMARK-NOT:   remark:
# TPU-LABEL:    module @jit_torn
# TPU:          iteration_bounds = array<i64: 1, -9223372036854775808>
# SHARED-LABEL: module @jit_torn
# SHARED-NOT:   stablehlo.case
# SHARED:       iteration_bounds = array<i64: 1, -9223372036854775808>
# SHARED-NOT:   core_parallel
# CPU-LABEL:    TEST: torn
# CPU:          torn is right
def torn(depth, x, y, interpret=False):
    def kernel(x_ref, y_ref, o_ref, sum_ref):
        @pl.when(pl.program_id(1) == 0)
        def _():
            sum_ref[...] = jnp.zeros_like(sum_ref)

        sum_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)
        o_ref[...] = sum_ref[...]

    return pl.pallas_call(
        kernel,
        grid=(1, depth),
        in_specs=[
            pl.BlockSpec((128, 128), lambda i, k: (i, k)),
            pl.BlockSpec((128, 128), lambda i, k: (k, 0)),
        ],
        out_specs=pl.BlockSpec((128, 128), lambda i, k: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((128, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((128, 128), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary", "parallel")),
        interpret=interpret,
        name="matmul",
    )(x, y)


RANDOM = np.random.default_rng(0)
X = RANDOM.integers(-4, 4, (512, 256)).astype(np.float32)
Y = RANDOM.integers(-4, 4, (256, 256)).astype(np.float32)

main(
    [
        Case(matmul, (jnp.int32(3), X, Y), (X @ Y)[:384]),
        Case(torn, (jnp.int32(2), X[:128], Y[:, :128]), X[:128] @ Y[:, :128]),
    ]
)
