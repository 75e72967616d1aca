"""Two dynamic parallel dimensions: the launch picks the one whose largest share is least, when n and m are known."""

# RUN: %python %s tpu > %t.mlir
# RUN: %mosaic-opt %t.mlir --split-input-file --unpacked | FileCheck %s --check-prefix=TPU
# RUN: %mosaic-opt %t.mlir --split-input-file --unpacked -p 'partition-cores{cores=2}' \
# RUN:   | FileCheck %s --check-prefix=SHARED
# RUN: %mosaic-opt %t.mlir --split-input-file --unpacked -p 'partition-cores{cores=2 strategy=linearize}' \
# RUN:   | FileCheck %s --check-prefix=JOINT
# RUN: %python %s cpu | FileCheck %s --check-prefix=CPU

import jax
import jax.numpy as jnp
import numpy as np
from Inputs.cases import Case, main
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


# TPU-LABEL:    module @jit_negate
# TPU:            stablehlo.custom_call @tpu_custom_call(%[[N:[a-z0-9]+]], %[[M:[a-z0-9]+]], %[[X:[a-z0-9]+]])
# TPU:            iteration_bounds = array<i64: -9223372036854775808, -9223372036854775808>
# SHARED-LABEL: module @jit_negate
# SHARED:       "stablehlo.case"
# SHARED:         mosaic.kernel = @negate,
# SHARED:         mosaic.kernel = @negate_cores2_d0,
# SHARED:         mosaic.kernel = @negate_cores2_d1,
# SHARED:         stablehlo.return
# SHARED-NEXT:  }) :
# SHARED-DAG:   module @negate_cores2_d0
# SHARED-DAG:   module @negate_cores2_d1
# SHARED-DAG:     iteration_bounds = array<i64: 2, -9223372036854775808, -9223372036854775808>
# SHARED-NOT:     arith.divsi
# JOINT-LABEL:  module @jit_negate
# JOINT:        module @negate_cores2_d0_d1
# JOINT:          iteration_bounds = array<i64: 2, -9223372036854775808>, scalar_prefetch = 1 : i64
# JOINT:          arith.divsi
# CPU-LABEL:    TEST: negate
# CPU:          module @jit_negate
# CPU:          stablehlo.while
# CPU-NOT:      tpu_custom_call
# CPU:          negate is right
def negate(n, m, x, interpret=False):
    def kernel(x_ref, o_ref):
        o_ref[...] = -x_ref[...]

    block = pl.BlockSpec((8, 128), lambda i, j: (i, j))
    return pl.pallas_call(
        kernel,
        grid=(n, m),
        in_specs=[block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel")),
        interpret=interpret,
        name="negate",
    )(x)


X = np.arange(64 * 384, dtype=np.float32).reshape(64, 384)

main([Case(negate, (jnp.int32(5), jnp.int32(3), X), -X[:40])])
