// Cores: one after the other, or in turns; and what memory holds that nobody wrote.
// RUN: %mosaic-opt %s -p lower-to-cpu | FileCheck %s
// RUN: %mosaic-opt %s -p 'lower-to-cpu{cores-interleaved=7}' | FileCheck %s --check-prefix=TURNS
// RUN: %mosaic-opt %s -p 'lower-to-cpu{uninitialized=zero}' | FileCheck %s --check-prefix=ZERO

// A loop over the cores around one over the steps of each. The array is all that they share: scratch and counters are
// each core's own, and start afresh.
// CHECK:       func.func private @sum.cpu(
// CHECK-SAME:    %[[N:.*]]: tensor<i32>, %[[X:.*]]: tensor<2x64xf32>
// CHECK:         %[[O:.*]] = stablehlo.constant dense<0x7FC00000> : tensor<2x64xf32>
// CHECK:         %[[CORES:.*]] = stablehlo.constant dense<2> : tensor<i32>
// CHECK:         %[[ALL:.*]]:2 = stablehlo.while(%[[CORE:[^ ]*]] = %{{[^ ]*}}, %[[ARRAY:[^ ]*]] = %[[O]]) : tensor<i32>, tensor<2x64xf32>
// CHECK:           stablehlo.compare LT, %[[CORE]], %[[CORES]]
// CHECK:         do
// CHECK:           %[[SCRATCH:.*]] = stablehlo.constant dense<0x7FC00000> : tensor<8xf32>
// CHECK:           %[[STEPS:.*]]:3 = stablehlo.while(%[[I:[^ ]*]] = %{{[^ ]*}}, %{{[^ ]*}} = %[[SCRATCH]], %{{[^ ]*}} = %[[ARRAY]]) : tensor<i32>, tensor<8xf32>, tensor<2x64xf32>
// CHECK:             stablehlo.compare LT, %[[I]], %[[N]]
// CHECK:           stablehlo.add %[[CORE]],
// CHECK:           stablehlo.return %{{.*}}, %[[STEPS]]#2
// CHECK:         return %[[ALL]]#1

// One loop over the turns. The state of the cores is stacked; a turn takes a row of each stack, and puts it back.
// TURNS:       func.func private @sum.cpu(
// TURNS-SAME:    %[[N:.*]]: tensor<i32>, %[[X:.*]]: tensor<2x64xf32>
// TURNS:         stablehlo.while(%[[TURN:[^ ]*]] = %{{[^ ]*}}, %[[I:[^ ]*]] = %{{[^ ]*}}, %[[SCRATCH:[^ ]*]] = %{{[^ ]*}}, %[[ARRAY:[^ ]*]] = %{{[^ ]*}}) : tensor<i32>, tensor<2xi32>, tensor<2x8xf32>, tensor<2x64xf32>
// TURNS:           %[[LIVE:.*]] = stablehlo.compare LT, %[[I]], %{{.*}} : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
// TURNS:           stablehlo.reduce(%[[LIVE]]
// TURNS:         do
// TURNS:           stablehlo.dynamic_slice %[[I]], %{{.*}}, sizes = [1]
// TURNS:           stablehlo.dynamic_slice %[[SCRATCH]], %{{.*}}, sizes = [1, 8]
// TURNS:           stablehlo.dynamic_update_slice %[[ARRAY]],
// TURNS:           stablehlo.dynamic_update_slice %[[I]],
// TURNS:           stablehlo.dynamic_update_slice %[[SCRATCH]],
// TURNS-NOT:     stablehlo.while

// ZERO:        func.func private @sum.cpu(
// ZERO-NOT:      0x7FC00000
// ZERO:          stablehlo.constant dense<0.000000e+00> : tensor<2x64xf32>
// ZERO-NOT:      0x7FC00000

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>
#core_parallel = #tpu.dimension_semantics<core_parallel>

module {
  func.func @cores(%n: tensor<i32>, %x: tensor<2x64xf32>) -> tensor<2x64xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @sum, backend_config = "{}"} : (tensor<i32>, tensor<2x64xf32>) -> tensor<2x64xf32>
    return %0 : tensor<2x64xf32>
  }
  module @sum attributes {stable_mosaic.version = 15 : i64} {
    func.func @sum(%c: i32, %i: i32, %x: memref<8xf32, #vmem>, %o: memref<8xf32, #vmem>, %s: memref<8xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 2, -9223372036854775808>, dimension_semantics = [#core_parallel, #arbitrary], scratch_operands = 1 : i64,
        window_params = [{transform_indices = @block, window_bounds = array<i64: 1, 8>}, {transform_indices = @block, window_bounds = array<i64: 1, 8>}]} {
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0 : i32
      %first = arith.cmpi eq, %i, %zero : i32
      scf.if %first {
        %zeros = arith.constant dense<0.0> : vector<8xf32>
        vector.store %zeros, %s[%c0] : memref<8xf32, #vmem>, vector<8xf32>
      }
      %0 = vector.load %x[%c0] : memref<8xf32, #vmem>, vector<8xf32>
      %1 = vector.load %s[%c0] : memref<8xf32, #vmem>, vector<8xf32>
      %2 = arith.addf %0, %1 : vector<8xf32>
      vector.store %2, %s[%c0] : memref<8xf32, #vmem>, vector<8xf32>
      vector.store %2, %o[%c0] : memref<8xf32, #vmem>, vector<8xf32>
      return
    }
    func.func @block(%c: i32, %i: i32) -> (i32, i32) {
      return %c, %i : i32, i32
    }
  }
}
