// --target says how many cores there are to share a grid between.

// RUN: %mosaic-opt %S/Inputs/double.mlir -p partition-cores --target=v5p | FileCheck %s --check-prefix=TWO
// RUN: %mosaic-opt %S/Inputs/double.mlir -p partition-cores --target=v5e | FileCheck %s --check-prefix=ONE
// RUN: %mosaic-opt %S/Inputs/double.mlir -p partition-cores -target v5p:1 | FileCheck %s --check-prefix=ONE

// TWO: #tpu.dimension_semantics<core_parallel>
// ONE-NOT: core_parallel
// ONE: iteration_bounds = array<i64: -9223372036854775808, 2>
// ONE-NOT: core_parallel
