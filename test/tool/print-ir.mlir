// --mlir-print-ir-*: the program before and after passes, on standard error.

// RUN: %mosaic-opt %s -p cse,canonicalize --mlir-print-ir-before=canonicalize 2>&1 >/dev/null | FileCheck %s --check-prefix=BEFORE
// RUN: %mosaic-opt %s -p cse,canonicalize --mlir-print-ir-after=cse 2>&1 >/dev/null | FileCheck %s --check-prefix=AFTER
// RUN: %mosaic-opt %s -p cse,canonicalize -mlir-print-ir-before-all 2>&1 >/dev/null | FileCheck %s --check-prefix=ALL-BEFORE
// RUN: %mosaic-opt %s -p cse,cse --mlir-print-ir-after-change 2>&1 >/dev/null | FileCheck %s --check-prefix=CHANGE

// Without a pass it is every pass, and the file after it is an input:
// RUN: %mosaic-opt -p cse,canonicalize --mlir-print-ir-after %s 2>&1 >/dev/null | FileCheck %s --check-prefix=ALL-AFTER
// RUN: %mosaic-opt -p cse,canonicalize --mlir-print-ir-after-all %s 2>&1 >/dev/null | FileCheck %s --check-prefix=ALL-AFTER

// BEFORE: {{^}}// -----// IR Dump Before canonicalize //----- //
// BEFORE-NEXT: module {
// BEFORE-NOT: IR Dump

// AFTER: IR Dump After cse //
// AFTER: arith.addi
// AFTER-NOT: arith.addi
// AFTER-NOT: IR Dump

// ALL-BEFORE: IR Dump Before cse //
// ALL-BEFORE: IR Dump Before canonicalize //

// ALL-AFTER: IR Dump After cse //
// ALL-AFTER: IR Dump After canonicalize //

// The second pass changes nothing.
// CHANGE: IR Dump After cse //
// CHANGE-NOT: IR Dump

func.func @main(%a: i32) -> (i32, i32) {
  %0 = arith.addi %a, %a : i32
  %1 = arith.addi %a, %a : i32
  return %0, %1 : i32, i32
}
