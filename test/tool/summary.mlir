// --summary says in plain words what the launches are, with warnings as diagnostics; with -o it goes to a file.

// RUN: %mosaic-opt %S/Inputs/double.mlir --summary --target=v5p 2>&1 | FileCheck %s --check-prefixes=CHECK,V5P
// RUN: %mosaic-opt %S/Inputs/double.mlir --summary 2>&1 | FileCheck %s --check-prefixes=CHECK,V5P,ASSUMED
// RUN: %mosaic-opt %S/Inputs/double.mlir --summary --target=v5e 2>&1 | FileCheck %s --check-prefixes=CHECK,V5E
// RUN: %mosaic-opt %S/Inputs/double.mlir -p pack-kernels | %mosaic-opt --summary -o %t
// RUN: FileCheck %s --check-prefix=CHECK --input-file %t

// CHECK-NOT: module
// V5P: 1 kernel, 1 launch, for TPU v5p
// ASSUMED-SAME: ; --target=... for another
// V5E: 1 kernel, 1 launch, for TPU v5e
// CHECK: kernel 'double': TensorCore
// CHECK: grid: (?, 2)
// CHECK: dimension 0: i, parallel, dynamic
// V5P: runs this kernel on 1 of its 2 cores
// V5P-NEXT: partition-cores shares it between the cores
// V5P: step.py:7:11: warning: {{.*}}[idle-cores]
// V5P: note: partition-cores shares it between the cores; or make the bound static
// V5E-NOT: warning
// CHECK-NOT: module

// What partition-cores refuses isn't advised: here every step of dimension 0 writes the same block.
// RUN: sed 's/return %%i, %%j/return %%j, %%j/' %S/Inputs/double.mlir | %mosaic-opt --summary 2>&1 | FileCheck %s --check-prefix=REFUSED
// REFUSED: partition-cores can't share it: {{.*}}race
// REFUSED: warning: {{.*}}[idle-cores]
// REFUSED: note: partition-cores can't share it: {{.*}}race

// What it has made says when its fallback runs.
// RUN: %mosaic-opt %S/Inputs/double.mlir -p partition-cores --summary --target=v5p 2>&1 | FileCheck %s --check-prefix=SHARED --implicit-check-not=warning:
// SHARED: branch 0 of 2
// SHARED: the fallback of a launch that runs on every core, for when a core would have no step
// SHARED: branch 1 of 2
// SHARED: on 2 of its 2 cores: dimension 0 is core_parallel

// RUN: %mosaic-opt %s --summary | FileCheck %s --check-prefix=NONE
// NONE: no Mosaic kernel in this program
func.func @main() {
  return
}
