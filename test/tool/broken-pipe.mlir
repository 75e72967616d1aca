// A reader that has seen enough is no error: nothing is said, and nothing fails.

// RUN: %mosaic-opt --help 2>%t | %python -c "import sys; sys.stdin.close()" && FileCheck %s --allow-empty --input-file %t
// RUN: %mosaic-opt %s 2>%t | %python -c "import sys; sys.stdin.close()" && FileCheck %s --allow-empty --input-file %t
// RUN: %mosaic-opt %S/Inputs/double.mlir --summary --target=v5e 2>%t | %python -c "import sys; sys.stdin.close()" && FileCheck %s --allow-empty --input-file %t

// CHECK-NOT: {{.}}
module {}
