// The passes are given with -p, as MLIR's own string, or as flags; MLIR's are among them.

// RUN: %mosaic-opt %s -p 'cse,resolve-grid' | FileCheck %s
// RUN: %mosaic-opt --pass-pipeline='builtin.module(func.func(cse),resolve-grid)' %s | FileCheck %s
// RUN: %mosaic-opt --cse --resolve-grid %s | FileCheck %s
// RUN: %mosaic-opt %s -cse -partition-cores="cores=4 strategy=split" | FileCheck %s
// RUN: %mosaic-opt -pass-pipeline 'canonicalize{max-iterations=2},any(cse)' -- %s | FileCheck %s

// CHECK: addi
// CHECK-NOT: addi
func.func @main(%a: i32) -> (i32, i32) {
  %0 = arith.addi %a, %a : i32
  %1 = arith.addi %a, %a : i32
  return %0, %1 : i32, i32
}
