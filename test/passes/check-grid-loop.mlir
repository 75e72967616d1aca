// A loop that launches a kernel for one element of a batch after the other, because its bound is batched.
// RUN: %mosaic-opt %s --split-input-file --verify-diagnostics --check-grid --target=v5e

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// What vmap makes of a batched bound.
module {
  func.func @main(%lengths: tensor<4xi32>, %batch: tensor<4x64x128xf32>) -> tensor<4x64x128xf32> {
    %start = stablehlo.constant dense<0> : tensor<i32>
    %zeros = stablehlo.constant dense<0.0> : tensor<4x64x128xf32>
    %all:4 = stablehlo.while(%i = %start, %ns = %lengths, %xs = %batch, %out = %zeros) : tensor<i32>, tensor<4xi32>, tensor<4x64x128xf32>, tensor<4x64x128xf32>
    cond {
      %end = stablehlo.constant dense<4> : tensor<i32>
      %more = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %at = stablehlo.dynamic_slice %ns, %i, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
      %n = stablehlo.reshape %at : (tensor<1xi32>) -> tensor<i32>
      %slice = stablehlo.dynamic_slice %xs, %i, %zero, %zero, sizes = [1, 64, 128] : (tensor<4x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x128xf32>
      %x = stablehlo.reshape %slice : (tensor<1x64x128xf32>) -> tensor<64x128xf32>
      // expected-warning@+2 {{a loop launches this kernel 4 times, for one element of a batch each: the bound of dimension 0 differs, and a vmapped bound becomes a loop [vmap-became-loop]}}
      // expected-note@+1 {{batch-grid makes one launch of the loop; or make the batch a dimension of the grid, the largest bound its bound, and skip what is beyond it}}
      %y = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
      %part = stablehlo.reshape %y : (tensor<64x128xf32>) -> tensor<1x64x128xf32>
      %next = stablehlo.dynamic_update_slice %out, %part, %i, %zero, %zero : (tensor<4x64x128xf32>, tensor<1x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x64x128xf32>
      %step = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %step, %ns, %xs, %next : tensor<i32>, tensor<4xi32>, tensor<4x64x128xf32>, tensor<4x64x128xf32>
    }
    return %all#3 : tensor<4x64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#arbitrary],
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

// -----

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// The same where the update is in a function of its own, as newer JAX has it.
module {
  func.func @main(%lengths: tensor<4xi32>, %batch: tensor<4x64x128xf32>) -> tensor<4x64x128xf32> {
    %start = stablehlo.constant dense<0> : tensor<i32>
    %zeros = stablehlo.constant dense<0.0> : tensor<4x64x128xf32>
    %all:4 = stablehlo.while(%i = %start, %ns = %lengths, %xs = %batch, %out = %zeros) : tensor<i32>, tensor<4xi32>, tensor<4x64x128xf32>, tensor<4x64x128xf32>
    cond {
      %end = stablehlo.constant dense<4> : tensor<i32>
      %more = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %at = stablehlo.dynamic_slice %ns, %i, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
      %n = stablehlo.reshape %at : (tensor<1xi32>) -> tensor<i32>
      %slice = stablehlo.dynamic_slice %xs, %i, %zero, %zero, sizes = [1, 64, 128] : (tensor<4x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x128xf32>
      %x = stablehlo.reshape %slice : (tensor<1x64x128xf32>) -> tensor<64x128xf32>
      // expected-warning@+2 {{a loop launches this kernel 4 times, for one element of a batch each: the bound of dimension 0 differs, and a vmapped bound becomes a loop [vmap-became-loop]}}
      // expected-note@+1 {{batch-grid makes one launch of the loop; or make the batch a dimension of the grid, the largest bound its bound, and skip what is beyond it}}
      %y = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
      %next = func.call @put(%out, %y, %i) : (tensor<4x64x128xf32>, tensor<64x128xf32>, tensor<i32>) -> tensor<4x64x128xf32>
      %step = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %step, %ns, %xs, %next : tensor<i32>, tensor<4xi32>, tensor<4x64x128xf32>, tensor<4x64x128xf32>
    }
    return %all#3 : tensor<4x64x128xf32>
  }
  func.func private @put(%out: tensor<4x64x128xf32>, %y: tensor<64x128xf32>, %i: tensor<i32>) -> tensor<4x64x128xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %part = stablehlo.broadcast_in_dim %y, dims = [1, 2] : (tensor<64x128xf32>) -> tensor<1x64x128xf32>
    %next = stablehlo.dynamic_update_slice %out, %part, %i, %zero, %zero : (tensor<4x64x128xf32>, tensor<1x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x64x128xf32>
    return %next : tensor<4x64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#arbitrary],
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

// -----

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// All elements have the same bound: a loop that somebody wrote.
module {
  func.func @main(%lengths: tensor<4xi32>, %batch: tensor<4x64x128xf32>) -> tensor<4x64x128xf32> {
    %start = stablehlo.constant dense<0> : tensor<i32>
    %zeros = stablehlo.constant dense<0.0> : tensor<4x64x128xf32>
    %all:4 = stablehlo.while(%i = %start, %ns = %lengths, %xs = %batch, %out = %zeros) : tensor<i32>, tensor<4xi32>, tensor<4x64x128xf32>, tensor<4x64x128xf32>
    cond {
      %end = stablehlo.constant dense<4> : tensor<i32>
      %more = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %at = stablehlo.slice %ns [0:1] : (tensor<4xi32>) -> tensor<1xi32>
      %n = stablehlo.reshape %at : (tensor<1xi32>) -> tensor<i32>
      %slice = stablehlo.dynamic_slice %xs, %i, %zero, %zero, sizes = [1, 64, 128] : (tensor<4x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x128xf32>
      %x = stablehlo.reshape %slice : (tensor<1x64x128xf32>) -> tensor<64x128xf32>
      %y = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
      %part = stablehlo.reshape %y : (tensor<64x128xf32>) -> tensor<1x64x128xf32>
      %next = stablehlo.dynamic_update_slice %out, %part, %i, %zero, %zero : (tensor<4x64x128xf32>, tensor<1x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x64x128xf32>
      %step = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %step, %ns, %xs, %next : tensor<i32>, tensor<4xi32>, tensor<4x64x128xf32>, tensor<4x64x128xf32>
    }
    return %all#3 : tensor<4x64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#arbitrary],
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

// -----

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// An iteration looks at what the others have left, as in a scan.
module {
  func.func @main(%lengths: tensor<4xi32>, %batch: tensor<4x64x128xf32>) -> tensor<4x64x128xf32> {
    %start = stablehlo.constant dense<0> : tensor<i32>
    %zeros = stablehlo.constant dense<0.0> : tensor<4x64x128xf32>
    %all:4 = stablehlo.while(%i = %start, %ns = %lengths, %xs = %batch, %out = %zeros) : tensor<i32>, tensor<4xi32>, tensor<4x64x128xf32>, tensor<4x64x128xf32>
    cond {
      %end = stablehlo.constant dense<4> : tensor<i32>
      %more = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %at = stablehlo.dynamic_slice %ns, %i, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
      %n = stablehlo.reshape %at : (tensor<1xi32>) -> tensor<i32>
      %slice = stablehlo.dynamic_slice %out, %i, %zero, %zero, sizes = [1, 64, 128] : (tensor<4x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x128xf32>
      %x = stablehlo.reshape %slice : (tensor<1x64x128xf32>) -> tensor<64x128xf32>
      %y = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
      %part = stablehlo.reshape %y : (tensor<64x128xf32>) -> tensor<1x64x128xf32>
      %next = stablehlo.dynamic_update_slice %out, %part, %i, %zero, %zero : (tensor<4x64x128xf32>, tensor<1x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x64x128xf32>
      %step = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %step, %ns, %xs, %next : tensor<i32>, tensor<4xi32>, tensor<4x64x128xf32>, tensor<4x64x128xf32>
    }
    return %all#3 : tensor<4x64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#arbitrary],
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
