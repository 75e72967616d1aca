// 0: all is well, 1: an error was diagnosed in a program, 2: bad input or usage.

// RUN: %expect-exit 0 %mosaic-opt %s
// RUN: %expect-exit 1 %mosaic-opt %s --verify-diagnostics
// RUN: %expect-exit 2 %mosaic-opt %s.missing
// RUN: %expect-exit 2 %mosaic-opt %s --no-such-flag

// A native pass that refuses the program has diagnosed an error in it; its output is not written.
// RUN: %expect-exit 1 %mosaic-opt %S/Inputs/invalid-kernel.mlir -p 'mosaic-serde{serialize=false}' 2>&1 | FileCheck %s
// CHECK: invalid-kernel.mlir:1:1: error: {{.*}}
// CHECK-NEXT: note: in the native pass 'mosaic-serde{serialize=false}'
// CHECK-NOT: module

// expected-error {{never produced}}
module {}
