// A core_parallel bound has to be the number of cores of the device.
// RUN: %mosaic-opt %s --split-input-file --verify-diagnostics --check-grid --target=v5p '--suppress=window-out-of-bounds:*'

// Without a target only what no device has is an error: a bound of 1 is right on most.
// RUN: %expect-exit 1 %mosaic-opt %s --split-input-file --check-grid 2>&1 | FileCheck %s
// CHECK: core_parallel dimension 0 has bound 128, one for each core, and no device has more than 2 [core-parallel-exceeds-cores]
// CHECK-NOT: core-parallel-below-cores

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>
#core_parallel = #tpu.dimension_semantics<core_parallel>

// A dynamic bound, which JAX refuses by itself.
module {
  func.func @main(%n: tensor<i32>, %x: tensor<1024x256xf32>) -> tensor<1024x256xf32> {
    // expected-error@+2 {{core_parallel dimension 0 has a dynamic bound, and JAX and libtpu want the number of cores [dynamic-core-parallel]}}
    // expected-note@+1 {{partition-cores makes it static}}
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<1024x256xf32>) -> tensor<1024x256xf32>
    return %0 : tensor<1024x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808, 2>, dimension_semantics = [#core_parallel, #arbitrary],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
    func.func @out(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>
#core_parallel = #tpu.dimension_semantics<core_parallel>

// More steps than cores.
module {
  func.func @main(%x: tensor<1024x256xf32>) -> tensor<1024x256xf32> {
    // expected-error@+2 {{core_parallel dimension 0 has bound 128, one for each core, and TPU v5p has 2 [core-parallel-exceeds-cores]}}
    // expected-note@+1 {{partition-cores makes it fit}}
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<1024x256xf32>) -> tensor<1024x256xf32>
    return %0 : tensor<1024x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 128, 2>, dimension_semantics = [#core_parallel, #arbitrary],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
    func.func @out(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>
#core_parallel = #tpu.dimension_semantics<core_parallel>

// Fewer steps than cores.
module {
  func.func @main(%x: tensor<8x256xf32>) -> tensor<8x256xf32> {
    // expected-error@+2 {{core_parallel dimension 0 has bound 1, one for each core, and TPU v5p has 2, which libtpu insists on [core-parallel-below-cores]}}
    // expected-note@+1 {{partition-cores makes it an ordinary loop}}
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<8x256xf32>) -> tensor<8x256xf32>
    return %0 : tensor<8x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 1, 2>, dimension_semantics = [#core_parallel, #arbitrary],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
    func.func @out(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#core_parallel = #tpu.dimension_semantics<core_parallel>

// Two of them.
module {
  func.func @main(%x: tensor<16x256xf32>) -> tensor<16x256xf32> {
    // expected-error@+2 {{dimensions 0 and 1 of the grid are core_parallel, and only one may be [several-core-parallel]}}
    // expected-note@+1 {{make all but one of them parallel}}
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<16x256xf32>) -> tensor<16x256xf32>
    return %0 : tensor<16x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 2, 2>, dimension_semantics = [#core_parallel, #core_parallel],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
    func.func @out(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>
#core_parallel = #tpu.dimension_semantics<core_parallel>

// A symbolic export's placeholder for a size, taken for a number of cores.
module {
  func.func @main(%x: tensor<?x256xf32>) -> tensor<?x256xf32> {
    // expected-error@+2 {{core_parallel dimension 0 has bound 2147483647, which is a placeholder for a symbolic size: it asks for as many cores [core-count-placeholder]}}
    // expected-note@+1 {{make the bound the number of cores, and loop over the symbolic size}}
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<?x256xf32>) -> tensor<?x256xf32>
    return %0 : tensor<?x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 2147483647, 2>, dimension_semantics = [#core_parallel, #arbitrary],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
    func.func @out(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>
#core_parallel = #tpu.dimension_semantics<core_parallel>

// As many steps as cores, and a placeholder where it belongs.
module {
  func.func @main(%x: tensor<?x256xf32>) -> tensor<?x256xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<?x256xf32>) -> tensor<?x256xf32>
    return %0 : tensor<?x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 2, 2147483646>, dimension_semantics = [#core_parallel, #arbitrary],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32, %j: i32) -> (i32, i32) {
      return %j, %i : i32, i32
    }
    func.func @out(%i: i32, %j: i32) -> (i32, i32) {
      return %j, %i : i32, i32
    }
  }
}
