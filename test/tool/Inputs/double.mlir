// A launch of a kernel on a grid (n, 2), n known at run time only; unpacked.
func.func @main(%n: tensor<i32>, %x: tensor<1024x256xf32>) -> tensor<1024x256xf32> {
  %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {
    backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true, \22debug_locations\22: \22\22}}",
    kernel_name = "double", mosaic.kernel = @double,
    operand_layouts = [dense<> : tensor<0xindex>, dense<[1, 0]> : tensor<2xindex>],
    result_layouts = [dense<[1, 0]> : tensor<2xindex>]
  } : (tensor<i32>, tensor<1024x256xf32>) -> tensor<1024x256xf32> loc("step.py":7:11)
  return %0 : tensor<1024x256xf32>
}
module @double attributes {stable_mosaic.version = 15 : i64} {
  func.func @double(%i: i32, %j: i32, %x: memref<8x128xf32, #tpu.memory_space<vmem>>,
                    %o: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {
    dimension_semantics = [#tpu.dimension_semantics<parallel>, #tpu.dimension_semantics<arbitrary>],
    iteration_bounds = array<i64: -9223372036854775808, 2>, scalar_prefetch = 0 : i64, scratch_operands = 0 : i64,
    tpu.core_type = #tpu.core_type<tc>,
    window_params = [{transform_indices = @transform_0, window_bounds = array<i64: 8, 128>},
                     {transform_indices = @transform_1, window_bounds = array<i64: 8, 128>}]
  } {
    %c0 = arith.constant 0 : index
    %0 = vector.load %x[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>
    %1 = arith.addf %0, %0 : vector<8x128xf32> loc("kernel.py":3:5)
    vector.store %1, %o[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>
    return
  }
  func.func @transform_0(%i: i32, %j: i32) -> (i32, i32) {
    return %i, %j : i32, i32
  }
  func.func @transform_1(%i: i32, %j: i32) -> (i32, i32) {
    return %i, %j : i32, i32
  }
}
