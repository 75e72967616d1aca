"""A core_parallel dimension of more steps than there are cores, which the compiler refuses."""

# RUN: %python %s tpu > %t.mlir
# RUN: %mosaic-opt %t.mlir --split-input-file --unpacked | FileCheck %s --check-prefix=TPU
# RUN: %mosaic-opt %t.mlir --split-input-file --unpacked -p partition-cores --target=v5p \
# RUN:   | FileCheck %s --check-prefix=SHARED
# RUN: %python %s cpu | FileCheck %s --check-prefix=CPU

import jax
import numpy as np
from Inputs.cases import Case, main
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def square(x, interpret):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * x_ref[...]

    block = pl.BlockSpec((8, 128), lambda i, j: (i, j))
    return pl.pallas_call(
        kernel,
        grid=(x.shape[0] // 8, 3),
        in_specs=[block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=(pltpu.CORE_PARALLEL, pltpu.ARBITRARY)),
        interpret=interpret,
        name="square",
    )(x)


# 7 steps: 4 and 3, and the second core's fourth is skipped.
# TPU-LABEL:    module @jit_seven
# TPU:          dimension_semantics = [#tpu.dimension_semantics<core_parallel>, #tpu.dimension_semantics<arbitrary>]
# TPU-SAME:     iteration_bounds = array<i64: 7, 3>
# SHARED-LABEL: module @jit_seven
# SHARED-NOT:   stablehlo.case
# SHARED:         dimension_semantics = [#tpu.dimension_semantics<core_parallel>, #tpu.dimension_semantics<arbitrary>,
# SHARED-SAME:      #tpu.dimension_semantics<arbitrary>]
# SHARED-SAME:  iteration_bounds = array<i64: 2, 4, 3>
# SHARED:       scf.if
# CPU-LABEL:    TEST: seven
# CPU:          module @jit_seven
# CPU:          stablehlo.while
# CPU-NOT:      tpu_custom_call
# CPU:          seven is right
def seven(x, interpret=False):
    return square(x, interpret)


# 2 steps on 2 cores are what the compiler takes: nothing to do.
# TPU-LABEL:    module @jit_two
# TPU:          iteration_bounds = array<i64: 2, 3>
# SHARED-LABEL: module @jit_two
# SHARED:       dimension_semantics = [#tpu.dimension_semantics<core_parallel>, #tpu.dimension_semantics<arbitrary>]
# SHARED-SAME:  iteration_bounds = array<i64: 2, 3>
# CPU-LABEL:    TEST: two
# CPU:          two is right
def two(x, interpret=False):
    return square(x, interpret)


X = np.arange(56 * 384, dtype=np.float32).reshape(56, 384) / 100

main([Case(seven, (X,), X * X), Case(two, (X[:16],), X[:16] * X[:16])])
