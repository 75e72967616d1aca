"""A dynamic parallel dimension: blocks of 8 rows copied, n of them, three columns of blocks each."""

# RUN: %python %s tpu > %t.mlir
# RUN: %mosaic-opt %t.mlir --split-input-file --unpacked | FileCheck %s --check-prefix=TPU
# RUN: %mosaic-opt %t.mlir --split-input-file --unpacked -p 'resolve-grid,partition-cores{cores=2}' \
# RUN:   | FileCheck %s --check-prefix=SHARED
# RUN: %python %s cpu | FileCheck %s --check-prefix=CPU

import jax
import jax.numpy as jnp
import numpy as np
from Inputs.cases import Case, main
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def copy(n, x, interpret):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + 1.0

    block = pl.BlockSpec((8, 128), lambda i, j: (i, j))
    return pl.pallas_call(
        kernel,
        grid=(n, 3),
        in_specs=[block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")),
        interpret=interpret,
        name="copy",
    )(x)


# Nothing is known of n.
# TPU-LABEL:    module @jit_any_number
# TPU:          stablehlo.custom_call @tpu_custom_call(%[[N:[a-z0-9]+]], %[[X:[a-z0-9]+]])
# TPU-SAME:       mosaic.kernel = @copy
# TPU:          module @copy attributes {stable_mosaic.version =
# TPU:            func.func @copy(
# TPU-SAME:         dimension_semantics = [#tpu.dimension_semantics<parallel>, #tpu.dimension_semantics<arbitrary>]
# TPU-SAME:         iteration_bounds = array<i64: -9223372036854775808, 3>
# SHARED-LABEL: module @jit_any_number
# SHARED:       "stablehlo.case"
# SHARED:         mosaic.kernel = @copy,
# SHARED:         mosaic.kernel = @copy_cores2_d0,
# SHARED:       module @copy_cores2_d0 attributes
# SHARED:         dimension_semantics = [#tpu.dimension_semantics<core_parallel>, #tpu.dimension_semantics<arbitrary>,
# SHARED-SAME:      #tpu.dimension_semantics<arbitrary>]
# SHARED-SAME:    iteration_bounds = array<i64: 2, -9223372036854775808, 3>
# SHARED:         scf.if
# CPU-LABEL:    TEST: any_number
# CPU:          module @jit_any_number
# CPU:          stablehlo.while
# CPU-NOT:      tpu_custom_call
# CPU:          any_number is right
def any_number(n, x, interpret=False):
    return copy(n, x, interpret)


# Between 2 and 16 by what the program does with it: there is always a step for each core.
# TPU-LABEL:    module @jit_enough
# TPU:          iteration_bounds = array<i64: -9223372036854775808, 3>
# SHARED-LABEL: module @jit_enough
# SHARED-NOT:   stablehlo.case
# SHARED:       iteration_bounds = array<i64: 2, -9223372036854775808, 3>
# SHARED-NOT:   module @
# CPU-LABEL:    TEST: enough
# CPU:          enough is right
def enough(n, x, interpret=False):
    return copy(jnp.clip(n, 2, 16), x, interpret)


# A constant that only looks dynamic: resolve-grid makes it static, and the compiler shares it by itself.
# TPU-LABEL:    module @jit_constant
# TPU:          iteration_bounds = array<i64: -9223372036854775808, 3>
# SHARED-LABEL: module @jit_constant
# SHARED:       dimension_semantics = [#tpu.dimension_semantics<parallel>, #tpu.dimension_semantics<arbitrary>]
# SHARED-SAME:  iteration_bounds = array<i64: 5, 3>
# CPU-LABEL:    TEST: constant
# CPU:          constant is right
def constant(x, interpret=False):
    return copy(jnp.max(jnp.array([3, 5], jnp.int32)), x, interpret)


X = np.arange(128 * 384, dtype=np.float32).reshape(128, 384)

main(
    [
        Case(any_number, (jnp.int32(5), X), X[:40] + 1),
        Case(enough, (jnp.int32(7), X), X[:56] + 1),
        Case(constant, (X,), X[:40] + 1),
    ]
)
