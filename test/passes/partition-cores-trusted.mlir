// What isn't proved of a dimension is taken from its author, who called it parallel, and said; what is wrong isn't taken.
// RUN: %mosaic-opt %s --split-input-file -p 'partition-cores{cores=2}' --verify-diagnostics
// RUN: %mosaic-opt %s --split-input-file -p 'partition-cores{cores=2}' | FileCheck %s

#vmem = #tpu.memory_space<vmem>
#smem = #tpu.memory_space<smem>
#parallel = #tpu.dimension_semantics<parallel>

// Which block a step writes is read from a list at run time: no two steps the same, says the word parallel.
// CHECK-LABEL: func.func @main(
// CHECK:         module @scatter_cores2_d0
module {
  func.func @main(%n: tensor<i32>, %p: tensor<64xi32>, %x: tensor<512x128xf32>) -> tensor<512x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %p, %x) {mosaic.kernel = @scatter, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<64xi32>, tensor<512x128xf32>) -> tensor<512x128xf32>
    return %0 : tensor<512x128xf32>
  }
  module @scatter attributes {stable_mosaic.version = 15 : i64} {
    func.func @scatter(%i: i32, %p: memref<64xi32, #smem>, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#parallel], scalar_prefetch = 1 : i64,
        window_params = [{transform_indices = @block, window_bounds = array<i64: 8, 128>}, {transform_indices = @scattered, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @block(%i: i32, %p: memref<64xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
    // expected-remark@+1 {{the kernel 'scatter' is shared along dimension 0 on its author's word: that no two cores write the same block of output 0}}
    func.func @scattered(%i: i32, %p: memref<64xi32, #smem>) -> (i32, i32) {
      %at = arith.index_cast %i : i32 to index
      %0 = memref.load %p[%at] : memref<64xi32, #smem>
      %zero = arith.constant 0 : i32
      return %0, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>

// Of two parallel dimensions one is none: it is said, and the other is shared.
// CHECK-LABEL: func.func @one_of_two(
// CHECK:         "stablehlo.case"
// CHECK:           mosaic.kernel = @last}
// CHECK:           mosaic.kernel = @last_cores2_d0}
// CHECK-NEXT:      stablehlo.return
// CHECK-NEXT:    }) :
module {
  func.func @one_of_two(%n: tensor<i32>, %m: tensor<i32>, %x: tensor<1024x1024xf32>) -> tensor<1024x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %m, %x) {mosaic.kernel = @last, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<i32>, tensor<1024x1024xf32>) -> tensor<1024x128xf32>
    return %0 : tensor<1024x128xf32>
  }
  module @last attributes {stable_mosaic.version = 15 : i64} {
    func.func @last(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808, -9223372036854775808>, dimension_semantics = [#parallel, #parallel],
        window_params = [{transform_indices = @block, window_bounds = array<i64: 8, 128>}, {transform_indices = @row, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @block(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
    // expected-remark@+2 {{the kernel 'last' can't be shared between cores along dimension 1: parallel dimension 1 is a race}}
    // expected-note@+1 {{it is shared along dimension 0}}
    func.func @row(%i: i32, %j: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}
