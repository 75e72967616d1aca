// What a launch becomes: a function that steps through the grid, with every buffer a tensor that the loop carries.
// RUN: %mosaic-opt %s --split-input-file -p lower-to-cpu | FileCheck %s

// Only launches of the kernels that are selected are lowered.
// RUN: %mosaic-opt %s --split-input-file -p lower-to-cpu --kernel=copy | FileCheck %s --check-prefix=ONE
// ONE-NOT: = call @
// ONE:     mosaic.kernel = @double
// ONE:     module @double
// ONE:     = call @copy.cpu(
// ONE-NOT: = call @
// ONE:     mosaic.kernel = @sum
// ONE-NOT: = call @

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>
#parallel = #tpu.dimension_semantics<parallel>

// A static grid that has a step in each dimension: the last dimension is the fastest, and carries into the first. The
// input is read anew at each step, and the output's block goes back at its end: both have another one each time.
// CHECK-LABEL: func.func @static(
// CHECK-SAME:    %[[ARG:.*]]: tensor<16x256xf32>
// CHECK-NEXT:    %[[R:.*]] = call @double.cpu(%[[ARG]]) : (tensor<16x256xf32>) -> tensor<16x256xf32>
// CHECK-NEXT:    return %[[R]]
// CHECK-NOT:   module
// CHECK:       func.func private @double.cpu(
// CHECK-SAME:    %[[X:.*]]: tensor<16x256xf32>
// CHECK:         %[[NAN:.*]] = stablehlo.constant dense<0x7FC00000> : tensor<16x256xf32>
// CHECK-NOT:     stablehlo.select
// CHECK:         %[[END:.*]]:3 = stablehlo.while(%[[I:.*]] = %{{.*}}, %[[J:.*]] = %{{.*}}, %[[O:.*]] = %[[NAN]]) : tensor<i32>, tensor<i32>, tensor<16x256xf32>
// CHECK:           %[[N:.*]] = stablehlo.constant dense<2> : tensor<i32>
// CHECK:           stablehlo.compare LT, %[[I]], %[[N]]
// CHECK:         do
// CHECK:           %[[BLOCK:.*]] = stablehlo.dynamic_slice %[[X]], %{{.*}}, %{{.*}}, sizes = [8, 128]
// CHECK:           %[[SUM:.*]] = stablehlo.add %[[BLOCK]], %[[BLOCK]]
// CHECK-NOT:       stablehlo.while
// CHECK:           %[[WRITTEN:.*]] = stablehlo.dynamic_update_slice %[[O]], %[[SUM]],
// CHECK:           %[[NEXT_J:.*]] = stablehlo.add %[[J]],
// CHECK:           %[[LAST:.*]] = stablehlo.compare GE, %[[NEXT_J]],
// CHECK:           %[[NEW_J:.*]] = stablehlo.select %[[LAST]], %{{.*}}, %[[NEXT_J]]
// CHECK:           %[[CARRY:.*]] = stablehlo.convert %[[LAST]] : (tensor<i1>) -> tensor<i32>
// CHECK:           %[[NEW_I:.*]] = stablehlo.add %[[I]], %[[CARRY]]
// CHECK:           stablehlo.return %[[NEW_I]], %[[NEW_J]], %[[WRITTEN]]
// CHECK:         return %[[END]]#2
module {
  func.func @static(%x: tensor<16x256xf32>) -> tensor<16x256xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @double, backend_config = "{}"} : (tensor<16x256xf32>) -> tensor<16x256xf32>
    return %0 : tensor<16x256xf32>
  }
  module @double attributes {stable_mosaic.version = 15 : i64} {
    func.func @double(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 2, 2>, dimension_semantics = [#parallel, #arbitrary],
        window_params = [{transform_indices = @block, window_bounds = array<i64: 8, 128>}, {transform_indices = @block, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %0 = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      %1 = arith.addf %0, %0 : vector<8x128xf32>
      vector.store %1, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
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

// A dynamic bound is an operand. Where some dimension is empty, the first counter starts at its end.
// CHECK-LABEL: func.func private @copy.cpu(
// CHECK-SAME:    %[[N:.*]]: tensor<i32>, %[[M:.*]]: tensor<i32>, %[[X:.*]]: tensor<64xf32>
// CHECK:         %[[EMPTY_N:.*]] = stablehlo.compare LE, %[[N]],
// CHECK:         %[[EMPTY_M:.*]] = stablehlo.compare LE, %[[M]],
// CHECK-DAG:     %[[EMPTY:.*]] = stablehlo.or %[[EMPTY_N]], %[[EMPTY_M]]
// CHECK-DAG:     %[[PAST:.*]] = stablehlo.maximum %[[N]],
// CHECK:         %[[START:.*]] = stablehlo.select %[[EMPTY]], %[[PAST]],
// CHECK:         stablehlo.while(%[[I:[^ ]*]] = %[[START]],
// CHECK:           stablehlo.compare LT, %[[I]], %[[N]]
module {
  func.func @dynamic(%n: tensor<i32>, %m: tensor<i32>, %x: tensor<64xf32>) -> tensor<64xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %m, %x) {mosaic.kernel = @copy, backend_config = "{}"} : (tensor<i32>, tensor<i32>, tensor<64xf32>) -> tensor<64xf32>
    return %0 : tensor<64xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %j: i32, %x: memref<8xf32, #vmem>, %o: memref<8xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808, -9223372036854775808>, dimension_semantics = [#parallel, #parallel],
        window_params = [{transform_indices = @block, window_bounds = array<i64: 8>}, {transform_indices = @block, window_bounds = array<i64: 8>}]} {
      %c0 = arith.constant 0 : index
      %0 = vector.load %x[%c0] : memref<8xf32, #vmem>, vector<8xf32>
      vector.store %0, %o[%c0] : memref<8xf32, #vmem>, vector<8xf32>
      return
    }
    func.func @block(%i: i32, %j: i32) -> i32 {
      %0 = arith.addi %i, %j : i32
      return %0 : i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// Windows that stay. A constant one comes in before the loop, one that doesn't follow the fastest dimension comes in when
// its index changes: on a condition there is a loop of one round or none. The output's block, summed up along the fastest
// dimension, is kept with its index; it goes back when another takes its place, which starts with nothing, and after the
// last step.
// CHECK-LABEL: func.func private @sum.cpu(
// CHECK-SAME:    %[[X:.*]]: tensor<16xf32>, %[[Y:.*]]: tensor<64xf32>
// CHECK:         %[[O:.*]] = stablehlo.constant dense<0x7FC00000> : tensor<64xf32>
// CHECK:         %[[RESIDENT:.*]] = stablehlo.slice %[[X]] [8:16]
// CHECK:         %[[END:.*]]:7 = stablehlo.while(
// CHECK-SAME:      %[[Y_BUFFER:[^ ]*]] = %{{[^ ]*}}, %[[Y_INDEX:[^ ]*]] = %{{[^ ]*}}, %[[O_BUFFER:[^ ]*]] = %{{[^ ]*}}, %[[O_INDEX:[^ ]*]] = %{{[^ ]*}}, %[[O_ARRAY:[^ ]*]] = %[[O]])
// CHECK:         do
// CHECK:           %[[O_MOVED:.*]] = stablehlo.compare NE, %{{.*}}, %[[O_INDEX]]
// CHECK:           %[[O_HELD:.*]] = stablehlo.compare NE, %[[O_INDEX]],
// CHECK:           %[[FLUSHES:.*]] = stablehlo.and %[[O_MOVED]], %[[O_HELD]]
// CHECK:           stablehlo.while(%{{[^ ]*}} = %[[FLUSHES]], %[[FLUSHED:[^ ]*]] = %[[O_ARRAY]])
// CHECK:             stablehlo.dynamic_update_slice %[[FLUSHED]], %[[O_BUFFER]],
// CHECK:           stablehlo.while(%{{[^ ]*}} = %[[O_MOVED]], %{{[^ ]*}} = %{{[^ ]*}})
// CHECK:             %[[FRESH:.*]] = stablehlo.constant dense<0x7FC00000> : tensor<8xf32>
// CHECK:             stablehlo.return %{{.*}}, %[[FRESH]]
// CHECK:           %[[Y_MOVED:.*]] = stablehlo.compare NE, %{{.*}}, %[[Y_INDEX]]
// CHECK:           %[[Y_NOW:.*]]:2 = stablehlo.while(%{{[^ ]*}} = %[[Y_MOVED]], %{{[^ ]*}} = %[[Y_BUFFER]])
// CHECK:             %[[Y_BLOCK:.*]] = stablehlo.dynamic_slice %[[Y]],
// CHECK:             stablehlo.return %{{.*}}, %[[Y_BLOCK]]
// CHECK:           stablehlo.multiply %[[RESIDENT]], %[[Y_NOW]]#1
// CHECK:         %[[HELD:.*]] = stablehlo.compare NE, %[[END]]#5,
// CHECK:         stablehlo.while(%{{[^ ]*}} = %[[HELD]], %[[LAST:[^ ]*]] = %[[END]]#6)
// CHECK:           stablehlo.dynamic_update_slice %[[LAST]], %[[END]]#4,
module {
  func.func @held(%x: tensor<16xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x, %y) {mosaic.kernel = @sum, backend_config = "{}"} : (tensor<16xf32>, tensor<64xf32>) -> tensor<64xf32>
    return %0 : tensor<64xf32>
  }
  module @sum attributes {stable_mosaic.version = 15 : i64} {
    func.func @sum(%i: i32, %j: i32, %x: memref<8xf32, #vmem>, %y: memref<8xf32, #vmem>, %o: memref<8xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 8, 3>, dimension_semantics = [#arbitrary, #arbitrary],
        window_params = [{transform_indices = @second, window_bounds = array<i64: 8>}, {transform_indices = @outer, window_bounds = array<i64: 8>}, {transform_indices = @outer, window_bounds = array<i64: 8>}]} {
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0 : i32
      %first = arith.cmpi eq, %j, %zero : i32
      scf.if %first {
        %zeros = arith.constant dense<0.0> : vector<8xf32>
        vector.store %zeros, %o[%c0] : memref<8xf32, #vmem>, vector<8xf32>
      }
      %0 = vector.load %x[%c0] : memref<8xf32, #vmem>, vector<8xf32>
      %1 = vector.load %y[%c0] : memref<8xf32, #vmem>, vector<8xf32>
      %2 = vector.load %o[%c0] : memref<8xf32, #vmem>, vector<8xf32>
      %3 = arith.mulf %0, %1 : vector<8xf32>
      %4 = arith.addf %2, %3 : vector<8xf32>
      vector.store %4, %o[%c0] : memref<8xf32, #vmem>, vector<8xf32>
      return
    }
    func.func @second(%i: i32, %j: i32) -> i32 {
      %one = arith.constant 1 : i32
      return %one : i32
    }
    func.func @outer(%i: i32, %j: i32) -> i32 {
      return %i : i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>

// A block that sticks out of its array is whole in an array that is padded with what nobody wrote; a window that is counted
// in elements may stick out before it as well. The padding is cut off at the end.
// CHECK-LABEL: func.func private @edge.cpu(
// CHECK-SAME:    %[[X:.*]]: tensor<20xf32>, %[[Y:.*]]: tensor<20xf32>
// CHECK:         %[[X_WHOLE:.*]] = stablehlo.pad %[[X]], %{{.*}}, low = [0], high = [4], interior = [0]
// CHECK:         %[[Y_WHOLE:.*]] = stablehlo.pad %[[Y]], %{{.*}}, low = [2], high = [3], interior = [0]
// CHECK:         %[[O:.*]] = stablehlo.constant dense<0x7FC00000> : tensor<24xf32>
// CHECK:         %[[END:.*]]:2 = stablehlo.while(%[[I:[^ ]*]] = %{{[^ ]*}}, %{{[^ ]*}} = %[[O]])
// CHECK:           stablehlo.dynamic_slice %[[X_WHOLE]],
// CHECK:           stablehlo.dynamic_slice %[[Y_WHOLE]], %[[I]],
// CHECK:         stablehlo.slice %[[END]]#1 [0:20]
module {
  func.func @cut(%x: tensor<20xf32>, %y: tensor<20xf32>) -> tensor<20xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x, %y) {mosaic.kernel = @edge, backend_config = "{}"} : (tensor<20xf32>, tensor<20xf32>) -> tensor<20xf32>
    return %0 : tensor<20xf32>
  }
  module @edge attributes {stable_mosaic.version = 15 : i64} {
    func.func @edge(%i: i32, %x: memref<8xf32, #vmem>, %y: memref<8xf32, #vmem>, %o: memref<8xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 3>, dimension_semantics = [#parallel],
        window_params = [{transform_indices = @block, window_bounds = array<i64: 8>}, {transform_indices = @block, window_bounds = array<i64: 8>, window_kind = #tpu.element_window<[2], [3]>}, {transform_indices = @block, window_bounds = array<i64: 8>}]} {
      %c0 = arith.constant 0 : index
      %0 = vector.load %x[%c0] : memref<8xf32, #vmem>, vector<8xf32>
      %1 = vector.load %y[%c0] : memref<8xf32, #vmem>, vector<8xf32>
      %2 = arith.addf %0, %1 : vector<8xf32>
      vector.store %2, %o[%c0] : memref<8xf32, #vmem>, vector<8xf32>
      return
    }
    func.func @block(%i: i32) -> i32 {
      return %i : i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// A result that takes the place of an operand is the same array: the loop carries one, which starts as the operand.
// CHECK-LABEL: func.func private @scale.cpu(
// CHECK-SAME:    %[[X:.*]]: tensor<16xf32>
// CHECK-NOT:     dense<0x7FC00000> : tensor<16xf32>
// CHECK:         %[[END:.*]]:{{.*}} = stablehlo.while({{.*}}, %[[ARRAY:[^ ]*]] = %[[X]])
// CHECK:           %[[SAME:.*]]:2 = stablehlo.while({{.*}}, %[[WRITTEN:[^ ]*]] = %[[ARRAY]])
// CHECK:             stablehlo.dynamic_update_slice %[[WRITTEN]],
// CHECK:           %[[READ:.*]]:2 = stablehlo.optimization_barrier %[[SAME]]#1,
// CHECK:           stablehlo.dynamic_slice %[[READ]]#0,
// CHECK-NOT:     dense<0x7FC00000> : tensor<16xf32>
// CHECK:         return
module {
  func.func @in_place(%x: tensor<16xf32>) -> tensor<16xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @scale, backend_config = "{}", output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]} : (tensor<16xf32>) -> tensor<16xf32>
    return %0 : tensor<16xf32>
  }
  module @scale attributes {stable_mosaic.version = 15 : i64} {
    func.func @scale(%i: i32, %x: memref<8xf32, #vmem>, %o: memref<8xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 2>, dimension_semantics = [#arbitrary],
        window_params = [{transform_indices = @block, window_bounds = array<i64: 8>}, {transform_indices = @block, window_bounds = array<i64: 8>}]} {
      %c0 = arith.constant 0 : index
      %0 = vector.load %x[%c0] : memref<8xf32, #vmem>, vector<8xf32>
      %1 = arith.addf %0, %0 : vector<8xf32>
      vector.store %1, %o[%c0] : memref<8xf32, #vmem>, vector<8xf32>
      return
    }
    func.func @block(%i: i32) -> i32 {
      return %i : i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// Launches of one kernel share a function, wherever they stand; each other form of launch has one of its own.
// CHECK-LABEL: func.func @several(
// CHECK:         %[[FIRST:.*]] = call @id.cpu(%{{.*}}) : (tensor<16xf32>) -> tensor<16xf32>
// CHECK:         stablehlo.while(%[[LOOPED:.*]] = %[[FIRST]])
// CHECK:           func.call @id.cpu(%[[LOOPED]]) : (tensor<16xf32>) -> tensor<16xf32>
// CHECK:         call @id.cpu_0(%{{.*}}) : (tensor<24xf32>) -> tensor<24xf32>
// CHECK-NOT:   module
// CHECK:       func.func private @id.cpu(
// CHECK:       func.func private @id.cpu_0(
// CHECK-NOT:   func.func
module {
  func.func @several(%x: tensor<16xf32>, %y: tensor<24xf32>) -> (tensor<16xf32>, tensor<24xf32>) {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @id, backend_config = "{}"} : (tensor<16xf32>) -> tensor<16xf32>
    %1 = stablehlo.while(%z = %0) : tensor<16xf32> cond {
      %never = stablehlo.constant dense<false> : tensor<i1>
      stablehlo.return %never : tensor<i1>
    } do {
      %3 = stablehlo.custom_call @tpu_custom_call(%z) {mosaic.kernel = @id, backend_config = "{}"} : (tensor<16xf32>) -> tensor<16xf32>
      stablehlo.return %3 : tensor<16xf32>
    }
    %2 = stablehlo.custom_call @tpu_custom_call(%y) {mosaic.kernel = @id, backend_config = "{}"} : (tensor<24xf32>) -> tensor<24xf32>
    return %1, %2 : tensor<16xf32>, tensor<24xf32>
  }
  module @id attributes {stable_mosaic.version = 15 : i64} {
    func.func @id(%i: i32, %x: memref<8xf32, #vmem>, %o: memref<8xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 2>, dimension_semantics = [#arbitrary],
        window_params = [{transform_indices = @block, window_bounds = array<i64: 8>}, {transform_indices = @block, window_bounds = array<i64: 8>}]} {
      %c0 = arith.constant 0 : index
      %0 = vector.load %x[%c0] : memref<8xf32, #vmem>, vector<8xf32>
      vector.store %0, %o[%c0] : memref<8xf32, #vmem>, vector<8xf32>
      return
    }
    func.func @block(%i: i32) -> i32 {
      return %i : i32
    }
  }
}
