// Dynamic bounds that the outer program shows to be constants become static, and what stays dynamic gets its facts.
// RUN: %mosaic-opt %s --split-input-file -p resolve-grid | FileCheck %s

// Kernels that aren't selected stay as they are.
// RUN: %mosaic-opt %s --split-input-file > %t.before
// RUN: %mosaic-opt %s --split-input-file -p resolve-grid --kernel='stat*' | diff %t.before -

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// The constant's operand goes, and so does its layout.
// CHECK-LABEL: func.func @literal(
// CHECK-SAME:    %[[X:.*]]: tensor<1024x1024xf32>
// CHECK:         stablehlo.custom_call @tpu_custom_call(%[[X]])
// CHECK-SAME:      kernel_name = "copy"
// CHECK-NOT:       mosaic.bounds
// CHECK-SAME:      mosaic.kernel = @[[KERNEL:[a-z_0-9]+]]
// CHECK-SAME:      operand_layouts = [dense<[1, 0]> : tensor<2xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>]
// CHECK-SAME:      : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
// CHECK:         module @[[KERNEL]] attributes {stable_mosaic.version = 15 : i64}
// CHECK:           func.func @copy(
// CHECK-SAME:        dimension_semantics = [#tpu.dimension_semantics<parallel>, #tpu.dimension_semantics<arbitrary>]
// CHECK-SAME:        iteration_bounds = array<i64: 10, 4>
// CHECK-NOT:     module @copy attributes
module {
  func.func @literal(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
    %n = stablehlo.constant dense<10> : tensor<i32>
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {
        mosaic.kernel = @copy, kernel_name = "copy", backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}",
        operand_layouts = [dense<> : tensor<0xindex>, dense<[1, 0]> : tensor<2xindex>],
        result_layouts = [dense<[1, 0]> : tensor<2xindex>]
      } : (tensor<i32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    return %0 : tensor<1024x1024xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808, 4>, dimension_semantics = [#parallel, #arbitrary]} {
      return
    }
  }
}

// -----

