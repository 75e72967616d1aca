"""Blocks of rows gathered by a list of indices that the kernel gets ahead of its grid."""

# RUN: %python %s tpu > %t.mlir
# RUN: %mosaic-opt %t.mlir --split-input-file --unpacked | FileCheck %s --check-prefix=TPU
# RUN: %mosaic-opt %t.mlir --split-input-file --unpacked -p 'partition-cores{cores=2}' \
# RUN:   | FileCheck %s --check-prefix=SHARED
# RUN: %python %s cpu | FileCheck %s --check-prefix=CPU

import jax
import jax.numpy as jnp
import numpy as np
from Inputs.cases import Case, main
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


# The list comes between the bound and the input; the table of the shares comes behind the list, and a core beyond its
# share asks for the list's last index of the share, not for what lies behind it.
# TPU-LABEL:    module @jit_gather
# TPU:          @main(%[[N:[a-z0-9]+]]: tensor<i32>, %[[INDICES:[a-z0-9]+]]: tensor<16xi32>,
# TPU-SAME:       %[[X:[a-z0-9]+]]: tensor<256x128xf32>)
# TPU:            stablehlo.custom_call @tpu_custom_call(%[[N]], %[[INDICES]], %[[X]])
# TPU:          func.func @gather(
# TPU-SAME:       iteration_bounds = array<i64: -9223372036854775808>, scalar_prefetch = 1 : i64
# SHARED-LABEL: module @jit_gather
# SHARED:       @main(%[[N:[a-z0-9]+]]: tensor<i32>, %[[INDICES:[a-z0-9]+]]: tensor<16xi32>,
# SHARED-SAME:    %[[X:[a-z0-9]+]]: tensor<256x128xf32>)
# SHARED:         stablehlo.custom_call @tpu_custom_call(%[[N]], %[[INDICES]], %[[X]])
# SHARED:         stablehlo.custom_call @tpu_custom_call(%{{[a-z0-9]+}}, %[[INDICES]], %{{[a-z0-9]+}}, %[[X]])
# SHARED-SAME:      : (tensor<i32>, tensor<16xi32>, tensor<1xi32>, tensor<256x128xf32>)
# SHARED:       module @gather_cores2_d0
# SHARED:         iteration_bounds = array<i64: 2, -9223372036854775808>, scalar_prefetch = 2 : i64
# SHARED:         func.func @transform_0(%{{[a-z0-9]+}}: i32, %{{[a-z0-9]+}}: i32,
# SHARED-SAME:      %[[LIST:[a-z0-9]+]]: memref<16xi32, #tpu.memory_space<smem>>,
# SHARED-SAME:      %{{[a-z0-9]+}}: memref<1xi32, #tpu.memory_space<smem>>)
# SHARED:           %[[I:.*]] = arith.minsi
# SHARED:           %[[AT:.*]] = arith.index_cast %[[I]] : i32 to index
# SHARED:           memref.load %[[LIST]][%[[AT]]]
# CPU-LABEL:    TEST: gather
# CPU:          module @jit_gather
# CPU:          stablehlo.while
# CPU-NOT:      tpu_custom_call
# CPU:          gather is right
def gather(n, indices, x, interpret=False):
    def kernel(indices_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...] * indices_ref[pl.program_id(0)].astype(jnp.float32)

    return pl.pallas_call(
        kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(n,),
            in_specs=[pl.BlockSpec((8, 128), lambda i, indices: (indices[i], 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, indices: (i, 0)),
        ),
        out_shape=jax.ShapeDtypeStruct((128, 128), x.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        interpret=interpret,
        name="gather",
    )(indices, x)


X = np.arange(256 * 128, dtype=np.float32).reshape(256, 128)
INDICES = np.arange(16, dtype=np.int32)[::-1] * 2
EXPECTED = np.concatenate([X[8 * i : 8 * i + 8] * i for i in INDICES[:9]])

main([Case(gather, (jnp.int32(9), jnp.asarray(INDICES), X), EXPECTED)])
