// What keeps its loop, and why; each message at the user's line.
// RUN: %mosaic-opt %s --split-input-file --verify-diagnostics -p batch-grid

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>

// An element works on what the one before it has computed.
module {
  func.func public @main(%lengths: tensor<4xi32>, %first: tensor<64x128xf32>) -> tensor<64x128xf32> {
    %start = stablehlo.constant dense<0> : tensor<i32>
    %all:3 = stablehlo.while(%i = %start, %ns = %lengths, %x = %first) : tensor<i32>, tensor<4xi32>, tensor<64x128xf32>
    cond {
      %end = stablehlo.constant dense<4> : tensor<i32>
      %more = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %at = stablehlo.dynamic_slice %ns, %i, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
      %n = stablehlo.reshape %at : (tensor<1xi32>) -> tensor<i32>
      // expected-remark@+2 {{the launches of 'kernel' in a loop can't be made one: value 2 that the loop carries isn't a collection of results of the launch, so an iteration may need what another has computed [not-batched]}}
      // expected-note@+1 {{the loop is left as it was}}
      %y = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
      %step = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %step, %ns, %y : tensor<i32>, tensor<4xi32>, tensor<64x128xf32>
    }
    return %all#2 : tensor<64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#parallel],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %bound = tpu.iteration_bound 0 : i32
      %sum = arith.addi %i, %bound : i32
      %f = arith.sitofp %sum : i32 to f32
      %b = vector.broadcast %f : f32 to vector<8x128xf32>
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      %w = arith.addf %v, %b : vector<8x128xf32>
      vector.store %w, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
    func.func @out(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>

// Scratch holds what the launch before has left.
module {
  func.func public @main(%lengths: tensor<4xi32>, %batch: tensor<4x64x128xf32>) -> tensor<4x64x128xf32> {
    %start = stablehlo.constant dense<0> : tensor<i32>
    %zeros = stablehlo.constant dense<0.0> : tensor<4x64x128xf32>
    %all:4 = stablehlo.while(%i = %start, %ns = %lengths, %xs = %batch, %out = %zeros) : tensor<i32>, tensor<4xi32>, tensor<4x64x128xf32>, tensor<4x64x128xf32>
    cond {
      %end = stablehlo.constant dense<4> : tensor<i32>
      %more = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %at = stablehlo.dynamic_slice %ns, %i, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
      %n = stablehlo.reshape %at : (tensor<1xi32>) -> tensor<i32>
      %slice = stablehlo.dynamic_slice %xs, %i, %zero, %zero, sizes = [1, 64, 128] : (tensor<4x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x128xf32>
      %x = stablehlo.reshape %slice : (tensor<1x64x128xf32>) -> tensor<64x128xf32>
      %y = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22cost_estimate\22: {\22flops\22: 100}}}", operand_layouts = [dense<> : tensor<0xindex>, dense<[1, 0]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>], result_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
      %next = func.call @put(%out, %y, %i) : (tensor<4x64x128xf32>, tensor<64x128xf32>, tensor<i32>) -> tensor<4x64x128xf32>
      %step = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %step, %ns, %xs, %next : tensor<i32>, tensor<4xi32>, tensor<4x64x128xf32>, tensor<4x64x128xf32>
    }
    return %all#3 : tensor<4x64x128xf32>
  }
  func.func private @put(%out: tensor<4x64x128xf32>, %y: tensor<64x128xf32>, %i: tensor<i32>) -> tensor<4x64x128xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %part = stablehlo.broadcast_in_dim %y, dims = [1, 2] : (tensor<64x128xf32>) -> tensor<1x64x128xf32>
    %next = stablehlo.dynamic_update_slice %out, %part, %i, %zero, %zero : (tensor<4x64x128xf32>, tensor<1x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x64x128xf32>
    return %next : tensor<4x64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>, %s: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808>, scratch_operands = 1 : i64, dimension_semantics = [#parallel],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %bound = tpu.iteration_bound 0 : i32
      %sum = arith.addi %i, %bound : i32
      %f = arith.sitofp %sum : i32 to f32
      %b = vector.broadcast %f : f32 to vector<8x128xf32>
      // expected-remark@+2 {{the launches of 'kernel' in a loop can't be made one: scratch operand 0}}
      // expected-note@+1 {{the loop is left as it was}}
      %old = vector.load %s[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %b, %s[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %old, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      %w = arith.addf %v, %b : vector<8x128xf32>
      vector.store %w, %s[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
    func.func @out(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}
