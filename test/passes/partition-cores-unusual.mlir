// Launches and kernels of a form that no JAX version writes are left alone, and it is said why.
// RUN: %mosaic-opt %s --split-input-file --verify-diagnostics -p 'partition-cores{cores=2}' --unpacked -o /dev/null

module {
  func.func public @main(%n: tensor<i64>) -> tensor<64x128xf32> {
    // expected-remark@+1 {{the bound of dimension 0 is a tensor<i64>, not a tensor<i32> [not-partitioned]}} expected-note@+1 {{the kernel is left as it was}}
    %0 = stablehlo.custom_call @tpu_custom_call(%n) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i64>) -> tensor<64x128xf32>
    return %0 : tensor<64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %o: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {dimension_semantics = [#tpu.dimension_semantics<parallel>], iteration_bounds = array<i64: -9223372036854775808>, scalar_prefetch = 0 : i64, scratch_operands = 0 : i64, tpu.core_type = #tpu.core_type<tc>, window_params = [{transform_indices = @transform_0, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %zero = arith.constant dense<0.0> : vector<8x128xf32>
      tpu.vector_store %o[%c0, %c0], %zero {strides = array<i32>} : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>,
      return
    }
    func.func @transform_0(%i: i32) -> (i32, i32) {
      %c0 = arith.constant 0 : i32
      return %i, %c0 : i32, i32
    }
  }
}

// -----

module {
  func.func public @main(%n: tensor<i32>) -> tuple<tensor<64x128xf32>, tensor<64x128xf32>> {
    // expected-remark@+1 {{its result is a tuple<tensor<64x128xf32>, tensor<64x128xf32>>, not a tensor [not-partitioned]}} expected-note@+1 {{the kernel is left as it was}}
    %0 = stablehlo.custom_call @tpu_custom_call(%n) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>) -> tuple<tensor<64x128xf32>, tensor<64x128xf32>>
    return %0 : tuple<tensor<64x128xf32>, tensor<64x128xf32>>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %o: memref<8x128xf32, #tpu.memory_space<vmem>>, %p: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {dimension_semantics = [#tpu.dimension_semantics<parallel>], iteration_bounds = array<i64: -9223372036854775808>, scalar_prefetch = 0 : i64, scratch_operands = 0 : i64, tpu.core_type = #tpu.core_type<tc>, window_params = [{transform_indices = @transform_0, window_bounds = array<i64: 8, 128>}, {transform_indices = @transform_0, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %zero = arith.constant dense<0.0> : vector<8x128xf32>
      tpu.vector_store %o[%c0, %c0], %zero {strides = array<i32>} : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>,
      return
    }
    func.func @transform_0(%i: i32) -> (i32, i32) {
      %c0 = arith.constant 0 : i32
      return %i, %c0 : i32, i32
    }
  }
}

// -----

module {
  func.func public @main(%n: tensor<i32>) -> (tensor<64x128xf32>, tensor<i32>) {
    // expected-remark@+1 {{the bound of dimension 0 is aliased by an output [not-partitioned]}} expected-note@+1 {{the kernel is left as it was}}
    %0:2 = stablehlo.custom_call @tpu_custom_call(%n) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}", output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [1], operand_index = 0, operand_tuple_indices = []>]} : (tensor<i32>) -> (tensor<64x128xf32>, tensor<i32>)
    return %0#0, %0#1 : tensor<64x128xf32>, tensor<i32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %o: memref<8x128xf32, #tpu.memory_space<vmem>>, %p: memref<1xi32, #tpu.memory_space<smem>>) attributes {dimension_semantics = [#tpu.dimension_semantics<parallel>], iteration_bounds = array<i64: -9223372036854775808>, scalar_prefetch = 0 : i64, scratch_operands = 0 : i64, tpu.core_type = #tpu.core_type<tc>, window_params = [{transform_indices = @transform_0, window_bounds = array<i64: 8, 128>}, {}]} {
      %c0 = arith.constant 0 : index
      %zero = arith.constant dense<0.0> : vector<8x128xf32>
      tpu.vector_store %o[%c0, %c0], %zero {strides = array<i32>} : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>,
      return
    }
    func.func @transform_0(%i: i32) -> (i32, i32) {
      %c0 = arith.constant 0 : i32
      return %i, %c0 : i32, i32
    }
  }
}

// -----

module {
  func.func public @main(%n: tensor<i32>) -> tensor<64x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>) -> tensor<64x128xf32>
    return %0 : tensor<64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %o: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {dimension_semantics = [#tpu.dimension_semantics<parallel>], iteration_bounds = array<i64: -9223372036854775808>, scalar_prefetch = 0 : i64, scratch_operands = 0 : i64, tpu.core_type = #tpu.core_type<tc>, window_params = [{transform_indices = @transform_0, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %zero = arith.constant dense<0.0> : vector<8x128xf32>
      tpu.vector_store %o[%c0, %c0], %zero {strides = array<i32>} : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>,
      return
    }
    func.func @transform_0(%i: i32) -> (i32, i32) {
      %c0 = arith.constant 0 : i32
      %j = func.call @mirror(%i) : (i32) -> i32
      return %j, %c0 : i32, i32
    }
    // expected-remark@+1 {{the function @mirror asks for a bound of the grid, and only index maps are rewritten [not-partitioned]}} expected-note@+1 {{the kernel is left as it was}}
    func.func @mirror(%i: i32) -> i32 {
      %n = tpu.iteration_bound 0 : i32
      %last = arith.subi %n, %i : i32
      return %last : i32
    }
  }
}

// -----

// Where the fault itself has no place, the remark stands at the kernel's first line.
// expected-remark@"kernel.py":7 {{its result is a tuple<tensor<64x128xf32>>, not a tensor [not-partitioned]}} expected-note@"kernel.py":7 {{the kernel is left as it was}}
module {
  func.func public @main(%n: tensor<i32>) -> tuple<tensor<64x128xf32>> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>) -> tuple<tensor<64x128xf32>> loc(unknown)
    return %0 : tuple<tensor<64x128xf32>>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %o: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {dimension_semantics = [#tpu.dimension_semantics<parallel>], iteration_bounds = array<i64: -9223372036854775808>, scalar_prefetch = 0 : i64, scratch_operands = 0 : i64, tpu.core_type = #tpu.core_type<tc>, window_params = [{transform_indices = @transform_0, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index loc(unknown)
      %zero = arith.constant dense<0.0> : vector<8x128xf32> loc("kernel.py":7:3)
      tpu.vector_store %o[%c0, %c0], %zero {strides = array<i32>} : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>,
      return
    } loc(unknown)
    func.func @transform_0(%i: i32) -> (i32, i32) {
      %c0 = arith.constant 0 : i32
      return %i, %c0 : i32, i32
    }
  } loc(unknown)
}
