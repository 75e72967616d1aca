// --summary says in plain words what the launches are; with -o the program is written as well.

// RUN: %mosaic-opt %S/Inputs/double.mlir --summary --target=v5p | FileCheck %s --check-prefixes=CHECK,V5P
// RUN: %mosaic-opt %S/Inputs/double.mlir --summary | FileCheck %s --check-prefixes=CHECK,V5P
// RUN: %mosaic-opt %S/Inputs/double.mlir --summary --target=v5e | FileCheck %s --check-prefixes=CHECK,V5E
// RUN: %mosaic-opt %S/Inputs/double.mlir -p pack-kernels | %mosaic-opt --summary -o %t | FileCheck %s --check-prefix=CHECK
// RUN: FileCheck %s --check-prefix=WRITTEN --input-file %t

// CHECK-NOT: module
// CHECK: kernel double
// CHECK: grid: (?, 2)
// CHECK: dimension 0: i, parallel, dynamic
// V5P: runs this kernel on 1 of its 2 cores
// V5P: step.py:7:11: warning: {{.*}}[idle-cores]
// V5E-NOT: warning
// CHECK-NOT: module

// WRITTEN: module
// WRITTEN-NOT: mosaic.kernel

// RUN: %mosaic-opt %s --summary | FileCheck %s --check-prefix=NONE
// NONE: no Mosaic kernel in this program
func.func @main() {
  return
}
