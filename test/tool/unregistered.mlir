// Ops of dialects nobody knows are refused, as in mlir-opt, unless they are asked for.

// RUN: %expect-exit 2 %mosaic-opt %s 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: %mosaic-opt %s --allow-unregistered-dialect | FileCheck %s

// REFUSED: unregistered.mlir:[[@LINE+3]]:3: error: 'tast.op' is of an unregistered dialect; if that is intended, pass --allow-unregistered-dialect
// CHECK: "tast.op"() : () -> ()
func.func @main() {
  "tast.op"() : () -> ()
  return
}
