// Steps that depend on one another although their dimension is called parallel, and tables that change under way.
// RUN: %mosaic-opt %s --split-input-file --verify-diagnostics --check-grid --target=v5p --no-warn=idle-cores

// On one core the steps run in order: what would be an error is a warning.
// RUN: %mosaic-opt %s --split-input-file --check-grid --target=v5e 2>&1 | FileCheck %s
// CHECK: warning: parallel dimension 0 is a race: {{.*}} [parallel-race]
// CHECK: warning: dimension 0 isn't parallel: {{.*}} [carried-scratch]

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// Two steps of the parallel dimension write one block.
module {
  func.func @main(%x: tensor<64x1024xf32>) -> tensor<8x1024xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<64x1024xf32>) -> tensor<8x1024xf32>
    return %0 : tensor<8x1024xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 8, 8>, dimension_semantics = [#parallel, #arbitrary],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
    // expected-error@+2 {{parallel dimension 0 is a race: steps (0, 0) and (1, 0) write the same block (0, 0) of output 0 [parallel-race]}}
    // expected-note@+1 {{make dimension 0 arbitrary, or give each of its steps a place of its own to write to}}
    func.func @out(%i: i32, %j: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %zero, %j : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// The dimension that they differ in is arbitrary.
module {
  func.func @main(%x: tensor<64x1024xf32>) -> tensor<64x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<64x1024xf32>) -> tensor<64x128xf32>
    return %0 : tensor<64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 8, 8>, dimension_semantics = [#parallel, #arbitrary],
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
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// A running sum in scratch, set to zero in the first step only, crosses the dimension.
module {
  func.func @main(%x: tensor<64x1024xf32>) -> tensor<64x1024xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<64x1024xf32>) -> tensor<64x1024xf32>
    return %0 : tensor<64x1024xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>, %sum: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 8, 8>, dimension_semantics = [#parallel, #arbitrary], scratch_operands = 1 : i64,
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0 : i32
      %first = arith.cmpi eq, %i, %zero : i32
      scf.if %first {
        %zeros = arith.constant dense<0.0> : vector<8x128xf32>
        vector.store %zeros, %sum[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      }
      // expected-error@+2 {{dimension 0 isn't parallel: scratch operand 0 (f32[8,128]) is initialised only where grid index 0 is 0, so its value crosses dimension 0 [carried-scratch]}}
      // expected-note@+1 {{make dimension 0 arbitrary, or write it in each step of the dimension before it is read}}
      %old = vector.load %sum[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      %new = arith.addf %old, %v : vector<8x128xf32>
      vector.store %new, %sum[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %new, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
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

// Set to zero where the inner index is 0, it stays within a step of the parallel dimension.
module {
  func.func @main(%x: tensor<64x1024xf32>) -> tensor<64x1024xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<64x1024xf32>) -> tensor<64x1024xf32>
    return %0 : tensor<64x1024xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>, %sum: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 8, 8>, dimension_semantics = [#parallel, #arbitrary], scratch_operands = 1 : i64,
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0 : i32
      %first = arith.cmpi eq, %j, %zero : i32
      scf.if %first {
        %zeros = arith.constant dense<0.0> : vector<8x128xf32>
        vector.store %zeros, %sum[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      }
      %old = vector.load %sum[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      %new = arith.addf %old, %v : vector<8x128xf32>
      vector.store %new, %sum[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %new, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
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
#smem = #tpu.memory_space<smem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// The kernel changes the table that an index map reads.
module {
  func.func @main(%t: tensor<8xi32>, %x: tensor<64x128xf32>) -> tensor<64x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%t, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<8xi32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    return %0 : tensor<64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %table: memref<8xi32, #smem>, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 8>, dimension_semantics = [#arbitrary], scalar_prefetch = 1 : i64,
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %one = arith.constant 1 : i32
      // expected-warning@+2 {{the kernel writes prefetch operand 0 ('prefetch0'), which the index map of input 0 ('arg0') reads: the blocks of the steps that are on their way are chosen already [prefetch-operand-written]}}
      // expected-note@+1 {{compute the table before the launch, or keep what changes in scratch in SMEM}}
      memref.store %one, %table[%c0] : memref<8xi32, #smem>
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32, %table: memref<8xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      %at = arith.index_cast %i : i32 to index
      %b = memref.load %table[%at] : memref<8xi32, #smem>
      return %b, %zero : i32, i32
    }
    func.func @out(%i: i32, %table: memref<8xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#smem = #tpu.memory_space<smem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// A prefetch operand that index maps leave alone may hold the kernel's state.
module {
  func.func @main(%t: tensor<8xi32>, %x: tensor<64x128xf32>) -> tensor<64x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%t, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<8xi32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    return %0 : tensor<64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %table: memref<8xi32, #smem>, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 8>, dimension_semantics = [#arbitrary], scalar_prefetch = 1 : i64,
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %one = arith.constant 1 : i32
      memref.store %one, %table[%c0] : memref<8xi32, #smem>
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32, %table: memref<8xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
    func.func @out(%i: i32, %table: memref<8xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// An arbitrary dimension around a parallel one.
module {
  func.func @main(%x: tensor<64x1024xf32>) -> tensor<64x1024xf32> {
    // expected-warning@+3 {{parallel dimension 1 comes after arbitrary dimension 0: JAX's TPU interpreter takes parallel dimensions only before all others [parallel-not-prefix]}}
    // expected-note@+2 {{where it is shared, each core goes through all 8 steps of dimension 0 with its part of 1}}
    // expected-note@+1 {{let dimension 1 come first}}
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<64x1024xf32>) -> tensor<64x1024xf32>
    return %0 : tensor<64x1024xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 8, 8>, dimension_semantics = [#arbitrary, #parallel],
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

// Parallel dimensions come first.
module {
  func.func @main(%x: tensor<64x1024xf32>) -> tensor<64x1024xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<64x1024xf32>) -> tensor<64x1024xf32>
    return %0 : tensor<64x1024xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 8, 8>, dimension_semantics = [#parallel, #parallel],
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