// Every way in which JAX writes a constant that is none to look at.
// CHECK-LABEL: func.func @folded(
// CHECK-SAME:    %[[N:[a-z0-9]+]]: tensor<i32>, %[[X:[a-z0-9]+]]: tensor<8x512xf32>
// CHECK:         stablehlo.custom_call @tpu_custom_call(%[[N]], %[[X]])
// CHECK-SAME:      mosaic.bounds = ["dimension 2: %arg0 in [-2147483648, 2147483647]"]
// CHECK-SAME:      mosaic.kernel = @[[KERNEL:[a-z_0-9]+]]
// CHECK-SAME:      : (tensor<i32>, tensor<8x512xf32>) -> tensor<8x512xf32>
// CHECK:         module @[[KERNEL]] attributes
// CHECK:           func.func @copy(
// CHECK-SAME:        iteration_bounds = array<i64: 7, 3, -9223372036854775808, 4, 5, 6, 2, 8, 512, 9>
module {
  func.func @folded(%n: tensor<i32>, %x: tensor<8x512xf32>) -> tensor<8x512xf32> {
    %c-1 = stablehlo.constant dense<-1> : tensor<i32>
    %c0 = stablehlo.constant dense<0> : tensor<i32>
    %c2 = stablehlo.constant dense<2> : tensor<i32>
    %c3 = stablehlo.constant dense<3> : tensor<i32>
    %c4 = stablehlo.constant dense<4> : tensor<i32>
    %c5 = stablehlo.constant dense<5> : tensor<i32>
    %c128 = stablehlo.constant dense<128> : tensor<i32>

    // 7 = ceil(800 / 128), in a private function
    %c800 = stablehlo.constant dense<800> : tensor<i32>
    %seven = func.call @ceil_divide(%c800, %c128) : (tensor<i32>, tensor<i32>) -> tensor<i32>

    // 3 = max(min(n, 3), 3)
    %at_most = stablehlo.minimum %n, %c3 : tensor<i32>
    %three = stablehlo.maximum %at_most, %c3 : tensor<i32>

    // 4 = clamp(4, n, 4)
    %four = stablehlo.clamp %c4, %n, %c4 : tensor<i32>

    // 5 = 2 < 3 ? 5 : n
    %less = stablehlo.compare LT, %c2, %c3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %five = stablehlo.select %less, %c5, %n : tensor<i1>, tensor<i32>

    // 6, by way of another type
    %long = stablehlo.constant dense<6> : tensor<i64>
    %six = stablehlo.convert %long : (tensor<i64>) -> tensor<i32>

    // 2, the last of a table, one dimension up and down again
    %table = stablehlo.constant dense<[9, 2]> : tensor<2xi32>
    %slice = stablehlo.slice %table [1:2] : (tensor<2xi32>) -> tensor<1xi32>
    %two = stablehlo.reshape %slice : (tensor<1xi32>) -> tensor<i32>

    // 8 = one element of a broadcast constant
    %eights = stablehlo.constant dense<8> : tensor<i32>
    %wide = stablehlo.broadcast_in_dim %eights, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %narrow = stablehlo.slice %wide [2:3] : (tensor<4xi32>) -> tensor<1xi32>
    %eight = stablehlo.reshape %narrow : (tensor<1xi32>) -> tensor<i32>

    // 512, a size
    %size = stablehlo.get_dimension_size %x, dim = 1 : (tensor<8x512xf32>) -> tensor<i32>

    // 9 = 2 * 5 - 1
    %product = stablehlo.multiply %c2, %c5 : tensor<i32>
    %nine = stablehlo.add %product, %c-1 : tensor<i32>

    %0 = stablehlo.custom_call @tpu_custom_call(%seven, %three, %n, %four, %five, %six, %two, %eight, %size, %nine, %x) {
        mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"
      } : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>,
           tensor<i32>, tensor<8x512xf32>) -> tensor<8x512xf32>
    return %0 : tensor<8x512xf32>
  }
  // floor_divide as jnp writes it, and ceil by it: -(-a // b)
  func.func private @ceil_divide(%a: tensor<i32>, %b: tensor<i32>) -> tensor<i32> {
    %negative = stablehlo.negate %a : tensor<i32>
    %floor = func.call @floor_divide(%negative, %b) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %0 = stablehlo.negate %floor : tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @floor_divide(%a: tensor<i32>, %b: tensor<i32>) -> tensor<i32> {
    %quotient = stablehlo.divide %a, %b : tensor<i32>
    %sign_a = stablehlo.sign %a : tensor<i32>
    %sign_b = stablehlo.sign %b : tensor<i32>
    %signs_differ = stablehlo.compare NE, %sign_a, %sign_b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %remainder = stablehlo.remainder %a, %b : tensor<i32>
    %c0 = stablehlo.constant dense<0> : tensor<i32>
    %inexact = stablehlo.compare NE, %remainder, %c0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %lower = stablehlo.and %signs_differ, %inexact : tensor<i1>
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %less = stablehlo.subtract %quotient, %c1 : tensor<i32>
    %0 = stablehlo.select %lower, %less, %quotient : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%0: i32, %1: i32, %2: i32, %3: i32, %4: i32, %5: i32, %6: i32, %7: i32, %8: i32, %9: i32,
                    %x: memref<8x512xf32, #tpu.memory_space<vmem>>, %o: memref<8x512xf32, #tpu.memory_space<vmem>>) attributes {
        iteration_bounds = array<i64: -9223372036854775808, -9223372036854775808, -9223372036854775808, -9223372036854775808,
                                      -9223372036854775808, -9223372036854775808, -9223372036854775808, -9223372036854775808,
                                      -9223372036854775808, -9223372036854775808>} {
      return
    }
  }
}

// -----

