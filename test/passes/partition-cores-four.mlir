// More than two cores: shares differ by one step at most, and a table says where each begins.
// RUN: %mosaic-opt %s --split-input-file -p 'partition-cores{cores=4}' | FileCheck %s
// RUN: %mosaic-opt %s --split-input-file -p 'partition-cores{cores=4}' --target=v5p | FileCheck %s

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// n = 4q + r: core c starts at c * q + min(c, r) and the last entry is n. Every core needs a step: n >= 4.
// CHECK-LABEL: module @balanced
// CHECK:         func.func @main(
// CHECK-SAME:    %[[N:[a-z0-9]+]]: tensor<i32>, %[[X:[a-z0-9]+]]: tensor<1024x384xf32>
// CHECK:         %[[FOUR:.*]] = stablehlo.constant dense<4> : tensor<i32>
// CHECK-NEXT:    stablehlo.compare GE, %[[N]], %[[FOUR]]
// CHECK:         stablehlo.case
// CHECK:           mosaic.kernel = @copy}
//                  the longest share is ceil(n/4)
// CHECK:           stablehlo.subtract %[[N]],
// CHECK:           stablehlo.divide
// CHECK:           %[[SHARE:.*]] = stablehlo.add
// CHECK:           %[[Q:.*]] = stablehlo.divide %[[N]], %{{.*}}
// CHECK:           %[[PRODUCT:.*]] = stablehlo.multiply %[[Q]], %{{.*}}
// CHECK:           %[[R:.*]] = stablehlo.subtract %[[N]], %[[PRODUCT]]
// CHECK:           %[[TWO:.*]] = stablehlo.constant dense<2> : tensor<i32>
// CHECK-DAG:       %[[LONGER:.*]] = stablehlo.minimum %[[R]], %[[TWO]]
// CHECK-DAG:       %[[EVEN:.*]] = stablehlo.multiply %[[Q]], %{{.*}}
// CHECK:           %[[FIRST2:.*]] = stablehlo.add %[[EVEN]], %[[LONGER]]
// CHECK:           %[[ENTRY2:.*]] = stablehlo.reshape %[[FIRST2]]
// CHECK:           %[[TABLE:.*]] = stablehlo.concatenate %{{.*}}, %{{.*}}, %[[ENTRY2]], %{{.*}}, %{{.*}}, dim = 0 : {{.*}} -> tensor<5xi32>
// CHECK:           stablehlo.custom_call @tpu_custom_call(%[[SHARE]], %[[TABLE]], %[[X]])
// CHECK:         module @copy_cores4
// CHECK:           func.func @copy(%[[CORE:[a-z0-9]+]]: i32, %[[K:[a-z0-9]+]]: i32, %{{[a-z0-9]+}}: i32, %[[TABLE:[a-z0-9]+]]: memref<5xi32, #tpu.memory_space<smem>>,
// CHECK-SAME:        iteration_bounds = array<i64: 4, -9223372036854775808, 3>
// CHECK:             %[[AT:.*]] = arith.index_cast %[[CORE]]
// CHECK:             %[[FIRST:.*]] = memref.load %[[TABLE]][%[[AT]]]
// CHECK:             %[[STEP:.*]] = arith.addi %[[FIRST]], %[[K]] : i32
// CHECK:             %[[ONE:.*]] = arith.constant 1 : index
// CHECK:             %[[NEXT:.*]] = arith.addi %{{.*}}, %[[ONE]] : index
// CHECK:             %[[END:.*]] = memref.load %[[TABLE]][%[[NEXT]]]
// CHECK:             %[[LAST:.*]] = arith.subi %[[END]], %{{.*}} : i32
// CHECK:             arith.cmpi sle, %[[STEP]], %[[LAST]] : i32
// CHECK:             scf.if
// CHECK:           func.func @block(
// CHECK:             %[[I:.*]] = arith.minsi
// CHECK:             return %[[I]], %{{.*}} : i32, i32
module @balanced {
  func.func @main(%n: tensor<i32>, %x: tensor<1024x384xf32>) -> tensor<1024x384xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}"} : (tensor<i32>, tensor<1024x384xf32>) -> tensor<1024x384xf32>
    return %0 : tensor<1024x384xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        tpu.core_type = #tpu.core_type<tc>, iteration_bounds = array<i64: -9223372036854775808, 3>, dimension_semantics = [#parallel, #arbitrary],
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
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// A fused dimension of 8 steps multiplies shares and entries, and `tpu.iteration_bound` gets n behind the entries.
// CHECK-LABEL: module @fused
// CHECK:         func.func @main(
// CHECK:         %[[EIGHT:.*]] = stablehlo.constant dense<8> : tensor<i32>
// CHECK:         stablehlo.multiply %{{.*}}, %[[EIGHT]] : tensor<i32>
// CHECK:         stablehlo.concatenate {{.*}} -> tensor<6xi32>
// CHECK:         iteration_bounds = array<i64: 4, -9223372036854775808>, scalar_prefetch = 1 : i64
// CHECK:         %[[FIVE:.*]] = arith.constant 5 : index
// CHECK:         memref.load %{{.*}}[%[[FIVE]]] : memref<6xi32, #tpu.memory_space<smem>>
module @fused {
  func.func @main(%n: tensor<i32>, %x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}"} : (tensor<i32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    return %0 : tensor<1024x1024xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        tpu.core_type = #tpu.core_type<tc>, iteration_bounds = array<i64: -9223372036854775808, 8>, dimension_semantics = [#parallel, #arbitrary],
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
#parallel = #tpu.dimension_semantics<parallel>

// A multiple of 4 needs no table, no guard and no choice.
// CHECK-LABEL: module @even
// CHECK:         func.func @main(
// CHECK-NOT:     stablehlo.case
// CHECK:         stablehlo.custom_call @tpu_custom_call(%{{[a-z0-9]+}}, %{{[a-z0-9]+}})
// CHECK:         iteration_bounds = array<i64: 4, -9223372036854775808>
// CHECK-NOT:     scf.if
// CHECK-NOT:     arith.minsi
// CHECK:         return
module @even {
  func.func @main(%n: tensor<i32>, %x: tensor<1024x128xf32>) -> tensor<1024x128xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %four = stablehlo.constant dense<4> : tensor<i32>
    %many = stablehlo.constant dense<32> : tensor<i32>
    %m = stablehlo.clamp %zero, %n, %many : tensor<i32>
    %groups = stablehlo.multiply %m, %four : tensor<i32>
    %0 = stablehlo.custom_call @tpu_custom_call(%groups, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}"} : (tensor<i32>, tensor<1024x128xf32>) -> tensor<1024x128xf32>
    return %0 : tensor<1024x128xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        tpu.core_type = #tpu.core_type<tc>, iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#parallel],
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
