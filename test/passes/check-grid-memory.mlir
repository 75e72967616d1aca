// What a kernel holds at least is compared with what a core of the target has; without a target, with the largest.
// RUN: %mosaic-opt %s --split-input-file --verify-diagnostics --check-grid --target=v5p
// RUN: %expect-exit 1 %mosaic-opt %s --split-input-file --check-grid 2>&1 | FileCheck %s
// CHECK: error: the kernel needs at least 256 MiB of VMEM on each core, and no TPU has more than 192 MiB [vmem-overflow]
// CHECK: error: the kernel needs at least 8 MiB of SMEM on each core, and no TPU has more than 1 MiB [smem-overflow]

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>

// Two windows of 64 MiB, each there twice.
module {
  func.func @main(%x: tensor<16384x4096xf32>) -> tensor<16384x4096xf32> {
    // expected-error@+4 {{the kernel needs at least 256 MiB of VMEM on each core, and TPU v5p has 64 MiB [vmem-overflow]}}
    // expected-note@+3 {{128 MiB: input 0 ('arg0'), f32[4096,4096], 2 times}}
    // expected-note@+2 {{128 MiB: output 0 ('arg1'), f32[4096,4096], 2 times}}
    // expected-note@+1 {{use smaller blocks}}
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<16384x4096xf32>) -> tensor<16384x4096xf32>
    return %0 : tensor<16384x4096xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<4096x4096xf32, #vmem>, %o: memref<4096x4096xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 4>, dimension_semantics = [#parallel],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 4096, 4096>}, {transform_indices = @out, window_bounds = array<i64: 4096, 4096>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<4096x4096xf32, #vmem>, vector<4096x4096xf32>
      vector.store %v, %o[%c0, %c0] : memref<4096x4096xf32, #vmem>, vector<4096x4096xf32>
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
#parallel = #tpu.dimension_semantics<parallel>

// Of 16 MiB they fit, to the last byte.
module {
  func.func @main(%x: tensor<8192x4096xf32>) -> tensor<8192x4096xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<8192x4096xf32>) -> tensor<8192x4096xf32>
    return %0 : tensor<8192x4096xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<1024x4096xf32, #vmem>, %o: memref<1024x4096xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 8>, dimension_semantics = [#parallel],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 1024, 4096>}, {transform_indices = @out, window_bounds = array<i64: 1024, 4096>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<1024x4096xf32, #vmem>, vector<1024x4096xf32>
      vector.store %v, %o[%c0, %c0] : memref<1024x4096xf32, #vmem>, vector<1024x4096xf32>
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
#parallel = #tpu.dimension_semantics<parallel>

// A window that doesn't move is there once.
module {
  func.func @main(%x: tensor<2048x4096xf32>) -> tensor<2048x4096xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<2048x4096xf32>) -> tensor<2048x4096xf32>
    return %0 : tensor<2048x4096xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<2048x4096xf32, #vmem>, %o: memref<2048x4096xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 1>, dimension_semantics = [#parallel],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 2048, 4096>}, {transform_indices = @out, window_bounds = array<i64: 2048, 4096>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<2048x4096xf32, #vmem>, vector<2048x4096xf32>
      vector.store %v, %o[%c0, %c0] : memref<2048x4096xf32, #vmem>, vector<2048x4096xf32>
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
#smem = #tpu.memory_space<smem>
#parallel = #tpu.dimension_semantics<parallel>

// A page table of 8 MiB in scalar memory.
module {
  func.func @main(%t: tensor<2048x1024xi32>, %x: tensor<64x128xf32>) -> tensor<64x128xf32> {
    // expected-error@+3 {{the kernel needs at least 8 MiB of SMEM on each core, and TPU v5p has 1 MiB [smem-overflow]}}
    // expected-note@+2 {{8 MiB: prefetch operand 0 ('prefetch0'), i32[2048,1024]}}
    // expected-note@+1 {{prefetch less}}
    %0 = stablehlo.custom_call @tpu_custom_call(%t, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<2048x1024xi32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    return %0 : tensor<64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %table: memref<2048x1024xi32, #smem>, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 8>, dimension_semantics = [#parallel], scalar_prefetch = 1 : i64,
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32, %table: memref<2048x1024xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
    func.func @out(%i: i32, %table: memref<2048x1024xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#smem = #tpu.memory_space<smem>
#parallel = #tpu.dimension_semantics<parallel>

// One of 1 MiB fits.
module {
  func.func @main(%t: tensor<256x1024xi32>, %x: tensor<64x128xf32>) -> tensor<64x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%t, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<256x1024xi32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    return %0 : tensor<64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %table: memref<256x1024xi32, #smem>, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 8>, dimension_semantics = [#parallel], scalar_prefetch = 1 : i64,
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32, %table: memref<256x1024xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
    func.func @out(%i: i32, %table: memref<256x1024xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#smem = #tpu.memory_space<smem>
#parallel = #tpu.dimension_semantics<parallel>

// A size that only a symbol stands for is not known to be large.
module {
  func.func @main(%t: tensor<?xi32>, %x: tensor<64x128xf32>) -> tensor<64x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%t, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<?xi32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    return %0 : tensor<64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %table: memref<2147483647xi32, #smem>, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 8>, dimension_semantics = [#parallel], scalar_prefetch = 1 : i64,
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32, %table: memref<2147483647xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
    func.func @out(%i: i32, %table: memref<2147483647xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}