// Whatever counts operands is renumbered: the bound at 0 is gone, so everything is one less; the bound at 1 stays.
// CHECK-LABEL: func.func @indices(
// CHECK-SAME:    %[[N:[a-z0-9]+]]: tensor<i32>, %[[T:[a-z0-9]+]]: tensor<4xi32>, %[[X:[a-z0-9]+]]: tensor<64x128xf32>, %[[Y:[a-z0-9]+]]: tensor<64x128xf32>
// CHECK:         stablehlo.custom_call @tpu_custom_call(%[[N]], %[[T]], %[[X]], %[[Y]])
// CHECK-SAME:      \22allow_input_fusion\22: [false, false, true, false]
// CHECK-SAME:      \22input_memory_space_colors\22: [{\22operand_index\22: 2, \22color\22: 1}, {\22operand_index\22: 3, \22color\22: 0}]
// CHECK-SAME:      \22output_memory_space_colors\22: [{\22operand_index\22: 0, \22color\22: 1}]
// CHECK-SAME:      has_side_effect = true
// CHECK-SAME:      mhlo.frontend_attributes = {kernel_metadata = "{}"}
// CHECK-SAME:      operand_layouts = [dense<> : tensor<0xindex>, dense<0> : tensor<1xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>]
// CHECK-SAME:      output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 3, operand_tuple_indices = []>]
// CHECK:         iteration_bounds = array<i64: 16, -9223372036854775808>, scalar_prefetch = 1 : i64
module {
  func.func @indices(%n: tensor<i32>, %t: tensor<4xi32>, %x: tensor<64x128xf32>, %y: tensor<64x128xf32>) -> tensor<64x128xf32> {
    %c = stablehlo.constant dense<16> : tensor<i32>
    %0 = stablehlo.custom_call @tpu_custom_call(%c, %n, %t, %x, %y) {
        mosaic.kernel = @add, has_side_effect = true, mhlo.frontend_attributes = {kernel_metadata = "{}"},
        backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22allow_input_fusion\22: [false, false, false, true, false], \22input_memory_space_colors\22: [{\22operand_index\22: 3, \22color\22: 1}, {\22operand_index\22: 4, \22color\22: 0}], \22output_memory_space_colors\22: [{\22operand_index\22: 0, \22color\22: 1}]}}",
        operand_layouts = [dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<0> : tensor<1xindex>,
                           dense<[1, 0]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>],
        result_layouts = [dense<[1, 0]> : tensor<2xindex>],
        output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 4, operand_tuple_indices = []>]
      } : (tensor<i32>, tensor<i32>, tensor<4xi32>, tensor<64x128xf32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    return %0 : tensor<64x128xf32>
  }
  module @add attributes {stable_mosaic.version = 15 : i64} {
    func.func @add(%i: i32, %j: i32, %t: memref<4xi32, #tpu.memory_space<smem>>, %x: memref<64x128xf32, #tpu.memory_space<vmem>>,
                   %y: memref<64x128xf32, #tpu.memory_space<vmem>>, %o: memref<64x128xf32, #tpu.memory_space<vmem>>) attributes {
        iteration_bounds = array<i64: -9223372036854775808, -9223372036854775808>, scalar_prefetch = 1 : i64} {
      return
    }
  }
}

// -----

