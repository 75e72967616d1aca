// Slices that begin at a number read at run time; what libtpu takes and refuses was asked of it for each of them.
// RUN: %mosaic-opt %s --split-input-file --verify-diagnostics --check-grid --target=v5e

#vmem = #tpu.memory_space<vmem>
#smem = #tpu.memory_space<smem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// Several rows from anywhere.
module {
  func.func @main(%n: tensor<1xi32>, %x: tensor<64x256xf32>) -> tensor<8x256xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<1xi32>, tensor<64x256xf32>) -> tensor<8x256xf32>
    return %0 : tensor<8x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 18 : i64} {
    func.func @kernel(%i: i32, %n: memref<1xi32, #smem>, %x: memref<64x256xf32, #vmem>, %o: memref<8x256xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 1>, dimension_semantics = [#arbitrary], scalar_prefetch = 1 : i64,
        window_params = [{transform_indices = @map, window_bounds = array<i64: 64, 256>}, {transform_indices = @map, window_bounds = array<i64: 8, 256>}]} {
      %c0 = arith.constant 0 : index
      %read = memref.load %n[%c0] : memref<1xi32, #smem>
      %row = arith.index_cast %read : i32 to index
      // expected-error@+2 {{the kernel reads from a buffer at an index in dimension 0 that it has just read, and the compiler takes only one that is proved to be a multiple of 8 [unproven-alignment]}}
      // expected-note@+1 {{if it always is one, say pl.multiple_of(index, 8), or keep the quotient and multiply by 8; else read whole tiles and shift them}}
      %v = vector.load %x[%row, %c0] : memref<64x256xf32, #vmem>, vector<8x256xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x256xf32, #vmem>, vector<8x256xf32>
      return
    }
    func.func @map(%i: i32, %n: memref<1xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %zero, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#smem = #tpu.memory_space<smem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// The author says that it is a multiple.
module {
  func.func @main(%n: tensor<1xi32>, %x: tensor<64x256xf32>) -> tensor<8x256xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<1xi32>, tensor<64x256xf32>) -> tensor<8x256xf32>
    return %0 : tensor<8x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 18 : i64} {
    func.func @kernel(%i: i32, %n: memref<1xi32, #smem>, %x: memref<64x256xf32, #vmem>, %o: memref<8x256xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 1>, dimension_semantics = [#arbitrary], scalar_prefetch = 1 : i64,
        window_params = [{transform_indices = @map, window_bounds = array<i64: 64, 256>}, {transform_indices = @map, window_bounds = array<i64: 8, 256>}]} {
      %c0 = arith.constant 0 : index
      %read = memref.load %n[%c0] : memref<1xi32, #smem>
      %known = tpu.assume_multiple %read, 8 : i32
      %row = arith.index_cast %known : i32 to index
      %v = vector.load %x[%row, %c0] : memref<64x256xf32, #vmem>, vector<8x256xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x256xf32, #vmem>, vector<8x256xf32>
      return
    }
    func.func @map(%i: i32, %n: memref<1xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %zero, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#smem = #tpu.memory_space<smem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// A single row may be anywhere.
module {
  func.func @main(%n: tensor<1xi32>, %x: tensor<64x256xf32>) -> tensor<1x256xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<1xi32>, tensor<64x256xf32>) -> tensor<1x256xf32>
    return %0 : tensor<1x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 18 : i64} {
    func.func @kernel(%i: i32, %n: memref<1xi32, #smem>, %x: memref<64x256xf32, #vmem>, %o: memref<1x256xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 1>, dimension_semantics = [#arbitrary], scalar_prefetch = 1 : i64,
        window_params = [{transform_indices = @map, window_bounds = array<i64: 64, 256>}, {transform_indices = @map, window_bounds = array<i64: 1, 256>}]} {
      %c0 = arith.constant 0 : index
      %read = memref.load %n[%c0] : memref<1xi32, #smem>
      %row = arith.index_cast %read : i32 to index
      %v = vector.load %x[%row, %c0] : memref<64x256xf32, #vmem>, vector<1x256xf32>
      vector.store %v, %o[%c0, %c0] : memref<1x256xf32, #vmem>, vector<1x256xf32>
      return
    }
    func.func @map(%i: i32, %n: memref<1xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %zero, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#smem = #tpu.memory_space<smem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// Lanes come in 128.
module {
  func.func @main(%n: tensor<1xi32>, %x: tensor<64x256xf32>) -> tensor<8x256xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<1xi32>, tensor<64x256xf32>) -> tensor<8x256xf32>
    return %0 : tensor<8x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 18 : i64} {
    func.func @kernel(%i: i32, %n: memref<1xi32, #smem>, %x: memref<64x256xf32, #vmem>, %o: memref<8x256xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 1>, dimension_semantics = [#arbitrary], scalar_prefetch = 1 : i64,
        window_params = [{transform_indices = @map, window_bounds = array<i64: 64, 256>}, {transform_indices = @map, window_bounds = array<i64: 8, 256>}]} {
      %c0 = arith.constant 0 : index
      %read = memref.load %n[%c0] : memref<1xi32, #smem>
      %lane = arith.index_cast %read : i32 to index
      // expected-error@+2 {{the kernel reads from a buffer at an index in dimension 1 that it has just read, and the compiler takes only one that is proved to be a multiple of 128 [unproven-alignment]}}
      // expected-note@+1 {{if it always is one, say pl.multiple_of(index, 128)}}
      %v = vector.load %x[%c0, %lane] : memref<64x256xf32, #vmem>, vector<8x256xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x256xf32, #vmem>, vector<8x256xf32>
      return
    }
    func.func @map(%i: i32, %n: memref<1xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %zero, %zero : i32, i32
    }
  }
}
