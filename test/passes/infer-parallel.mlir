// Dimensions whose steps are proved independent are called parallel; of the others it is said why not.
// RUN: %mosaic-opt %s --split-input-file -p infer-parallel --verify-diagnostics
// RUN: %mosaic-opt %s --split-input-file -p infer-parallel 2> %t.said | FileCheck %s
// RUN: FileCheck %s --check-prefix=SAID < %t.said

// A dynamic dimension that was marked is then shared.
// RUN: %mosaic-opt %s --split-input-file -p 'infer-parallel,partition-cores{cores=2}' 2> %t.ignored | FileCheck %s --check-prefix=SHARED

// Once more as it is printed: at the user's line, with its name and its notes.
// SAID:      {{^}}{{.*}}infer-parallel.mlir:{{[0-9]+}}:{{[0-9]+}}: remark: dimensions 0 and 1 of 'matmul' are marked parallel:
// SAID-SAME:   [marked-parallel]{{$}}
// SAID-NEXT: {{^}}note: to say so in the source: dimension_semantics=("parallel", "parallel", "arbitrary"){{$}}
// SAID-NEXT: {{^}}{{.*}}infer-parallel.mlir:{{[0-9]+}}:{{[0-9]+}}: remark: dimension 2 of 'matmul' stays arbitrary:
// SAID-SAME:   [not-parallel]{{$}}

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// A sum over the last dimension, in the output's block: the other two are parallel.
// CHECK-LABEL: module @matmul
// CHECK:       func.func @matmul
// CHECK-SAME:    dimension_semantics = [#tpu.dimension_semantics<parallel>, #tpu.dimension_semantics<parallel>, #tpu.dimension_semantics<arbitrary>]
// CHECK-SAME:    iteration_bounds = array<i64: 4, 4, 2>
module {
  func.func @main(%x: tensor<32x256xf32>) -> tensor<32x512xf32> {
    // expected-remark@+2 {{dimensions 0 and 1 of 'matmul' are marked parallel: the steps are proved independent}}
    // expected-note@+1 {{to say so in the source: dimension_semantics=("parallel", "parallel", "arbitrary")}}
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @matmul, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}"} : (tensor<32x256xf32>) -> tensor<32x512xf32>
    return %0 : tensor<32x512xf32>
  }
  module @matmul attributes {stable_mosaic.version = 15 : i64} {
    func.func @matmul(%i: i32, %j: i32, %k: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 4, 4, 2>, dimension_semantics = [#arbitrary, #arbitrary, #arbitrary], tpu.core_type = #tpu.core_type<tc>,
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0 : i32
      %first = arith.cmpi eq, %k, %zero : i32
      scf.if %first {
        %zeros = arith.constant dense<0.0> : vector<8x128xf32>
        tpu.vector_store %o[%c0, %c0], %zeros {strides = array<i32>} : memref<8x128xf32, #vmem>, vector<8x128xf32>,
      }
      // expected-remark@+1 {{dimension 2 of 'matmul' stays arbitrary: output 0 is initialised only where grid index 2 is 0, so its value crosses dimension 2: step (0, 0, 1) finds what step (0, 0, 0) left}}
      %old = vector.load %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      %new = arith.addf %old, %v : vector<8x128xf32>
      tpu.vector_store %o[%c0, %c0], %new {strides = array<i32>} : memref<8x128xf32, #vmem>, vector<8x128xf32>,
      return
    }
    func.func @in(%i: i32, %j: i32, %k: i32) -> (i32, i32) {
      return %i, %k : i32, i32
    }
    // expected-note@+1 {{and steps (0, 0, 0) and (0, 0, 1) write the same block (0, 0) of output 0}}
    func.func @out(%i: i32, %j: i32, %k: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// A dynamic dimension around one of one step: both are marked, and partition-cores shares the dynamic one.
// CHECK-LABEL: module @copy
// CHECK:       dimension_semantics = [#tpu.dimension_semantics<parallel>, #tpu.dimension_semantics<parallel>]
// SHARED:      iteration_bounds = array<i64: 2, 1, -9223372036854775808>
module {
  func.func @main(%n: tensor<i32>, %x: tensor<1024x128xf32>) -> tensor<1024x128xf32> {
    // expected-remark@+2 {{dimensions 0 and 1 of 'copy' are marked parallel}}
    // expected-note@+1 {{to say so in the source}}
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}"} : (tensor<i32>, tensor<1024x128xf32>) -> tensor<1024x128xf32>
    return %0 : tensor<1024x128xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%j: i32, %i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 1, -9223372036854775808>, dimension_semantics = [#arbitrary, #arbitrary], tpu.core_type = #tpu.core_type<tc>,
        window_params = [{transform_indices = @block, window_bounds = array<i64: 8, 128>}, {transform_indices = @block, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      tpu.vector_store %o[%c0, %c0], %v {strides = array<i32>} : memref<8x128xf32, #vmem>, vector<8x128xf32>,
      return
    }
    func.func @block(%j: i32, %i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}