// `tpu.iteration_bound` of a dimension that became static is its constant, in an index map too; others still ask.
// CHECK-LABEL: func.func @asked(
// CHECK:         iteration_bounds = array<i64: 12, -9223372036854775808>
// CHECK:           %[[BOUND:.*]] = arith.constant 12 : i32
// CHECK:           %[[OTHER:.*]] = tpu.iteration_bound 1 : i32
// CHECK:           arith.cmpi eq, %{{.*}}, %[[BOUND]] : i32
// CHECK:           arith.cmpi eq, %{{.*}}, %[[OTHER]] : i32
// CHECK:         func.func @last(
// CHECK:           %[[BOUND:.*]] = arith.constant 12 : i32
// CHECK-NEXT:      return %[[BOUND]], %{{.*}} : i32, i32
module {
  func.func @asked(%n: tensor<i32>, %x: tensor<64x128xf32>) -> tensor<64x128xf32> {
    %c = stablehlo.constant dense<12> : tensor<i32>
    %0 = stablehlo.custom_call @tpu_custom_call(%c, %n, %x) {
        mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"
      } : (tensor<i32>, tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    return %0 : tensor<64x128xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %j: i32, %x: memref<8x128xf32, #tpu.memory_space<vmem>>, %o: memref<8x128xf32, #tpu.memory_space<vmem>>)
        attributes {iteration_bounds = array<i64: -9223372036854775808, -9223372036854775808>,
                    window_params = [{transform_indices = @last, window_bounds = array<i64: 8, 128>},
                                     {transform_indices = @last, window_bounds = array<i64: 8, 128>}]} {
      %ni = tpu.iteration_bound 0 : i32
      %nj = tpu.iteration_bound 1 : i32
      %0 = arith.cmpi eq, %i, %ni : i32
      %1 = arith.cmpi eq, %j, %nj : i32
      return
    }
    func.func @last(%i: i32, %j: i32) -> (i32, i32) {
      %ni = tpu.iteration_bound 0 : i32
      return %ni, %j : i32, i32
    }
  }
}

// -----

// Launches of one kernel with different constants get a kernel each, those that agree share one, and one that stays
// dynamic keeps the original.
// CHECK-LABEL: func.func @several(
// CHECK:         stablehlo.custom_call @tpu_custom_call(%[[X:[a-z0-9]+]]) {{.*}}mosaic.kernel = @[[FIVE:copy_[0-9]+]]
// CHECK:         stablehlo.custom_call @tpu_custom_call(%{{[a-z0-9]+}}) {{.*}}mosaic.kernel = @[[SIX:copy_[0-9]+]]
// CHECK:         stablehlo.custom_call @tpu_custom_call(%{{[a-z0-9]+}}) {{.*}}mosaic.kernel = @[[FIVE]]}
// CHECK:         stablehlo.custom_call @tpu_custom_call(%{{[a-z0-9]+}}, %{{[a-z0-9]+}}) {{.*}}mosaic.kernel = @copy}
// CHECK:         module @copy attributes
// CHECK:           iteration_bounds = array<i64: -9223372036854775808>
// CHECK:         module @[[FIVE]] attributes
// CHECK:           iteration_bounds = array<i64: 5>
// CHECK:         module @[[SIX]] attributes
// CHECK:           iteration_bounds = array<i64: 6>
// CHECK-NOT:     module @
module {
  func.func @several(%n: tensor<i32>, %x: tensor<64x128xf32>) -> tensor<64x128xf32> {
    %five = stablehlo.constant dense<5> : tensor<i32>
    %six = stablehlo.constant dense<6> : tensor<i32>
    %0 = stablehlo.custom_call @tpu_custom_call(%five, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    %1 = stablehlo.custom_call @tpu_custom_call(%six, %0) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    %2 = stablehlo.custom_call @tpu_custom_call(%five, %1) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    %3 = stablehlo.custom_call @tpu_custom_call(%n, %2) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    return %3 : tensor<64x128xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %x: memref<8x128xf32, #tpu.memory_space<vmem>>, %o: memref<8x128xf32, #tpu.memory_space<vmem>>)
        attributes {iteration_bounds = array<i64: -9223372036854775808>} {
      return
    }
  }
}

// -----

// A launch in a private function that all its callers give the same constant, and one inside a loop.
// CHECK-LABEL: func.func private @inner(
// CHECK:         stablehlo.custom_call @tpu_custom_call(%{{[a-z0-9]+}}) {{.*}}mosaic.kernel = @[[FOUR:copy_[0-9]+]]
// CHECK:       func.func @outer(
// CHECK:         stablehlo.while
// CHECK:           stablehlo.custom_call @tpu_custom_call(%{{[a-z_A-Z0-9]+}}) {{.*}}mosaic.kernel = @[[FOUR]]
// CHECK:         module @[[FOUR]] attributes
// CHECK:           iteration_bounds = array<i64: 4>
module {
  func.func private @inner(%m: tensor<i32>, %x: tensor<64x128xf32>) -> tensor<64x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%m, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    return %0 : tensor<64x128xf32>
  }
  func.func @outer(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {
    %four = stablehlo.constant dense<4> : tensor<i32>
    %0 = func.call @inner(%four, %x) : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    %1 = func.call @inner(%four, %0) : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    %start = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %2:2 = stablehlo.while(%k = %start, %y = %1) : tensor<i32>, tensor<64x128xf32>
      cond {
        %more = stablehlo.compare LT, %k, %four, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      } do {
        %3 = stablehlo.custom_call @tpu_custom_call(%four, %y) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
        %next = stablehlo.add %k, %one : tensor<i32>
        stablehlo.return %next, %3 : tensor<i32>, tensor<64x128xf32>
      }
    return %2#1 : tensor<64x128xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %x: memref<8x128xf32, #tpu.memory_space<vmem>>, %o: memref<8x128xf32, #tpu.memory_space<vmem>>)
        attributes {iteration_bounds = array<i64: -9223372036854775808>} {
      return
    }
  }
}

// -----

// A bound that stays is told in words, in the names its author gave, with range and divisor; a negative constant is left as it is.
// CHECK-LABEL: func.func @dynamic(
// CHECK-SAME:    %[[N:[a-z0-9]+]]: tensor<i32>
// CHECK:         stablehlo.custom_call @tpu_custom_call(
// CHECK-SAME:      mosaic.bounds = ["dimension 0: 4*min(8, max(0, heads)) in [0, 32], a multiple of 4",
// CHECK-SAME:                       "dimension 1: min(7, max(1, lengths[1])) in [1, 7]",
// CHECK-SAME:                       "dimension 2: -3 in [-3, -3]{{.*}}"]
// CHECK-SAME:      mosaic.kernel = @copy
// CHECK:         module @copy attributes
// CHECK:           iteration_bounds = array<i64: -9223372036854775808, -9223372036854775808, -9223372036854775808>
module {
  func.func @dynamic(%n: tensor<i32> loc("heads"), %lengths: tensor<2xi32> loc("lengths"), %x: tensor<64x128xf32>) -> tensor<64x128xf32> {
    %c0 = stablehlo.constant dense<0> : tensor<i32>
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %c4 = stablehlo.constant dense<4> : tensor<i32>
    %c7 = stablehlo.constant dense<7> : tensor<i32>
    %c8 = stablehlo.constant dense<8> : tensor<i32>
    %clamped = stablehlo.clamp %c0, %n, %c8 : tensor<i32>
    %a = stablehlo.multiply %clamped, %c4 : tensor<i32>
    %slice = stablehlo.slice %lengths [1:2] : (tensor<2xi32>) -> tensor<1xi32>
    %length = stablehlo.reshape %slice : (tensor<1xi32>) -> tensor<i32>
    %at_least = stablehlo.maximum %length, %c1 : tensor<i32>
    %b = stablehlo.minimum %at_least, %c7 : tensor<i32>
    %c = stablehlo.constant dense<-3> : tensor<i32>
    %0 = stablehlo.custom_call @tpu_custom_call(%a, %b, %c, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    return %0 : tensor<64x128xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %j: i32, %k: i32, %x: memref<8x128xf32, #tpu.memory_space<vmem>>, %o: memref<8x128xf32, #tpu.memory_space<vmem>>)
        attributes {iteration_bounds = array<i64: -9223372036854775808, -9223372036854775808, -9223372036854775808>} {
      return
    }
  }
}

// -----

// A zero is a constant too: the kernel runs no step. A static kernel is left alone.
// CHECK-LABEL: func.func @zero(
// CHECK:         mosaic.kernel = @[[ZERO:copy_[0-9]+]]
// CHECK:         mosaic.kernel = @static
// CHECK-DAG:     module @static attributes
// CHECK-DAG:     module @[[ZERO]] attributes
// CHECK-DAG:     iteration_bounds = array<i64: 0>
// CHECK-DAG:     iteration_bounds = array<i64: 3>
module {
  func.func @zero(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {
    %c0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.custom_call @tpu_custom_call(%c0, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    %1 = stablehlo.custom_call @tpu_custom_call(%0) {mosaic.kernel = @static, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<64x128xf32>) -> tensor<64x128xf32>
    return %1 : tensor<64x128xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %x: memref<8x128xf32, #tpu.memory_space<vmem>>, %o: memref<8x128xf32, #tpu.memory_space<vmem>>)
        attributes {iteration_bounds = array<i64: -9223372036854775808>} {
      return
    }
  }
  module @static attributes {stable_mosaic.version = 15 : i64} {
    func.func @static(%i: i32, %x: memref<8x128xf32, #tpu.memory_space<vmem>>, %o: memref<8x128xf32, #tpu.memory_space<vmem>>)
        attributes {iteration_bounds = array<i64: 3>} {
      return
    }
  }
}
