// The body of a loop may be a function that the loop calls, as some JAX makes it; with two calls it stays one.
// RUN: %mosaic-opt %s -p batch-grid --contracts '0 <= lengths[*] <= 8' | FileCheck %s
// RUN: %mosaic-opt %s --check-grid --target=v5e 2>&1 | FileCheck %s --check-prefix=SAID

// SAID-COUNT-1: a loop launches this kernel 4 times, for one element of a batch each: the bound of dimension 0 differs
// SAID-NOT:     a loop launches

// CHECK-LABEL: func.func public @main(
// CHECK-NOT:     stablehlo.while
// CHECK-NOT:     call @body
// CHECK:         %[[ONE:.*]] = stablehlo.custom_call @tpu_custom_call({{.*}}mosaic.kernel = @kernel_batch4
// CHECK:         %[[TWO:.*]]:4 = stablehlo.while
// CHECK:           func.call @twice
// CHECK:           func.call @twice
// CHECK:         return %[[ONE]], %[[TWO]]#3
// CHECK-NOT:   func.func private @body
// CHECK-LABEL: func.func private @twice
// CHECK:         mosaic.kernel = @kernel}

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>

module {
  func.func public @main(%lengths: tensor<4xi32> loc("lengths"), %batch: tensor<4x64x128xf32>) -> (tensor<4x64x128xf32>, tensor<4x64x128xf32>) {
    %start = stablehlo.constant dense<0> : tensor<i32>
    %end = stablehlo.constant dense<4> : tensor<i32>
    %zeros = stablehlo.constant dense<0.0> : tensor<4x64x128xf32>
    %all:4 = stablehlo.while(%i = %start, %ns = %lengths, %xs = %batch, %out = %zeros) : tensor<i32>, tensor<4xi32>, tensor<4x64x128xf32>, tensor<4x64x128xf32>
    cond {
      %more = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %step, %next = func.call @body(%i, %ns, %xs, %out) : (tensor<i32>, tensor<4xi32>, tensor<4x64x128xf32>, tensor<4x64x128xf32>) -> (tensor<i32>, tensor<4x64x128xf32>)
      stablehlo.return %step, %ns, %xs, %next : tensor<i32>, tensor<4xi32>, tensor<4x64x128xf32>, tensor<4x64x128xf32>
    }
    %both:4 = stablehlo.while(%i = %start, %ns = %lengths, %xs = %batch, %out = %zeros) : tensor<i32>, tensor<4xi32>, tensor<4x64x128xf32>, tensor<4x64x128xf32>
    cond {
      %more = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %step, %next = func.call @twice(%i, %ns, %xs, %out) : (tensor<i32>, tensor<4xi32>, tensor<4x64x128xf32>, tensor<4x64x128xf32>) -> (tensor<i32>, tensor<4x64x128xf32>)
      %after, %last = func.call @twice(%step, %ns, %xs, %next) : (tensor<i32>, tensor<4xi32>, tensor<4x64x128xf32>, tensor<4x64x128xf32>) -> (tensor<i32>, tensor<4x64x128xf32>)
      stablehlo.return %after, %ns, %xs, %last : tensor<i32>, tensor<4xi32>, tensor<4x64x128xf32>, tensor<4x64x128xf32>
    }
    return %all#3, %both#3 : tensor<4x64x128xf32>, tensor<4x64x128xf32>
  }
  func.func private @body(%i: tensor<i32>, %ns: tensor<4xi32>, %xs: tensor<4x64x128xf32>, %out: tensor<4x64x128xf32>) -> (tensor<i32>, tensor<4x64x128xf32>) {
    %step, %next = call @inner(%i, %ns, %xs, %out) : (tensor<i32>, tensor<4xi32>, tensor<4x64x128xf32>, tensor<4x64x128xf32>) -> (tensor<i32>, tensor<4x64x128xf32>)
    return %step, %next : tensor<i32>, tensor<4x64x128xf32>
  }
  func.func private @inner(%i: tensor<i32>, %ns: tensor<4xi32>, %xs: tensor<4x64x128xf32>, %out: tensor<4x64x128xf32>) -> (tensor<i32>, tensor<4x64x128xf32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %at = stablehlo.dynamic_slice %ns, %i, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
    %n = stablehlo.reshape %at : (tensor<1xi32>) -> tensor<i32>
    %slice = stablehlo.dynamic_slice %xs, %i, %zero, %zero, sizes = [1, 64, 128] : (tensor<4x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x128xf32>
    %x = stablehlo.reshape %slice : (tensor<1x64x128xf32>) -> tensor<64x128xf32>
    %y = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    %part = stablehlo.reshape %y : (tensor<64x128xf32>) -> tensor<1x64x128xf32>
    %next = stablehlo.dynamic_update_slice %out, %part, %i, %zero, %zero : (tensor<4x64x128xf32>, tensor<1x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x64x128xf32>
    %step = stablehlo.add %i, %one : tensor<i32>
    return %step, %next : tensor<i32>, tensor<4x64x128xf32>
  }
  func.func private @twice(%i: tensor<i32>, %ns: tensor<4xi32>, %xs: tensor<4x64x128xf32>, %out: tensor<4x64x128xf32>) -> (tensor<i32>, tensor<4x64x128xf32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %at = stablehlo.dynamic_slice %ns, %i, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
    %n = stablehlo.reshape %at : (tensor<1xi32>) -> tensor<i32>
    %slice = stablehlo.dynamic_slice %xs, %i, %zero, %zero, sizes = [1, 64, 128] : (tensor<4x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x128xf32>
    %x = stablehlo.reshape %slice : (tensor<1x64x128xf32>) -> tensor<64x128xf32>
    %y = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    %part = stablehlo.reshape %y : (tensor<64x128xf32>) -> tensor<1x64x128xf32>
    %next = stablehlo.dynamic_update_slice %out, %part, %i, %zero, %zero : (tensor<4x64x128xf32>, tensor<1x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x64x128xf32>
    %step = stablehlo.add %i, %one : tensor<i32>
    return %step, %next : tensor<i32>, tensor<4x64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808>, tpu.core_type = #tpu.core_type<tc>, dimension_semantics = [#parallel],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
    func.func @out(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}
