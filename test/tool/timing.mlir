// --mlir-timing says how long each pass took, on standard error.

// RUN: %mosaic-opt %s -p cse,resolve-grid --mlir-timing 2>&1 >/dev/null | FileCheck %s

// CHECK: Execution time report
// CHECK: Total Execution Time: {{[0-9.]+}} seconds
// CHECK: {{[0-9.]+}} ({{ *[0-9.]+}}%)  cse
// CHECK-NEXT: {{.*}}  resolve-grid
// CHECK-NEXT: {{.*}}  Rest
// CHECK-NEXT: {{.*}} (100.0%)  Total
module {}
