// The program runs where its contracts are kept, and returns which one isn't.
// RUN: %mosaic-opt %s --insert-contract-checks --contracts='n <= 8, 0 <= t[*] < n' | FileCheck %s
// RUN: %mosaic-opt %s --insert-contract-checks --contracts='n <= 8, 0 <= t[*] < n' -o %t.mlir
// RUN: %mosaic-run %t.mlir --input n=8 --input t=7 | FileCheck %s --check-prefix=KEPT
// RUN: %expect-exit 1 %mosaic-run %t.mlir --input n=9 --input t=0 2>&1 | FileCheck %s --check-prefix=BROKEN
// RUN: %expect-exit 1 %mosaic-run %t.mlir --input n=8 --input t=8 2>&1 | FileCheck %s --check-prefix=ELEMENT
// RUN: %expect-exit 2 %mosaic-opt %t.mlir --insert-contract-checks --contracts='n <= 8' 2>&1 | FileCheck %s --check-prefix=TWICE

// A sum is the exact one: four of the largest number are -4 in 32 bits, and more than 8.
// RUN: %mosaic-opt %s --insert-contract-checks --contracts='sum(t) <= 8' -o %t.sum.mlir
// RUN: %mosaic-run %t.sum.mlir --input n=9 --input t=2 | FileCheck %s --check-prefix=KEPT
// RUN: %expect-exit 1 %mosaic-run %t.sum.mlir --input n=9 --input t=2147483647 2>&1 | FileCheck %s --check-prefix=SUM
// SUM: error: contract 'sum(t) <= 8' is broken by argument 1 ('t') [broken-contract]

// KEPT: broken_contract i32[] 0
// BROKEN: error: contract 'n <= 8' is broken by argument 0 ('n') [broken-contract]
// ELEMENT: error: contract '0 <= t[*] < n' is broken by {{.*}}argument 1 ('t'){{.*}} [broken-contract]
// TWICE: error: @main checks contracts already

// CHECK: func.func public @main(%[[N:.*]]: tensor<i32>, %[[T:.*]]: tensor<4xi32>) -> (tensor<i32> {jax.result_info = "sum"}, tensor<i32> {jax.result_info = "broken_contract", mosaic_grid.contracts = ["contract 'n <= 8' is broken by argument 0 ('n')", "{{.*}}"]})
// CHECK: stablehlo.reduce
// CHECK: %[[RESULT:.*]] = "stablehlo.if"(%{{.*}}) ({
// CHECK-NEXT: func.call @main_unchecked(%[[N]], %[[T]])
// CHECK: }, {
// CHECK-NEXT: stablehlo.constant dense<-2147483648>
// CHECK: return %[[RESULT]], %[[CODE:.*]] : tensor<i32>, tensor<i32>
// CHECK: func.func private @main_unchecked(%{{.*}}: tensor<i32>, %{{.*}}: tensor<4xi32>) -> tensor<i32> {
module {
  func.func public @main(%n: tensor<i32> loc("n"), %t: tensor<4xi32> loc("t")) -> (tensor<i32> {jax.result_info = "sum"}) {
    %0 = stablehlo.add %n, %n : tensor<i32>
    return %0 : tensor<i32>
  }
}
