// Cores that idle are found, with what to do; grids that are shared, or can't be, are left in peace.
// RUN: %mosaic-opt %s --split-input-file --verify-diagnostics --check-grid --target=v5p '--suppress=window-out-of-bounds:*'
// A device of one core has none to spare.
// RUN: %mosaic-opt %s --split-input-file --check-grid --target=v5e 2>&1 | FileCheck %s --allow-empty
// CHECK-NOT: idle-cores

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// A dynamic parallel bound: libtpu runs the kernel on one core.
module {
  // expected-note@+1 {{the bound is %arg0, any i32}}
  func.func @main(%n: tensor<i32>, %x: tensor<1024x256xf32>) -> tensor<1024x256xf32> {
    // expected-warning@+2 {{parallel dimension 0 has a dynamic bound: TPU v5p runs this kernel on 1 of its 2 cores [idle-cores]}}
    // expected-note@+1 {{partition-cores shares it between the cores; or make the bound static}}
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<1024x256xf32>) -> tensor<1024x256xf32>
    return %0 : tensor<1024x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808, 2>, dimension_semantics = [#parallel, #arbitrary],
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
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// A static one is shared by the compiler: nothing is said.
module {
  func.func @main(%x: tensor<1024x256xf32>) -> tensor<1024x256xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<1024x256xf32>) -> tensor<1024x256xf32>
    return %0 : tensor<1024x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 128, 2>, dimension_semantics = [#parallel, #arbitrary],
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

// No dimension is parallel, and dimension 0 could be.
module {
  func.func @main(%x: tensor<1024x256xf32>) -> tensor<1024x256xf32> {
    // expected-warning@+2 {{no dimension is parallel, although the steps of dimension 0 are independent: TPU v5p runs this kernel on 1 of its 2 cores [idle-cores]}}
    // expected-note@+1 {{say that dimension 0 is parallel, in dimension_semantics; or run infer-parallel}}
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<1024x256xf32>) -> tensor<1024x256xf32>
    return %0 : tensor<1024x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 128, 2>, dimension_semantics = [#arbitrary, #arbitrary],
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

// None could be: every step adds to the same block.
module {
  func.func @main(%x: tensor<1024x128xf32>) -> tensor<8x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<1024x128xf32>) -> tensor<8x128xf32>
    return %0 : tensor<8x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 128>, dimension_semantics = [#arbitrary],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %old = vector.load %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      %new = arith.addf %old, %v : vector<8x128xf32>
      vector.store %new, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
    func.func @out(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %zero, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// The parallel dimension has one step, and the other could be parallel.
module {
  func.func @main(%x: tensor<8x256xf32>) -> tensor<8x256xf32> {
    // expected-warning@+2 {{parallel dimension 0 has one step, although the steps of dimension 1 are independent: TPU v5p runs this kernel on 1 of its 2 cores [idle-cores]}}
    // expected-note@+1 {{say that dimension 1 is parallel}}
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<8x256xf32>) -> tensor<8x256xf32>
    return %0 : tensor<8x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 1, 2>, dimension_semantics = [#parallel, #arbitrary],
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
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// A grid of one step has nothing to share.
module {
  func.func @main(%x: tensor<8x128xf32>) -> tensor<8x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<8x128xf32>) -> tensor<8x128xf32>
    return %0 : tensor<8x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 1, 1>, dimension_semantics = [#parallel, #arbitrary],
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
#parallel = #tpu.dimension_semantics<parallel>

// A dimension of size 1 is split between the cores by hand: one of them has nothing to do.
module {
  func.func @main(%x: tensor<16x128xf32>) -> tensor<16x128xf32> {
    // expected-warning@+2 {{where index 0 of the grid is 1 the kernel does nothing, whatever its inputs: TPU v5p works on it with 1 of its 2 cores [idle-cores]}}
    // expected-note@+1 {{an emit_pipeline that splits a dimension of size 1 is like that}}
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<16x128xf32>) -> tensor<16x128xf32>
    return %0 : tensor<16x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 2>, dimension_semantics = [#parallel],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %size = arith.constant 1 : i32
      %mine = arith.cmpi slt, %i, %size : i32
      %c0 = arith.constant 0 : index
      scf.if %mine {
        %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
        vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      }
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

// One of size 2 gives each core something.
module {
  func.func @main(%x: tensor<16x128xf32>) -> tensor<16x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<16x128xf32>) -> tensor<16x128xf32>
    return %0 : tensor<16x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 2>, dimension_semantics = [#parallel],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %size = arith.constant 2 : i32
      %mine = arith.cmpi slt, %i, %size : i32
      %c0 = arith.constant 0 : index
      scf.if %mine {
        %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
        vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      }
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

// Three steps for two cores.
module {
  func.func @main(%x: tensor<24x128xf32>) -> tensor<24x128xf32> {
    // expected-warning@+2 {{parallel dimension 0 has 3 steps for the 2 cores of TPU v5p: one core runs 2, 1.33 times the mean [unbalanced-cores]}}
    // expected-note@+1 {{choose blocks that make the steps a multiple of 2, or many}}
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<24x128xf32>) -> tensor<24x128xf32>
    return %0 : tensor<24x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 3>, dimension_semantics = [#parallel],
        window_params = [{transform_indices = @map, window_bounds = array<i64: 8, 128>}, {transform_indices = @map, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @map(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>

// Seven of them are near enough to even shares.
module {
  func.func @main(%x: tensor<56x128xf32>) -> tensor<56x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<56x128xf32>) -> tensor<56x128xf32>
    return %0 : tensor<56x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 7>, dimension_semantics = [#parallel],
        window_params = [{transform_indices = @map, window_bounds = array<i64: 8, 128>}, {transform_indices = @map, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @map(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}
