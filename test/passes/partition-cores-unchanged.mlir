// What is left alone: the compiler shares it by itself, there is nothing to share, or nobody asked.
// One remark for a program says why; a program in which something is shared has none.
// RUN: %mosaic-opt %s --split-input-file > %t.before
// RUN: %mosaic-opt %s --split-input-file -p 'partition-cores{cores=2}' > %t.after 2> %t.said
// RUN: diff %t.before %t.after
// RUN: FileCheck %s --check-prefix=SAID --input-file %t.said
// SAID-NOT: {{remark|warning|error}}
// SAID: remark: partition-cores changed nothing: the compiler shares dimension 1 by itself ('copy') [nothing-to-share]

// One core has nothing to share, whether the option or the target says so; the option counts.
// RUN: %mosaic-opt %S/partition-cores.mlir --split-input-file > %t.original
// RUN: %mosaic-opt %S/partition-cores.mlir --split-input-file -p 'partition-cores{cores=1}' | diff %t.original -
// RUN: %mosaic-opt %S/partition-cores.mlir --split-input-file -p partition-cores --target=v6e | diff %t.original -
// RUN: %mosaic-opt %S/partition-cores.mlir --split-input-file -p partition-cores --target=v5p:1 | diff %t.original -
// RUN: %mosaic-opt %S/partition-cores.mlir --split-input-file -p 'partition-cores{cores=1}' --target=v5p | diff %t.original -

// Only the selected kernels are looked at: there are kernels `copy` in it, and one `gather`.
// RUN: %mosaic-opt %S/partition-cores.mlir --split-input-file -p partition-cores --kernel='gath*' | FileCheck %s
// CHECK-NOT: copy_cores
// CHECK:     gather_cores2
// CHECK-NOT: copy_cores

// The compiler shares a static parallel dimension of at least two steps, whatever the others are.
module {
  func.func @main(%n: tensor<i32>, %x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    return %0 : tensor<1024x1024xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %j: i32, %x: memref<8x128xf32, #tpu.memory_space<vmem>>, %o: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {
        iteration_bounds = array<i64: -9223372036854775808, 2>, dimension_semantics = [#tpu.dimension_semantics<parallel>, #tpu.dimension_semantics<parallel>],
        window_params = [{transform_indices = @block, window_bounds = array<i64: 8, 128>}, {transform_indices = @block, window_bounds = array<i64: 8, 128>}]} {
      return
    }
    func.func @block(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
  }
}

// -----

// The same where the static one is outside and the dynamic one is not parallel.
module {
  func.func @main(%n: tensor<i32>, %x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    return %0 : tensor<1024x1024xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %j: i32, %x: memref<8x128xf32, #tpu.memory_space<vmem>>, %o: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {
        iteration_bounds = array<i64: 4, -9223372036854775808>, dimension_semantics = [#tpu.dimension_semantics<parallel>, #tpu.dimension_semantics<arbitrary>],
        window_params = [{transform_indices = @block, window_bounds = array<i64: 8, 128>}, {transform_indices = @block, window_bounds = array<i64: 8, 128>}]} {
      return
    }
    func.func @block(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
  }
}

// -----

// A core_parallel dimension of no more steps than there are cores is the compiler's too.
module {
  func.func @main(%n: tensor<i32>, %x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    return %0 : tensor<1024x1024xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %j: i32, %x: memref<8x128xf32, #tpu.memory_space<vmem>>, %o: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {
        iteration_bounds = array<i64: 2, -9223372036854775808>, dimension_semantics = [#tpu.dimension_semantics<core_parallel>, #tpu.dimension_semantics<arbitrary>],
        window_params = [{transform_indices = @block, window_bounds = array<i64: 8, 128>}, {transform_indices = @block, window_bounds = array<i64: 8, 128>}]} {
      return
    }
    func.func @block(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
  }
}

// -----

// The steps of an arbitrary dimension have an order.
module {
  func.func @main(%n: tensor<i32>, %x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    return %0 : tensor<1024x1024xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %j: i32, %x: memref<8x128xf32, #tpu.memory_space<vmem>>, %o: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {
        iteration_bounds = array<i64: -9223372036854775808, 8>, dimension_semantics = [#tpu.dimension_semantics<arbitrary>, #tpu.dimension_semantics<arbitrary>],
        window_params = [{transform_indices = @block, window_bounds = array<i64: 8, 128>}, {transform_indices = @block, window_bounds = array<i64: 8, 128>}]} {
      return
    }
    func.func @block(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
  }
}

// -----

// One step can't be shared.
module {
  func.func @main(%n: tensor<i32>, %x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    return %0 : tensor<1024x1024xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %j: i32, %x: memref<8x128xf32, #tpu.memory_space<vmem>>, %o: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {
        iteration_bounds = array<i64: 1, -9223372036854775808>, dimension_semantics = [#tpu.dimension_semantics<parallel>, #tpu.dimension_semantics<arbitrary>],
        window_params = [{transform_indices = @block, window_bounds = array<i64: 8, 128>}, {transform_indices = @block, window_bounds = array<i64: 8, 128>}]} {
      return
    }
    func.func @block(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
  }
}

// -----

// Without a grid there are no steps; without a launch nobody says what the bounds are.
module {
  func.func @main(%x: tensor<8x128xf32>) -> tensor<8x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @once, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<8x128xf32>) -> tensor<8x128xf32>
    return %0 : tensor<8x128xf32>
  }
  module @once attributes {stable_mosaic.version = 15 : i64} {
    func.func @once(%x: memref<8x128xf32, #tpu.memory_space<vmem>>, %o: memref<8x128xf32, #tpu.memory_space<vmem>>) {
      return
    }
  }
  module @unlaunched attributes {stable_mosaic.version = 15 : i64} {
    func.func @unlaunched(%i: i32) attributes {iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#tpu.dimension_semantics<parallel>]} {
      return
    }
  }
}
