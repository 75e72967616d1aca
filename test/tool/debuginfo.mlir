// --mlir-print-debuginfo prints the locations, which are the input file's or what it says itself.

// RUN: %mosaic-opt %s --mlir-print-debuginfo | FileCheck %s
// RUN: %mosaic-opt %s | FileCheck %s --check-prefix=WITHOUT
// RUN: %mosaic-opt %s --mlir-print-debuginfo --emit=bytecode | %mosaic-opt -mlir-print-debuginfo | FileCheck %s
// RUN: %mosaic-opt %s -p strip-debuginfo --mlir-print-debuginfo | FileCheck %s --check-prefix=STRIPPED

// CHECK-DAG: loc("{{.*}}debuginfo.mlir":[[@LINE+6]]:1)
// CHECK-DAG: loc("step.py":7:11)
// WITHOUT: return
// WITHOUT-NOT: loc(
// STRIPPED-NOT: debuginfo.mlir
// STRIPPED: loc(unknown)
func.func @main() {
  return loc("step.py":7:11)
}
