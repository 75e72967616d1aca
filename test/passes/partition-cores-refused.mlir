// What can't be shared is said why, and left as it was.
// RUN: %mosaic-opt %s --split-input-file -p 'partition-cores{cores=2}' --verify-diagnostics
// RUN: %mosaic-opt %s --split-input-file > %t.before
// RUN: %mosaic-opt %s --split-input-file -p 'partition-cores{cores=2}' 2> %t.said | diff %t.before -
// RUN: FileCheck %s < %t.said

// Once more as it is printed: a remark with its name, and a note.
// CHECK:      {{^}}{{.*}}partition-cores-refused.mlir:{{[0-9]+}}:{{[0-9]+}}: remark: the kernel 'sum' can't be shared between cores along dimension 0:
// CHECK-SAME:   [not-partitioned]{{$}}
// CHECK-NEXT: {{^}}{{.*}}note: the kernel is left as it was{{$}}

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>

// A running sum in scratch, set to zero in the first step only, crosses the dimension.
module {
  func.func @carried(%n: tensor<i32>, %x: tensor<1024x128xf32>) -> tensor<1024x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @sum, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<1024x128xf32>) -> tensor<1024x128xf32>
    return %0 : tensor<1024x128xf32>
  }
  module @sum attributes {stable_mosaic.version = 15 : i64} {
    func.func @sum(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>, %sum: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#parallel], scratch_operands = 1 : i64,
        window_params = [{transform_indices = @block, window_bounds = array<i64: 8, 128>}, {transform_indices = @block, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0 : i32
      %first = arith.cmpi eq, %i, %zero : i32
      scf.if %first {
        %zeros = arith.constant dense<0.0> : vector<8x128xf32>
        vector.store %zeros, %sum[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      }
      // expected-remark@+2 {{the kernel 'sum' can't be shared between cores along dimension 0: {{.*}}is initialised only where grid index 0 is 0}}
      // expected-note@+1 {{the kernel is left as it was}}
      %old = vector.load %sum[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      %new = arith.addf %old, %v : vector<8x128xf32>
      vector.store %new, %sum[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %new, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @block(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// Two steps of the parallel dimension write one block: it is not parallel, whatever its author called it.
module {
  func.func @race(%n: tensor<i32>, %x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @last, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    return %0 : tensor<1024x1024xf32>
  }
  module @last attributes {stable_mosaic.version = 15 : i64} {
    func.func @last(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808, 8>, dimension_semantics = [#parallel, #arbitrary],
        window_params = [{transform_indices = @block, window_bounds = array<i64: 8, 128>}, {transform_indices = @row, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @block(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
    // expected-remark@+3 {{the kernel 'last' can't be shared between cores along dimension 0: parallel dimension 0 is a race: steps (0, 0) and (1, 0) write the same block (0, 0) of output 0}}
    // expected-note@+2 {{the kernel is left as it was}}
    // expected-note@+1 {{dimension 1 can be shared instead: the steps are proved independent, so call it parallel, or run infer-parallel first}}
    func.func @row(%i: i32, %j: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %zero, %j : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>

// A launch that belongs to a collective: its kernel talks to other devices.
module {
  func.func @collective(%n: tensor<i32>, %x: tensor<1024x128xf32>) -> tensor<1024x128xf32> {
    // expected-remark@+2 {{the kernel 'copy' can't be shared between cores along dimension 0: the launch says that its kernel communicates}}
    // expected-note@+1 {{the kernel is left as it was}}
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22has_communication\22: true, \22collective_id\22: 0}}"} : (tensor<i32>, tensor<1024x128xf32>) -> tensor<1024x128xf32>
    return %0 : tensor<1024x128xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#parallel],
        window_params = [{transform_indices = @block, window_bounds = array<i64: 8, 128>}, {transform_indices = @block, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @block(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>

// A barrier with other cores.
module {
  func.func @barrier(%n: tensor<i32>, %x: tensor<1024x128xf32>) -> tensor<1024x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<1024x128xf32>) -> tensor<1024x128xf32>
    return %0 : tensor<1024x128xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#parallel],
        window_params = [{transform_indices = @block, window_bounds = array<i64: 8, 128>}, {transform_indices = @block, window_bounds = array<i64: 8, 128>}]} {
      // expected-remark@+2 {{the kernel 'copy' can't be shared between cores along dimension 0: tpu.sem_barrier}}
      // expected-note@+1 {{the kernel is left as it was}}
      %barrier = tpu.sem_barrier : memref<!tpu.semaphore, #tpu.memory_space<semaphore_mem>>
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @block(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>

// An index map that is an attribute and depends on the grid isn't rewritten.
module {
  func.func @affine(%n: tensor<i32>, %x: tensor<1024x128xf32>) -> tensor<1024x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<1024x128xf32>) -> tensor<1024x128xf32>
    return %0 : tensor<1024x128xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    // expected-remark@+2 {{the kernel 'copy' can't be shared between cores along dimension 0: an index map is an affine map over the grid, which isn't rewritten}}
    // expected-note@+1 {{the kernel is left as it was}}
    func.func @copy(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#parallel],
        window_params = [{transform_indices = affine_map<(i) -> (i, 0)>, window_bounds = array<i64: 8, 128>}, {transform_indices = affine_map<(i) -> (i, 0)>, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>

// Nor is a function that the kernel calls, which matters where it asks for a bound.
module {
  func.func @called(%n: tensor<i32>, %x: tensor<1024x128xf32>) -> tensor<1024x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<1024x128xf32>) -> tensor<1024x128xf32>
    return %0 : tensor<1024x128xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#parallel],
        window_params = [{transform_indices = @block, window_bounds = array<i64: 8, 128>}, {transform_indices = @block, window_bounds = array<i64: 8, 128>}]} {
      %n = func.call @bound() : () -> i32
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    // expected-remark@+2 {{the kernel 'copy' can't be shared between cores along dimension 0: the function @bound asks for a bound of the grid, and only index maps are rewritten}}
    // expected-note@+1 {{the kernel is left as it was}}
    func.func @bound() -> i32 {
      %n = tpu.iteration_bound 0 : i32
      return %n : i32
    }
    func.func @block(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}
