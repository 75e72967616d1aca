// --mlir-print-debuginfo prints the locations, which are the input file's or what it says itself. A file of -o keeps the
// latter anyway.

// RUN: %mosaic-opt %s --mlir-print-debuginfo | FileCheck %s
// RUN: %mosaic-opt %s | FileCheck %s --check-prefix=WITHOUT
// RUN: %mosaic-opt %s --mlir-print-debuginfo --emit=bytecode | %mosaic-opt -mlir-print-debuginfo | FileCheck %s
// RUN: %mosaic-opt %s -p strip-debuginfo --mlir-print-debuginfo | FileCheck %s --check-prefix=STRIPPED

// RUN: %mosaic-opt %s -o %t.mlir && FileCheck %s --check-prefix=KEPT --input-file %t.mlir
// RUN: %mosaic-opt %t.mlir -o %t.again.mlir && diff %t.mlir %t.again.mlir
// RUN: %mosaic-opt %s --emit-bytecode -o %t.mlirbc && %mosaic-opt %t.mlirbc -o %t.2.mlir && FileCheck %s --input-file %t.2.mlir
// RUN: %mosaic-opt %t.mlir -o %t.without.mlir -p strip-debuginfo && FileCheck %s --check-prefix=WITHOUT --input-file %t.without.mlir

// KEPT-NOT: debuginfo.mlir
// KEPT: loc("step.py":7:11)
// KEPT-NOT: debuginfo.mlir

// CHECK-DAG: loc("{{.*}}debuginfo.mlir":[[@LINE+6]]:1)
// CHECK-DAG: loc("step.py":7:11)
// WITHOUT: return
// WITHOUT-NOT: loc(
// STRIPPED-NOT: debuginfo.mlir
// STRIPPED: loc(unknown)
func.func @main() {
  return loc("step.py":7:11)
}
