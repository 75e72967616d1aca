// --run-reproducer runs the passes that the file records, with its flags.

// RUN: %mosaic-opt %s --run-reproducer | FileCheck %s
// RUN: %mosaic-opt %s | FileCheck %s --check-prefix=PLAIN

// RUN: %expect-exit 2 %mosaic-opt --run-reproducer %S/Inputs/double.mlir 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: {{.*}}double.mlir is not a reproducer: it does not end with an 'mlir_reproducer' record
// RUN: %expect-exit 2 %mosaic-opt --run-reproducer 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: error: --run-reproducer takes one file
// RUN: %expect-exit 2 %mosaic-opt --run-reproducer %s -p cse 2>&1 | FileCheck %s --check-prefix=PASSES
// PASSES: error: --run-reproducer runs the passes that the file records

// CHECK: arith.addi
// CHECK-NOT: arith.addi
// PLAIN-COUNT-2: arith.addi
func.func @main(%a: i32) -> (i32, i32) {
  %0 = arith.addi %a, %a : i32
  %1 = arith.addi %a, %a : i32
  return %0, %1 : i32, i32
}

{-#
  external_resources: {
    mlir_reproducer: {
      pipeline: "builtin.module(cse)",
      disable_threading: false,
      verify_each: true
    },
    mosaic_opt: {
      flags: "--target=v5p"
    }
  }
#-}
