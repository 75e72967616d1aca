// --verify-diagnostics ends with 1 where something is said that isn't expected, or the other way round.

// RUN: %expect-exit 1 %mosaic-opt --verify-diagnostics %s 2>&1 | FileCheck %s

// CHECK: verify-diagnostics-differ.mlir:[[@LINE+3]]:10: error: unexpected error: use of undeclared SSA value
// CHECK-NEXT: verify-diagnostics-differ.mlir:[[@LINE+4]]:6: error: expected error "bound" was not produced
func.func @f() -> i32 {
  return %nothing : i32
} // The next line is wrong on purpose.
  // expected-error@above {{bound}}
