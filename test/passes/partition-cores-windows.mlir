// Windows of every kind around a shared dimension: by element, squeezed, whole in SMEM, or left in HBM.
// RUN: %mosaic-opt %s -p 'partition-cores{cores=2}' | FileCheck %s

#vmem = #tpu.memory_space<vmem>
#smem = #tpu.memory_space<smem>
#any = #tpu.memory_space<any>
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// An index map that is an attribute, as JAX writes it for an operand that is handed over whole, counts the new dimensions;
// windows without one stay. What else a window says of itself is kept.
// CHECK:      #[[WHOLE:map[0-9]*]] = affine_map<(d0, d1, d2) -> (0)>
// CHECK:      module @windows_cores2_d0
// CHECK:        func.func @windows(
// CHECK-SAME:     %{{[a-z0-9]+}}: i32, %{{[a-z0-9]+}}: i32, %{{[a-z0-9]+}}: i32, %{{[a-z0-9]+}}: memref<1xi32, #tpu.memory_space<smem>>,
// CHECK-SAME:     %{{[a-z0-9]+}}: memref<8x128xf32, #tpu.memory_space<vmem>>, %{{[a-z0-9]+}}: memref<8x128xf32, #tpu.memory_space<vmem>>,
// CHECK-SAME:     %{{[a-z0-9]+}}: memref<4xi32, #tpu.memory_space<smem>>, %{{[a-z0-9]+}}: memref<64x128xf32, #tpu.memory_space<any>>, %[[OUT:[a-z0-9]+]]: memref<8x128xf32, #tpu.memory_space<vmem>>)
// CHECK-SAME:     window_params = [{transform_indices = @elements, window_bounds = array<i64: 8, 128>, window_kind = #tpu.element_window<[0, 0], [0, 0]>},
// CHECK-SAME:       {pipeline_mode = #tpu.pipeline_mode<double_buffered>, transform_indices = @squeezed, window_bounds = array<i64: 1, 8, 128>},
// CHECK-SAME:       {transform_indices = #[[WHOLE]]}, {}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]
// CHECK:        func.func @elements(
// CHECK:          arith.minsi
// CHECK:        func.func @squeezed(
// CHECK:          arith.minsi
// CHECK:        func.func @out(
// CHECK:          arith.minsi
module {
  func.func @main(%n: tensor<i32>, %x: tensor<1032x384xf32>, %y: tensor<128x8x384xf32>, %t: tensor<4xi32>, %z: tensor<64x128xf32>) -> tensor<1024x384xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x, %y, %t, %z) {mosaic.kernel = @windows, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}"}
      : (tensor<i32>, tensor<1032x384xf32>, tensor<128x8x384xf32>, tensor<4xi32>, tensor<64x128xf32>) -> tensor<1024x384xf32>
    return %0 : tensor<1024x384xf32>
  }
  module @windows attributes {stable_mosaic.version = 15 : i64} {
    func.func @windows(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %y: memref<8x128xf32, #vmem>, %t: memref<4xi32, #smem>,
                       %z: memref<64x128xf32, #any>, %o: memref<8x128xf32, #vmem>) attributes {
        tpu.core_type = #tpu.core_type<tc>, iteration_bounds = array<i64: -9223372036854775808, 3>, dimension_semantics = [#parallel, #arbitrary],
        window_params = [{transform_indices = @elements, window_bounds = array<i64: 8, 128>, window_kind = #tpu.element_window<[0, 0], [0, 0]>},
                         {transform_indices = @squeezed, window_bounds = array<i64: 1, 8, 128>, pipeline_mode = #tpu.pipeline_mode<double_buffered>},
                         {transform_indices = affine_map<(i, j) -> (0)>}, {}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      %w = vector.load %y[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      %s = memref.load %t[%c0] : memref<4xi32, #smem>
      %f = arith.sitofp %s : i32 to f32
      %b = vector.broadcast %f : f32 to vector<8x128xf32>
      %0 = arith.addf %v, %w : vector<8x128xf32>
      %1 = arith.addf %0, %b : vector<8x128xf32>
      vector.store %1, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @elements(%i: i32, %j: i32) -> (i32, i32) {
      %eight = arith.constant 8 : i32
      %lane = arith.constant 128 : i32
      %row = arith.muli %i, %eight : i32
      %column = arith.muli %j, %lane : i32
      return %row, %column : i32, i32
    }
    func.func @squeezed(%i: i32, %j: i32) -> (i32, i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero, %j : i32, i32, i32
    }
    func.func @out(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
  }
}
