// A core_parallel dimension that the compiler refuses: its bound is dynamic, or more than there are cores.
// RUN: %mosaic-opt %s --split-input-file -p 'partition-cores{cores=2}' | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: %mosaic-opt %s --split-input-file -p 'partition-cores{cores=4}' | FileCheck %s --check-prefixes=CHECK,FOUR

// On one core every core_parallel dimension is a loop.
// RUN: %mosaic-opt %s --split-input-file -p partition-cores --target=v6e | FileCheck %s --check-prefix=ONE
// ONE-NOT:       core_parallel
// ONE-COUNT-4:   tpu_custom_call
// ONE-NOT:       core_parallel

#vmem = #tpu.memory_space<vmem>
#core_parallel = #tpu.dimension_semantics<core_parallel>

// Where a core would have no step the whole grid runs on one core: the original would be refused there too.
// CHECK-LABEL: module @dynamic
// CHECK:         func.func @main(
// CHECK:         "stablehlo.case"
// CHECK:           mosaic.kernel = @[[SERIAL:copy_serial]]}
// CHECK:           mosaic.kernel = @[[SHARED:copy_cores[24][a-z0-9_]*]]}
// CHECK-NOT:     module @copy attributes
// CHECK-DAG:     module @[[SERIAL]] attributes
// CHECK-DAG:       dimension_semantics = [#tpu.dimension_semantics<arbitrary>], iteration_bounds = array<i64: -9223372036854775808>
// CHECK-DAG:     module @[[SHARED]] attributes
// TWO-DAG:         dimension_semantics = [#tpu.dimension_semantics<core_parallel>, #tpu.dimension_semantics<arbitrary>], iteration_bounds = array<i64: 2, -9223372036854775808>
// FOUR-DAG:        dimension_semantics = [#tpu.dimension_semantics<core_parallel>, #tpu.dimension_semantics<arbitrary>], iteration_bounds = array<i64: 4, -9223372036854775808>
module @dynamic {
  func.func @main(%n: tensor<i32>, %x: tensor<1024x128xf32>) -> tensor<1024x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}"} : (tensor<i32>, tensor<1024x128xf32>) -> tensor<1024x128xf32>
    return %0 : tensor<1024x128xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        tpu.core_type = #tpu.core_type<tc>, iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#core_parallel],
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
#core_parallel = #tpu.dimension_semantics<core_parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// 9 steps of 3: all is static, so there is neither a choice nor a table nor an operand more. Two cores get 5 and 4,
// four get 3, 2, 2 and 2. `tpu.iteration_bound` of the dimension is 9.
// CHECK-LABEL: module @too_many
// CHECK:         func.func @main(
// CHECK-NOT:     stablehlo.case
// CHECK:         stablehlo.custom_call @tpu_custom_call(%{{[a-z0-9]+}}) {{.*}}mosaic.kernel = @[[KERNEL:[a-z0-9_]+]]}
// CHECK:         module @[[KERNEL]] attributes
// CHECK:           func.func @copy(%[[CORE:[a-z0-9]+]]: i32, %[[K:[a-z0-9]+]]: i32, %{{[a-z0-9]+}}: i32, %{{[a-z0-9]+}}: memref<8x128xf32,
// TWO-SAME:          iteration_bounds = array<i64: 2, 5, 3>
// FOUR-SAME:         iteration_bounds = array<i64: 4, 3, 3>
// CHECK:             %[[ASKED:.*]] = arith.constant 9 : i32
// TWO:               %[[SHARE:.*]] = arith.constant 5 : i32
// TWO:               %[[FIRST:.*]] = arith.muli %[[CORE]], %[[SHARE]] : i32
// TWO:               %[[STEP:.*]] = arith.addi %[[FIRST]], %[[K]] : i32
// TWO:               %[[LAST:.*]] = arith.constant 8 : i32
// TWO:               arith.cmpi sle, %[[STEP]], %[[LAST]] : i32
//                    first = 2 * core + min(core, 1); the length is 3 for core 0 and 2 for the others
// FOUR:              %[[TWICE:.*]] = arith.muli %[[CORE]], %{{.*}} : i32
// FOUR:              %[[LONGER:.*]] = arith.minsi %[[CORE]], %{{.*}} : i32
// FOUR:              arith.addi %[[TWICE]], %[[LONGER]] : i32
// FOUR:              %[[IS_LONGER:.*]] = arith.cmpi slt, %[[CORE]], %{{.*}} : i32
// FOUR:              arith.select %[[IS_LONGER]], %{{.*}}, %{{.*}} : i32
// FOUR:              arith.cmpi sle
// CHECK:             scf.if
// CHECK:               arith.index_cast %[[ASKED]]
module @too_many {
  func.func @main(%x: tensor<72x384xf32>) -> tensor<72x384xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}"} : (tensor<72x384xf32>) -> tensor<72x384xf32>
    return %0 : tensor<72x384xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        tpu.core_type = #tpu.core_type<tc>, iteration_bounds = array<i64: 9, 3>, dimension_semantics = [#core_parallel, #arbitrary],
        window_params = [{transform_indices = @block, window_bounds = array<i64: 8, 128>}, {transform_indices = @block, window_bounds = array<i64: 8, 128>}]} {
      %n = tpu.iteration_bound 0 : i32
      %0 = arith.index_cast %n : i32 to index
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @block(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#core_parallel = #tpu.dimension_semantics<core_parallel>
#parallel = #tpu.dimension_semantics<parallel>

// 8 steps are an even share for both: no guard. The static parallel dimension inside, of 4, is counted along.
// CHECK-LABEL: module @even
// CHECK:         func.func @main(
// CHECK-NOT:     stablehlo.case
// TWO:           iteration_bounds = array<i64: 2, 16>
// FOUR:          iteration_bounds = array<i64: 4, 8>
// CHECK-NOT:     scf.if
// CHECK:         func.func @block(
module @even {
  func.func @main(%x: tensor<64x512xf32>) -> tensor<64x512xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}"} : (tensor<64x512xf32>) -> tensor<64x512xf32>
    return %0 : tensor<64x512xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        tpu.core_type = #tpu.core_type<tc>, iteration_bounds = array<i64: 8, 4>, dimension_semantics = [#core_parallel, #parallel],
        window_params = [{transform_indices = @block, window_bounds = array<i64: 8, 128>}, {transform_indices = @block, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @block(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#core_parallel = #tpu.dimension_semantics<core_parallel>

// 2 steps are what two cores take. Of four some would be without a step, which the compiler refuses: they become a loop.
// CHECK-LABEL: module @too_few
// CHECK-NOT:     stablehlo.case
// CHECK:         module @copy attributes
// TWO:             dimension_semantics = [#tpu.dimension_semantics<core_parallel>], iteration_bounds = array<i64: 2>
// FOUR:            dimension_semantics = [#tpu.dimension_semantics<arbitrary>], iteration_bounds = array<i64: 2>
module @too_few {
  func.func @main(%x: tensor<16x128xf32>) -> tensor<16x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}"} : (tensor<16x128xf32>) -> tensor<16x128xf32>
    return %0 : tensor<16x128xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        tpu.core_type = #tpu.core_type<tc>, iteration_bounds = array<i64: 2>, dimension_semantics = [#core_parallel],
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
