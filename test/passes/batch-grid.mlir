// A loop over a batch becomes one launch; where the steps may be too many the loop stays for that.
// RUN: %mosaic-opt %s -p batch-grid --contracts '0 <= lengths[*] <= 8' | FileCheck %s --check-prefix=ONE
// RUN: %mosaic-opt %s -p batch-grid | FileCheck %s --check-prefix=GUARDED
// RUN: %mosaic-opt %s -p batch-grid,partition-cores --target=v5p --contracts '1 <= lengths[*] <= 8' | FileCheck %s --check-prefix=CORES

// ONE-LABEL:   func.func public @main(
// ONE-SAME:      %[[NS:.*]]: tensor<4xi32>, %[[XS:.*]]: tensor<4x64x128xf32>)
// ONE-NOT:       stablehlo.while
// ONE-NOT:       slice %[[XS]]
// the steps of all elements together, and the table with the element of each
// ONE:           %[[STEPS:.*]] = stablehlo.maximum %[[NS]], %{{.*}}
// ONE:           %[[STARTS:.*]] = stablehlo.subtract %[[ENDS:.*]], %[[STEPS]]
// ONE:           %[[TABLE:.*]] = stablehlo.concatenate %{{.*}}, %[[STARTS]], %[[STEPS]], dim = 0 : (tensor<32xi32>, tensor<4xi32>, tensor<4xi32>) -> tensor<40xi32>
// ONE:           %[[LAST:.*]] = stablehlo.slice %[[ENDS]] [3:4]
// ONE:           %[[TOTAL:.*]] = stablehlo.reshape %[[LAST]] : (tensor<1xi32>) -> tensor<i32>
// the one launch, of which everything that counts operands and elements follows
// ONE:           %[[R:.*]] = stablehlo.custom_call @tpu_custom_call(%[[TOTAL]], %[[TABLE]], %[[XS]])
// ONE-SAME:        \22cost_estimate\22: {\22flops\22: 400, \22transcendentals\22: 0, \22bytes_accessed\22: 40}
// ONE-SAME:        mosaic.kernel = @kernel_batch4,
// ONE-SAME:        operand_layouts = [dense<> : tensor<0xindex>, dense<0> : tensor<1xindex>, dense<[2, 1, 0]> : tensor<3xindex>],
// ONE-SAME:        output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 2, operand_tuple_indices = []>],
// ONE-SAME:        result_layouts = [dense<[2, 1, 0]> : tensor<3xindex>]
// ONE-NOT:       custom_call
// ONE:           return %[[R]]
// the function that put a result into the batch is gone, and so is the old kernel
// ONE-NOT:     func.func private
// ONE-NOT:     module @kernel attributes
// ONE:         module @kernel_batch4
// ONE:           func.func @kernel(%[[T:[a-z0-9]+]]: i32, %[[TAB:[a-z0-9]+]]: memref<40xi32, #tpu.memory_space<smem>>, %{{.*}}: memref<8x128xf32, {{.*}}>, %{{.*}}: memref<8x128xf32, {{.*}}>)
// ONE-SAME:        iteration_bounds = array<i64: -9223372036854775808>, scalar_prefetch = 1 : i64
// ONE-SAME:        window_bounds = array<i64: 1, 8, 128>
// ONE:             %[[AT:.*]] = arith.index_cast %[[T]]
// ONE:             %[[B:.*]] = memref.load %[[TAB]][%[[AT]]]
// ONE:             %[[START:.*]] = memref.load %[[TAB]]
// ONE:             %[[I:.*]] = arith.subi %[[T]], %[[START]] : i32
// the bound that the kernel asks for is the element's
// ONE:             %[[BOUND:.*]] = memref.load %[[TAB]]
// ONE-NOT:         tpu.iteration_bound
// ONE:             arith.addi %[[I]], %[[BOUND]] : i32
// ONE:           func.func @in(%[[T2:[a-z0-9]+]]: i32, %[[TAB2:[a-z0-9]+]]: memref<40xi32, #tpu.memory_space<smem>>) -> (i32, i32, i32)
// ONE:             %[[B2:.*]] = memref.load %[[TAB2]]
// ONE:             %[[I2:.*]] = arith.subi %[[T2]], %{{.*}} : i32
// ONE:             return %[[B2]], %[[I2]], %{{.*}} : i32, i32, i32

// GUARDED-LABEL: func.func public @main(
// 64 steps an element fit in the table
// GUARDED:         stablehlo.constant dense<2.570000e+02>
// GUARDED:         %[[FITS:.*]] = stablehlo.and
// GUARDED:         %[[INDEX:.*]] = stablehlo.convert %[[FITS]] : (tensor<i1>) -> tensor<i32>
// GUARDED:         "stablehlo.case"(%[[INDEX]]) ({
// GUARDED:           stablehlo.while
// GUARDED:             mosaic.kernel = @kernel,
// GUARDED:         }, {
// GUARDED-NOT:       stablehlo.while
// GUARDED:           mosaic.kernel = @kernel_batch4,
// GUARDED:         }) : (tensor<i32>) -> tensor<4x64x128xf32>

// CORES:         iteration_bounds = array<i64: 2, -9223372036854775808>

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>

module {
  func.func public @main(%lengths: tensor<4xi32> loc("lengths"), %batch: tensor<4x64x128xf32>) -> tensor<4x64x128xf32> {
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
      %y = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true, \22cost_estimate\22: {\22flops\22: 100, \22transcendentals\22: 0, \22bytes_accessed\22: 10}}}", operand_layouts = [dense<> : tensor<0xindex>, dense<[1, 0]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>], result_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
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
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808>, tpu.core_type = #tpu.core_type<tc>, dimension_semantics = [#parallel],
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
