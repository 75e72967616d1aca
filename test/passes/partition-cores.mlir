// A dynamic parallel dimension becomes a static core_parallel one around a loop over each core's share, on two cores.
// RUN: %mosaic-opt %s --split-input-file -p 'partition-cores{cores=2}' | FileCheck %s
// RUN: %mosaic-opt %s --split-input-file -p partition-cores --target=v5p | FileCheck %s

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// Nothing is known of n: the launch picks the original where a core would have no step, or a step count would wrap.
// CHECK-LABEL: module @guarded
// CHECK:         func.func @main(
// CHECK-SAME:    %[[N:[a-z0-9]+]]: tensor<i32>, %[[X:[a-z0-9]+]]: tensor<1024x384xf32>
// CHECK-DAG:     %[[MOST:.*]] = stablehlo.constant dense<2147483645> : tensor<i32>
// CHECK-DAG:     %[[FITS:.*]] = stablehlo.compare LE, %[[N]], %[[MOST]]
// CHECK-DAG:     %[[TWO:.*]] = stablehlo.constant dense<2> : tensor<i32>
// CHECK-DAG:     %[[ENOUGH:.*]] = stablehlo.compare GE, %[[N]], %[[TWO]]
// CHECK:         %[[BOTH:.*]] = stablehlo.and %[[FITS]], %[[ENOUGH]]
// CHECK-DAG:     %[[ONE:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-DAG:     %[[ZERO:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK:         %[[CHOICE:.*]] = stablehlo.select %[[BOTH]], %[[ONE]], %[[ZERO]]
// CHECK:         %[[RESULT:.*]] = "stablehlo.case"(%[[CHOICE]]) ({
// CHECK-NEXT:      %[[ORIGINAL:.*]] = stablehlo.custom_call @tpu_custom_call(%[[N]], %[[X]]) {{.*}}mosaic.kernel = @copy}
// CHECK-NEXT:      stablehlo.return %[[ORIGINAL]]
// CHECK-NEXT:    }, {
//                  the share is ceil(n/2) = (n-1)/2 + 1, the last step n-1
// CHECK:           %[[LESS:.*]] = stablehlo.subtract %[[N]], %{{.*}}
// CHECK:           %[[HALF:.*]] = stablehlo.divide %[[LESS]], %{{.*}}
// CHECK:           %[[SHARE:.*]] = stablehlo.add %[[HALF]], %{{.*}}
// CHECK:           %[[LAST:.*]] = stablehlo.subtract %[[N]], %{{.*}}
// CHECK:           %[[TABLE:.*]] = stablehlo.reshape %[[LAST]] : (tensor<i32>) -> tensor<1xi32>
// CHECK:           %[[SHARED:.*]] = stablehlo.custom_call @tpu_custom_call(%[[SHARE]], %[[TABLE]], %[[X]]) {{.*}}mosaic.kernel = @[[KERNEL:[a-z0-9_]+]]}
// CHECK-SAME:        : (tensor<i32>, tensor<1xi32>, tensor<1024x384xf32>) -> tensor<1024x384xf32>
// CHECK-NEXT:      stablehlo.return %[[SHARED]]
// CHECK:         return %[[RESULT]]
// CHECK:         module @copy attributes
// CHECK:           iteration_bounds = array<i64: -9223372036854775808, 3>
// CHECK:         module @[[KERNEL]] attributes {stable_mosaic.version = 15 : i64}
// CHECK:           func.func @copy(%[[CORE:[a-z0-9]+]]: i32, %[[K:[a-z0-9]+]]: i32, %{{[a-z0-9]+}}: i32, %[[TABLE:[a-z0-9]+]]: memref<1xi32, #tpu.memory_space<smem>>,
// CHECK-SAME:        dimension_semantics = [#tpu.dimension_semantics<core_parallel>, #tpu.dimension_semantics<arbitrary>, #tpu.dimension_semantics<arbitrary>]
// CHECK-SAME:        iteration_bounds = array<i64: 2, -9223372036854775808, 3>
// CHECK-SAME:        scalar_prefetch = 1 : i64
// CHECK-DAG:         %[[SHARE:.*]] = tpu.iteration_bound 1 : i32
// CHECK-DAG:         %[[FIRST:.*]] = arith.muli %[[CORE]], %[[SHARE]] : i32
// CHECK-DAG:         %[[STEP:.*]] = arith.addi %[[FIRST]], %[[K]] : i32
// CHECK-DAG:         %[[LAST:.*]] = memref.load %[[TABLE]]
// CHECK:             %[[VALID:.*]] = arith.cmpi sle, %[[STEP]], %[[LAST]] : i32
// CHECK:             scf.if %[[VALID]] {
// CHECK:               vector.load
// CHECK:               vector.store
// CHECK-NEXT:        }
// CHECK-NEXT:        return
//                  beyond its end a core asks for its last block again: (last, 2)
// CHECK:           func.func @block(%[[CORE:[a-z0-9]+]]: i32, %[[K:[a-z0-9]+]]: i32, %[[J:[a-z0-9]+]]: i32, %[[TABLE:[a-z0-9]+]]: memref<1xi32, #tpu.memory_space<smem>>) -> (i32, i32)
// CHECK-DAG:         %[[SHARE:.*]] = tpu.iteration_bound 1 : i32
// CHECK-DAG:         %[[FIRST:.*]] = arith.muli %[[CORE]], %[[SHARE]] : i32
// CHECK-DAG:         %[[STEP:.*]] = arith.addi %[[FIRST]], %[[K]] : i32
// CHECK-DAG:         %[[LAST:.*]] = memref.load %[[TABLE]]
// CHECK-DAG:         %[[I:.*]] = arith.minsi %[[STEP]], %[[LAST]] : i32
// CHECK-DAG:         %[[VALID:.*]] = arith.cmpi sle, %[[STEP]], %[[LAST]] : i32
// CHECK-DAG:         %[[END:.*]] = arith.constant 2 : i32
// CHECK-DAG:         %[[INNER:.*]] = arith.select %[[VALID]], %[[J]], %[[END]] : i32
// CHECK:             return %[[I]], %[[INNER]] : i32, i32
module @guarded {
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

// n >= 2 is proved: there is no choice, and the original kernel is gone.
// CHECK-LABEL: module @enough
// CHECK:         func.func @main(
// CHECK-NOT:     stablehlo.case
// CHECK:         stablehlo.custom_call @tpu_custom_call(
// CHECK-SAME:      mosaic.kernel = @[[KERNEL:[a-z0-9_]+]]}
// CHECK:         return
// CHECK-NOT:     module @copy attributes
// CHECK:         module @[[KERNEL]] attributes
// CHECK:           iteration_bounds = array<i64: 2, -9223372036854775808>, scalar_prefetch = 1 : i64
// CHECK:           scf.if
module @enough {
  func.func @main(%n: tensor<i32>, %x: tensor<1024x128xf32>) -> tensor<1024x128xf32> {
    %two = stablehlo.constant dense<2> : tensor<i32>
    %many = stablehlo.constant dense<128> : tensor<i32>
    %m = stablehlo.clamp %two, %n, %many : tensor<i32>
    %0 = stablehlo.custom_call @tpu_custom_call(%m, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}"} : (tensor<i32>, tensor<1024x128xf32>) -> tensor<1024x128xf32>
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

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// n = 2m is even and at most 128, and zero is: no step lies beyond a share's end, so nothing is guarded or clamped, and
// there is no table. Without steps both cores have none.
// CHECK-LABEL: module @even
// CHECK:         func.func @main(
// CHECK-NOT:     stablehlo.case
// CHECK:         %[[N:.*]] = stablehlo.multiply
// CHECK:         %[[SHARE:.*]] = stablehlo.divide %[[N]],
// CHECK:         stablehlo.custom_call @tpu_custom_call(%[[SHARE]], %{{[a-z0-9]+}}) {{.*}} : (tensor<i32>, tensor<1024x384xf32>)
// CHECK:         iteration_bounds = array<i64: 2, -9223372036854775808, 3>, scalar_prefetch = 0 : i64
// CHECK-NOT:       scf.if
// CHECK:         func.func @block(%[[CORE:[a-z0-9]+]]: i32, %[[K:[a-z0-9]+]]: i32, %[[J:[a-z0-9]+]]: i32) -> (i32, i32)
// CHECK-NEXT:      %[[SHARE:.*]] = tpu.iteration_bound 1 : i32
// CHECK-NEXT:      %[[FIRST:.*]] = arith.muli %[[CORE]], %[[SHARE]] : i32
// CHECK-NEXT:      %[[I:.*]] = arith.addi %[[FIRST]], %[[K]] : i32
// CHECK-NEXT:      return %[[I]], %[[J]] : i32, i32
module @even {
  func.func @main(%n: tensor<i32>, %x: tensor<1024x384xf32>) -> tensor<1024x384xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %two = stablehlo.constant dense<2> : tensor<i32>
    %many = stablehlo.constant dense<64> : tensor<i32>
    %m = stablehlo.clamp %zero, %n, %many : tensor<i32>
    %double = stablehlo.multiply %m, %two : tensor<i32>
    %0 = stablehlo.custom_call @tpu_custom_call(%double, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}"} : (tensor<i32>, tensor<1024x384xf32>) -> tensor<1024x384xf32>
    return %0 : tensor<1024x384xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        tpu.core_type = #tpu.core_type<tc>, iteration_bounds = array<i64: -9223372036854775808, 3>, dimension_semantics = [#parallel, #arbitrary], scalar_prefetch = 0 : i64,
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

// Inner dimensions whose bounds are powers of two are counted along: 2 of 4 and 8 are a shift and a mask each.
// CHECK-LABEL: module @fused
// CHECK:         func.func @main(
// CHECK:         stablehlo.constant dense<67108861> : tensor<i32>
// CHECK:         stablehlo.case
// CHECK:         iteration_bounds = array<i64: 2, -9223372036854775808>, scalar_prefetch = 1 : i64
// CHECK:         func.func @block(%{{[a-z0-9]+}}: i32, %{{[a-z0-9]+}}: i32, %{{[a-z0-9]+}}: memref<1xi32, #tpu.memory_space<smem>>) -> (i32, i32, i32)
// CHECK:           %[[STEP:.*]] = arith.minsi
// CHECK-DAG:       %[[SEVEN:.*]] = arith.constant 7 : i32
// CHECK-DAG:       %[[K:.*]] = arith.andi %[[STEP]], %[[SEVEN]] : i32
// CHECK-DAG:       %[[THREE:.*]] = arith.constant 3 : i32
// CHECK-DAG:       %[[REST:.*]] = arith.shr{{[us]}}i %[[STEP]], %[[THREE]] : i32
// CHECK-DAG:       %[[J:.*]] = arith.andi %[[REST]], %{{.*}} : i32
// CHECK-DAG:       %[[TWO:.*]] = arith.constant 2 : i32
// CHECK-DAG:       %[[I:.*]] = arith.shr{{[us]}}i %[[REST]], %[[TWO]] : i32
// CHECK:           return %[[I]], %[[J]], %[[K]] : i32, i32, i32
module @fused {
  func.func @main(%n: tensor<i32>, %x: tensor<128x32x1024xf32>) -> tensor<128x32x1024xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}"} : (tensor<i32>, tensor<128x32x1024xf32>) -> tensor<128x32x1024xf32>
    return %0 : tensor<128x32x1024xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %j: i32, %k: i32, %x: memref<8x8x128xf32, #vmem>, %o: memref<8x8x128xf32, #vmem>) attributes {
        tpu.core_type = #tpu.core_type<tc>, iteration_bounds = array<i64: -9223372036854775808, 4, 8>, dimension_semantics = [#parallel, #arbitrary, #arbitrary],
        window_params = [{transform_indices = @block, window_bounds = array<i64: 8, 8, 128>}, {transform_indices = @block, window_bounds = array<i64: 8, 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0, %c0] : memref<8x8x128xf32, #vmem>, vector<8x8x128xf32>
      vector.store %v, %o[%c0, %c0, %c0] : memref<8x8x128xf32, #vmem>, vector<8x8x128xf32>
      return
    }
    func.func @block(%i: i32, %j: i32, %k: i32) -> (i32, i32, i32) {
      return %i, %j, %k : i32, i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// Outer and inner dimensions stay loops of their own around and inside the share, dynamic ones too; their operands keep
// their order: outer, share, inner. `tpu.iteration_bound` follows its dimension, and of the shared one it is n.
// CHECK-LABEL: module @nested
// CHECK:         func.func @main(
// CHECK-SAME:    %[[OUTER:[a-z0-9]+]]: tensor<i32>, %[[N:[a-z0-9]+]]: tensor<i32>, %[[INNER:[a-z0-9]+]]: tensor<i32>, %[[X:[a-z0-9]+]]:
// CHECK:         stablehlo.custom_call @tpu_custom_call(%[[OUTER]], %[[N]], %[[INNER]], %[[X]]) {{.*}}mosaic.kernel = @copy}
// CHECK:         %[[SHARE:.*]] = stablehlo.add
//                the table: the last step, and n for `tpu.iteration_bound 1`
// CHECK:         %[[TABLE:.*]] = stablehlo.concatenate %{{.*}}, %{{.*}}, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
// CHECK:         stablehlo.custom_call @tpu_custom_call(%[[OUTER]], %[[SHARE]], %[[INNER]], %[[TABLE]], %[[X]]) {{.*}}mosaic.kernel = @[[KERNEL:[a-z0-9_]+]]}
// CHECK:         module @[[KERNEL]] attributes
// CHECK:           func.func @copy(%[[CORE:[a-z0-9]+]]: i32, %[[O:[a-z0-9]+]]: i32, %[[K:[a-z0-9]+]]: i32, %[[I:[a-z0-9]+]]: i32, %[[TABLE:[a-z0-9]+]]: memref<2xi32, #tpu.memory_space<smem>>,
// CHECK-SAME:        iteration_bounds = array<i64: 2, -9223372036854775808, -9223372036854775808, -9223372036854775808>
// CHECK:             %[[ONE:.*]] = arith.constant 1 : index
// CHECK:             %[[ASKED:.*]] = memref.load %[[TABLE]][%[[ONE]]]
// CHECK:             scf.if
// CHECK-DAG:           tpu.iteration_bound 1 : i32
// CHECK-DAG:           tpu.iteration_bound 3 : i32
// CHECK-DAG:           arith.index_cast %[[ASKED]] : i32 to index
// CHECK:           func.func @block(%[[CORE:[a-z0-9]+]]: i32, %[[O:[a-z0-9]+]]: i32, %[[K:[a-z0-9]+]]: i32, %[[I:[a-z0-9]+]]: i32,
// CHECK:             tpu.iteration_bound 2 : i32
// CHECK:             %[[SHARED:.*]] = arith.minsi
// CHECK:             %[[VALID:.*]] = arith.cmpi sle
// CHECK:             %[[BOUND:.*]] = tpu.iteration_bound 3 : i32
// CHECK:             %[[END:.*]] = arith.subi %[[BOUND]], %{{.*}} : i32
// CHECK:             %[[CLAMPED:.*]] = arith.select %[[VALID]], %[[I]], %[[END]] : i32
// CHECK:             return %[[O]], %[[SHARED]], %[[CLAMPED]] : i32, i32, i32
module @nested {
  func.func @main(%outer: tensor<i32>, %n: tensor<i32>, %inner: tensor<i32>, %x: tensor<64x64x1024xf32>) -> tensor<64x64x1024xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%outer, %n, %inner, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}"} : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<64x64x1024xf32>) -> tensor<64x64x1024xf32>
    return %0 : tensor<64x64x1024xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%a: i32, %b: i32, %c: i32, %x: memref<8x8x128xf32, #vmem>, %o: memref<8x8x128xf32, #vmem>) attributes {
        tpu.core_type = #tpu.core_type<tc>, iteration_bounds = array<i64: -9223372036854775808, -9223372036854775808, -9223372036854775808>,
        dimension_semantics = [#arbitrary, #parallel, #arbitrary],
        window_params = [{transform_indices = @block, window_bounds = array<i64: 8, 8, 128>}, {transform_indices = @block, window_bounds = array<i64: 8, 8, 128>}]} {
      %outer = tpu.iteration_bound 0 : i32
      %shared = tpu.iteration_bound 1 : i32
      %inner = tpu.iteration_bound 2 : i32
      %0 = arith.index_cast %outer : i32 to index
      %1 = arith.index_cast %shared : i32 to index
      %2 = arith.index_cast %inner : i32 to index
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0, %c0] : memref<8x8x128xf32, #vmem>, vector<8x8x128xf32>
      vector.store %v, %o[%c0, %c0, %c0] : memref<8x8x128xf32, #vmem>, vector<8x8x128xf32>
      return
    }
    func.func @block(%a: i32, %b: i32, %c: i32) -> (i32, i32, i32) {
      return %a, %b, %c : i32, i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// `tpu.iteration_bound` of a fused dimension is its constant; of a static inner one it follows the dimension.
// CHECK-LABEL: module @asks_for_fused
// CHECK:         func.func @main(
// CHECK:         iteration_bounds = array<i64: 2, -9223372036854775808, 3>
// CHECK:         %[[FUSED:.*]] = arith.constant 4 : i32
// CHECK:         scf.if
// CHECK-DAG:       arith.index_cast %[[FUSED]] : i32 to index
// CHECK-DAG:       tpu.iteration_bound 2 : i32
module @asks_for_fused {
  func.func @main(%n: tensor<i32>, %x: tensor<128x32x384xf32>) -> tensor<128x32x384xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}"} : (tensor<i32>, tensor<128x32x384xf32>) -> tensor<128x32x384xf32>
    return %0 : tensor<128x32x384xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %j: i32, %k: i32, %x: memref<8x8x128xf32, #vmem>, %o: memref<8x8x128xf32, #vmem>) attributes {
        tpu.core_type = #tpu.core_type<tc>, iteration_bounds = array<i64: -9223372036854775808, 4, 3>, dimension_semantics = [#parallel, #arbitrary, #arbitrary],
        window_params = [{transform_indices = @block, window_bounds = array<i64: 8, 8, 128>}, {transform_indices = @block, window_bounds = array<i64: 8, 8, 128>}]} {
      %fused = tpu.iteration_bound 1 : i32
      %inner = tpu.iteration_bound 2 : i32
      %0 = arith.index_cast %fused : i32 to index
      %1 = arith.index_cast %inner : i32 to index
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0, %c0] : memref<8x8x128xf32, #vmem>, vector<8x8x128xf32>
      vector.store %v, %o[%c0, %c0, %c0] : memref<8x8x128xf32, #vmem>, vector<8x8x128xf32>
      return
    }
    func.func @block(%i: i32, %j: i32, %k: i32) -> (i32, i32, i32) {
      return %i, %j, %k : i32, i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// The table goes behind the prefetch operands that are there, and whatever counts operands is renumbered: the input's
// index 2 is 3 in the shared launch and stays 2 in the original one. A window in `any` has no index map and stays.
// CHECK-LABEL: module @prefetch
// CHECK:         func.func @main(
// CHECK-SAME:    %[[N:[a-z0-9]+]]: tensor<i32>, %[[P:[a-z0-9]+]]: tensor<64xi32>, %[[X:[a-z0-9]+]]: tensor<1024x128xf32>, %[[Y:[a-z0-9]+]]: tensor<8x128xf32>
// CHECK:         stablehlo.custom_call @tpu_custom_call(%[[N]], %[[P]], %[[X]], %[[Y]])
// CHECK-SAME:      operand_index = 2,
// CHECK:         stablehlo.custom_call @tpu_custom_call(%{{[a-z0-9]+}}, %[[P]], %{{[a-z0-9]+}}, %[[X]], %[[Y]])
// CHECK-SAME:      \22allow_input_fusion\22: [false, false, false, true, false]
// CHECK-SAME:      \22input_memory_space_colors\22: [{\22operand_index\22: 4, \22color\22: 1}]
// CHECK-SAME:      operand_layouts = [dense<> : tensor<0xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[1, 0]> : tensor<2xindex>]
// CHECK-SAME:      output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 3, operand_tuple_indices = []>]
// CHECK:         module @gather_cores2
// CHECK:           func.func @gather(%{{[a-z0-9]+}}: i32, %{{[a-z0-9]+}}: i32, %{{[a-z0-9]+}}: memref<64xi32, #tpu.memory_space<smem>>, %{{[a-z0-9]+}}: memref<1xi32, #tpu.memory_space<smem>>, %{{[a-z0-9]+}}: memref<8x128xf32, #tpu.memory_space<vmem>>, %{{[a-z0-9]+}}: memref<8x128xf32, #tpu.memory_space<any>>,
// CHECK-SAME:        scalar_prefetch = 2 : i64
// CHECK:           func.func @gathered(%{{[a-z0-9]+}}: i32, %{{[a-z0-9]+}}: i32, %[[P:[a-z0-9]+]]: memref<64xi32, #tpu.memory_space<smem>>, %[[TABLE:[a-z0-9]+]]: memref<1xi32, #tpu.memory_space<smem>>) -> (i32, i32)
// CHECK:             memref.load %[[TABLE]]
// CHECK:             %[[I:.*]] = arith.minsi
// CHECK:             %[[AT:.*]] = arith.index_cast %[[I]] : i32 to index
// CHECK:             memref.load %[[P]][%[[AT]]]
module @prefetch {
  func.func @main(%n: tensor<i32>, %p: tensor<64xi32>, %x: tensor<1024x128xf32>, %y: tensor<8x128xf32>) -> tensor<1024x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %p, %x, %y) {mosaic.kernel = @gather,
        backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true, \22allow_input_fusion\22: [false, false, true, false], \22input_memory_space_colors\22: [{\22operand_index\22: 3, \22color\22: 1}]}}",
        operand_layouts = [dense<> : tensor<0xindex>, dense<0> : tensor<1xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[1, 0]> : tensor<2xindex>],
        result_layouts = [dense<[1, 0]> : tensor<2xindex>],
        output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 2, operand_tuple_indices = []>]
      } : (tensor<i32>, tensor<64xi32>, tensor<1024x128xf32>, tensor<8x128xf32>) -> tensor<1024x128xf32>
    return %0 : tensor<1024x128xf32>
  }
  module @gather attributes {stable_mosaic.version = 15 : i64} {
    func.func @gather(%i: i32, %p: memref<64xi32, #tpu.memory_space<smem>>, %x: memref<8x128xf32, #vmem>, %y: memref<8x128xf32, #tpu.memory_space<any>>, %o: memref<8x128xf32, #vmem>) attributes {
        tpu.core_type = #tpu.core_type<tc>, iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#parallel], scalar_prefetch = 1 : i64,
        window_params = [{transform_indices = @gathered, window_bounds = array<i64: 8, 128>}, {}, {transform_indices = @block, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @gathered(%i: i32, %p: memref<64xi32, #tpu.memory_space<smem>>) -> (i32, i32) {
      %at = arith.index_cast %i : i32 to index
      %0 = memref.load %p[%at] : memref<64xi32, #tpu.memory_space<smem>>
      %zero = arith.constant 0 : i32
      return %0, %zero : i32, i32
    }
    func.func @block(%i: i32, %p: memref<64xi32, #tpu.memory_space<smem>>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// Two launches of one kernel share its shared form; the one in a loop gets its choice there.
// CHECK-LABEL: module @twice
// CHECK:         func.func @main(
// CHECK:         stablehlo.case
// CHECK:           mosaic.kernel = @copy}
// CHECK:           mosaic.kernel = @[[KERNEL:copy_cores2[a-z0-9_]*]]}
// CHECK:         stablehlo.while
// CHECK:           stablehlo.case
// CHECK:             mosaic.kernel = @copy}
// CHECK:             mosaic.kernel = @[[KERNEL]]}
// CHECK:           stablehlo.return
// CHECK:         module @copy attributes
// CHECK:         module @[[KERNEL]] attributes
// CHECK-NOT:     module @
module @twice {
  func.func @main(%n: tensor<i32>, %m: tensor<i32>, %x: tensor<1024x128xf32>) -> tensor<1024x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}"} : (tensor<i32>, tensor<1024x128xf32>) -> tensor<1024x128xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1:2 = stablehlo.while(%k = %one, %y = %0) : tensor<i32>, tensor<1024x128xf32>
      cond {
        %more = stablehlo.compare LT, %k, %m, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      } do {
        %2 = stablehlo.custom_call @tpu_custom_call(%k, %y) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}"} : (tensor<i32>, tensor<1024x128xf32>) -> tensor<1024x128xf32>
        %next = stablehlo.add %k, %one : tensor<i32>
        stablehlo.return %next, %2 : tensor<i32>, tensor<1024x128xf32>
      }
    return %1#1 : tensor<1024x128xf32>
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
