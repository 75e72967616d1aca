// --compile wants a whole program and targets that there are; that is said before any compiler is asked.

// RUN: %expect-exit 2 %mosaic-opt %s --compile=v5p 2>&1 | FileCheck %s
// CHECK: compile-errors.mlir: error: there is no launch to compile: libtpu takes whole programs
// CHECK-NEXT: note: dump the StableHLO around the kernel

// RUN: %expect-exit 2 %mosaic-opt %s --compile=v5p,v5q 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: error: unknown target 'v5q'; did you mean 'v5p'?

module @kernel attributes {stable_mosaic.version = 15 : i64} {
  func.func @kernel() attributes {tpu.core_type = #tpu.core_type<tc>} {
    return
  }
}
