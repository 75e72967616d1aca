// What can't be lowered is an error, which names everything that is in the way.
// RUN: %mosaic-opt %s --split-input-file -p lower-to-cpu --allow-unregistered-dialect --verify-diagnostics

// As it is printed: where the kernel stands, and a note for each operation.
// RUN: %expect-exit 2 %mosaic-opt %s --split-input-file -p lower-to-cpu --allow-unregistered-dialect 2>&1 | FileCheck %s
// CHECK:      {{^}}{{.*}}lower-to-cpu-errors.mlir:{{[0-9]+}}:5: error: the kernel 'odd' can't be lowered for the CPU: 4 operations in it can't{{$}}
// CHECK-NEXT: {{^}}note: {{.*}}lower-to-cpu-errors.mlir:{{[0-9]+}}:12: my.index has no rule{{$}}

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// Every operation without a rule, also in index maps and in regions, and every form that a rule doesn't know.
module {
  func.func @unsupported(%x: tensor<16xf32>) -> tensor<16xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @odd, backend_config = "{}"} : (tensor<16xf32>) -> tensor<16xf32>
    return %0 : tensor<16xf32>
  }
  module @odd attributes {stable_mosaic.version = 15 : i64} {
    // expected-error@+5 {{the kernel 'odd' can't be lowered for the CPU: 4 operations in it can't}}
    // expected-note@+4 {{:40:12: my.index has no rule}}
    // expected-note@+3 {{:28:12: vector.load: a vector that is larger than the memory}}
    // expected-note@+2 {{:31:14: my.vector has no rule}}
    // expected-note@+1 {{:34:12: my.vector has no rule}}
    func.func @odd(%i: i32, %x: memref<8xf32, #vmem>, %o: memref<8xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 2>, dimension_semantics = [#arbitrary],
        window_params = [{transform_indices = @block, window_bounds = array<i64: 8>}, {transform_indices = @block, window_bounds = array<i64: 8>}]} {
      %c0 = arith.constant 0 : index
      %0 = vector.load %x[%c0] : memref<8xf32, #vmem>, vector<16xf32>
      %one = arith.constant 1 : i32
      scf.for %k = %one to %i step %one : i32 {
        %1 = "my.vector"(%0) : (vector<16xf32>) -> vector<8xf32>
        vector.store %1, %o[%c0] : memref<8xf32, #vmem>, vector<8xf32>
      }
      %2 = "my.vector"(%0) : (vector<16xf32>) -> vector<8xf32>
      %3 = arith.addf %2, %2 : vector<8xf32>
      vector.store %3, %o[%c0] : memref<8xf32, #vmem>, vector<8xf32>
      return
    }
    func.func @block(%i: i32) -> i32 {
      %0 = "my.index"(%i) : (i32) -> i32
      return %0 : i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>

// What follows from an operation without a rule, here that the size of some memory isn't known, is no error of its own.
module {
  func.func @unknown_size(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @sized, backend_config = "{}"} : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
  module @sized attributes {stable_mosaic.version = 15 : i64} {
    // expected-error@+2 {{the kernel 'sized' can't be lowered for the CPU: 1 operation in it can't}}
    // expected-note@+1 {{my.memory has no rule}}
    func.func @sized(%x: memref<8xf32, #vmem>, %o: memref<8xf32, #vmem>) {
      %c0 = arith.constant 0 : index
      %0 = "my.memory"(%x) : (memref<8xf32, #vmem>) -> memref<?xf32, #vmem>
      %1 = vector.load %0[%c0] : memref<?xf32, #vmem>, vector<8xf32>
      vector.store %1, %o[%c0] : memref<8xf32, #vmem>, vector<8xf32>
      return
    }
  }
}

// -----

// A bare kernel has no operands: nobody says what its windows are windows of.
// expected-error@+2 {{a bare kernel can't be run}}
// expected-note@+1 {{give the whole lowered program}}
module @bare attributes {stable_mosaic.version = 15 : i64} {
  func.func @bare(%x: memref<8xf32, #tpu.memory_space<vmem>>) attributes {tpu.core_type = #tpu.core_type<tc>} {
    return
  }
}

// -----

#vmem = #tpu.memory_space<vmem>

// Launches that don't fit their kernels: too few operands,
module {
  func.func @operands(%x: tensor<8xf32>) {
    // expected-error@+1 {{this launch doesn't fit @copy: 1 inputs and 0 results for 2 windows}}
    stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @copy, backend_config = "{}"} : (tensor<8xf32>) -> ()
    return
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%x: memref<8xf32, #vmem>, %o: memref<8xf32, #vmem>) {
      return
    }
  }
}

// -----

#smem = #tpu.memory_space<smem>

// a prefetch operand of another shape,
module {
  func.func @prefetch(%t: tensor<4xi32>) {
    // expected-error@+1 {{prefetch operand 0 is tensor<4xi32>, not memref<8xi32, #tpu.memory_space<smem>>}}
    stablehlo.custom_call @tpu_custom_call(%t) {mosaic.kernel = @none, backend_config = "{}"} : (tensor<4xi32>) -> ()
    return
  }
  module @none attributes {stable_mosaic.version = 15 : i64} {
    func.func @none(%t: memref<8xi32, #smem>) attributes {scalar_prefetch = 1 : i64} {
      return
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>

// a whole operand of another shape,
module {
  func.func @whole(%x: tensor<8xf32>) {
    stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @read, backend_config = "{}"} : (tensor<8xf32>) -> ()
    return
  }
  module @read attributes {stable_mosaic.version = 15 : i64} {
    // expected-error@+1 {{a whole operand of @read has another shape than its array: memref<16xf32, #tpu.memory_space<vmem>> of an array of [8]}}
    func.func @read(%x: memref<16xf32, #vmem>) {
      return
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>

// a window of another rank,
module {
  func.func @rank(%x: tensor<8x8xf32>) {
    stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @read, backend_config = "{}"} : (tensor<8x8xf32>) -> ()
    return
  }
  module @read attributes {stable_mosaic.version = 15 : i64} {
    // expected-error@+1 {{a window of [8] can't be one of an array of [8, 8]}}
    func.func @read(%i: i32, %x: memref<8xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 2>, window_params = [{transform_indices = @block, window_bounds = array<i64: 8>}]} {
      return
    }
    func.func @block(%i: i32) -> i32 {
      return %i : i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>

// an index map that isn't there,
module {
  func.func @index_map(%x: tensor<8xf32>) {
    stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @read, backend_config = "{}"} : (tensor<8xf32>) -> ()
    return
  }
  module @read attributes {stable_mosaic.version = 15 : i64} {
    // expected-error@+1 {{the index map @block is not in the kernel}}
    func.func @read(%i: i32, %x: memref<8xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 2>, window_params = [{transform_indices = @block, window_bounds = array<i64: 8>}]} {
      return
    }
  }
}

// -----

// and more steps than a grid index can count.
module {
  func.func @steps() {
    stablehlo.custom_call @tpu_custom_call() {mosaic.kernel = @long, backend_config = "{}"} : () -> ()
    return
  }
  module @long attributes {stable_mosaic.version = 15 : i64} {
    // expected-error@+1 {{dimension 1 of @long can't have 2147483648 steps}}
    func.func @long(%i: i32, %j: i32) attributes {iteration_bounds = array<i64: 2147483647, 2147483648>} {
      return
    }
  }
}
