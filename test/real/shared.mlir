// Kernels that ship with JAX, a parallel dimension of their grid made dynamic, are shared between the cores.
// RUN: %python %S/Inputs/lowered.py dynamic gmm > %t.gmm
// RUN: %mosaic-opt %t.gmm --unpacked | FileCheck %s --check-prefix=GMM
// RUN: %mosaic-opt %t.gmm --unpacked -p 'resolve-grid,partition-cores' --target=v5p | FileCheck %s --check-prefix=GMM-SHARED
// RUN: %python %S/Inputs/lowered.py dynamic flash_attention > %t.flash
// RUN: %mosaic-opt %t.flash --unpacked | FileCheck %s --check-prefix=FLASH
// RUN: %mosaic-opt %t.flash --unpacked -p 'resolve-grid,partition-cores' --target=v5p | FileCheck %s --check-prefix=FLASH-SHARED

// The bound of the parallel dimension is clipped to at least 2, so nothing has to be chosen; the arbitrary dimension keeps
// its own, and the table is one more behind four prefetch operands.
// GMM:        module @kernel attributes
// GMM:          dimension_semantics = [#tpu.dimension_semantics<parallel>, #tpu.dimension_semantics<arbitrary>, #tpu.dimension_semantics<arbitrary>]
// GMM-SAME:     iteration_bounds = array<i64: -9223372036854775808, -9223372036854775808, 2>
// GMM-SAME:     scalar_prefetch = 4 : i64
// GMM-SHARED-NOT:  mosaic.kernel = @kernel,
// GMM-SHARED:      module @kernel_cores2_d0 attributes
// GMM-SHARED:        dimension_semantics = [#tpu.dimension_semantics<core_parallel>, #tpu.dimension_semantics<arbitrary>, #tpu.dimension_semantics<arbitrary>, #tpu.dimension_semantics<arbitrary>]
// GMM-SHARED-SAME:   iteration_bounds = array<i64: 2, -9223372036854775808, -9223372036854775808, 2>, scalar_prefetch = 5 : i64
// GMM-SHARED-NOT:  module @kernel attributes

// Nothing is known of the number of heads, so the original is kept for fewer than two of them. The inner static steps, of 1
// and 4, are counted along.
// FLASH:        dimension_semantics = [#tpu.dimension_semantics<parallel>, #tpu.dimension_semantics<parallel>, #tpu.dimension_semantics<parallel>, #tpu.dimension_semantics<arbitrary>]
// FLASH-SAME:   iteration_bounds = array<i64: 1, -9223372036854775808, 1, 4>
// FLASH-SHARED:   "stablehlo.case"
// FLASH-SHARED:     @tpu_custom_call
// FLASH-SHARED:     @tpu_custom_call
// FLASH-SHARED:   iteration_bounds = array<i64: 1, -9223372036854775808, 1, 4>
// FLASH-SHARED:   dimension_semantics = [#tpu.dimension_semantics<core_parallel>,
// FLASH-SHARED-SAME: iteration_bounds = array<i64: 2, 1, -9223372036854775808>
