// Several dynamic parallel dimensions: a kernel for each, and one that counts them together where that pays.
// RUN: split-file %s %t
// RUN: %mosaic-opt %t/small.mlir -p 'partition-cores{cores=2}' | FileCheck %s --check-prefixes=SMALL,SPLIT
// RUN: %mosaic-opt %t/small.mlir -p 'partition-cores{cores=2 strategy=split}' | FileCheck %s --check-prefixes=SMALL,SPLIT
// RUN: %mosaic-opt %t/small.mlir -p 'partition-cores{cores=2 strategy=linearize}' | FileCheck %s --check-prefix=JOINT
// RUN: %mosaic-opt %t/large.mlir -p 'partition-cores{cores=2}' | FileCheck %s --check-prefix=THREE
// RUN: %mosaic-opt %t/large.mlir -p 'partition-cores{cores=2 strategy=split}' | FileCheck %s --check-prefix=SPLIT
// Once more changes nothing: the fallback is left alone, and the compiler shares the others by itself.
// RUN: %mosaic-opt %t/small.mlir -p 'partition-cores{cores=2}' > %t.once
// RUN: %mosaic-opt %t/small.mlir -p 'partition-cores{cores=2},partition-cores{cores=2}' 2> /dev/null | diff %t.once -
// RUN: %mosaic-opt %t.once -p 'partition-cores{cores=2}' 2> /dev/null | diff %t.once -
// RUN: %mosaic-opt %t/apart.mlir -p 'partition-cores{cores=2 strategy=linearize}' | FileCheck %s --check-prefix=APART
// RUN: %mosaic-opt %t/between.mlir -p 'partition-cores{cores=2 strategy=linearize}' | FileCheck %s --check-prefix=BETWEEN

// A division a step is dear where a step copies one register: each dimension gets a kernel, and the launch compares the
// largest shares, ceil(n/2) * m and n * ceil(m/2), each only if it may run.
// SMALL-LABEL: func.func @main(
// SMALL-SAME:    %[[N:[a-z0-9]+]]: tensor<i32>, %[[M:[a-z0-9]+]]: tensor<i32>
// SMALL:         %[[SHARE0:.*]] = stablehlo.multiply %{{.*}}, %[[M]] : tensor<i32>
// SMALL:         stablehlo.compare LT, %[[SHARE0]], %{{.*}}
// SMALL:         stablehlo.compare GE, %[[N]], %{{.*}}
// SMALL:         %[[SHARE1:.*]] = stablehlo.multiply %{{.*}}, %[[N]] : tensor<i32>
// SMALL:         stablehlo.compare LT, %[[SHARE1]], %{{.*}}
// SMALL:         stablehlo.compare GE, %[[M]], %{{.*}}
// SPLIT:         "stablehlo.case"
// SPLIT:           @tpu_custom_call(%{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}) {{.*}}mosaic.kernel = @copy}
// SPLIT-NEXT:      stablehlo.return
// SPLIT:           mosaic.kernel = @[[D0:[a-z0-9_]+]]}
// SPLIT-NEXT:      stablehlo.return
// SPLIT:           mosaic.kernel = @[[D1:[a-z0-9_]+]]}
// SPLIT-NEXT:      stablehlo.return
// SPLIT-NEXT:    }) :
// SPLIT:         module @[[D0]] attributes
// SPLIT:           func.func @block(%[[CORE:[a-z0-9]+]]: i32, %[[K:[a-z0-9]+]]: i32, %[[J:[a-z0-9]+]]: i32,
// SPLIT:             %[[I:.*]] = arith.minsi
// SPLIT:             %[[INNER:.*]] = arith.select %{{.*}}, %[[J]], %{{.*}} : i32
// SPLIT:             return %[[I]], %[[INNER]] : i32, i32
// SPLIT:         module @[[D1]] attributes
// SPLIT:           func.func @block(%[[CORE:[a-z0-9]+]]: i32, %[[OUTER:[a-z0-9]+]]: i32, %[[K:[a-z0-9]+]]: i32,
// SPLIT:             %[[J:.*]] = arith.minsi
// SPLIT:             return %[[OUTER]], %[[J]] : i32, i32
// SPLIT-NOT:     arith.divsi

// Counted together: step / m and step % m, m from the table. n * m steps may wrap, which the launch rules out.
// JOINT-LABEL: func.func @main(
// JOINT-SAME:    %[[N:[a-z0-9]+]]: tensor<i32>, %[[M:[a-z0-9]+]]: tensor<i32>
// JOINT-DAG:     stablehlo.compare GE, %[[N]], %{{.*}}
// JOINT-DAG:     %[[LIMIT:.*]] = stablehlo.divide %{{.*}}, %{{.*}} : tensor<i32>
// JOINT-DAG:     stablehlo.compare LE, %[[M]], %[[LIMIT]]
// JOINT:         "stablehlo.case"
// JOINT:           mosaic.kernel = @copy}
// JOINT:           %[[STEPS:.*]] = stablehlo.multiply %[[N]], %[[M]]
// JOINT:           stablehlo.concatenate {{.*}} -> tensor<2xi32>
// JOINT:           mosaic.kernel = @[[D01:[a-z0-9_]+]]}
// JOINT-NEXT:      stablehlo.return
// JOINT-NEXT:    }) :
// JOINT:         module @[[D01]] attributes
// JOINT:           iteration_bounds = array<i64: 2, -9223372036854775808>
// JOINT:           func.func @block(%{{[a-z0-9]+}}: i32, %{{[a-z0-9]+}}: i32, %[[TABLE:[a-z0-9]+]]: memref<2xi32, #tpu.memory_space<smem>>) -> (i32, i32)
// JOINT:             %[[STEP:.*]] = arith.minsi
// JOINT:             %[[BOUND:.*]] = memref.load %[[TABLE]]
// JOINT:             %[[I:.*]] = arith.divsi %[[STEP]], %[[BOUND]] : i32
// JOINT:             %[[WHOLE:.*]] = arith.muli %[[I]], %[[BOUND]] : i32
// JOINT:             %[[J:.*]] = arith.subi %[[STEP]], %[[WHOLE]] : i32
// JOINT:             return %[[I]], %[[J]] : i32, i32

// Where a step is long the division pays for some n and m (3 and 3: 5 steps instead of 6): three kernels to pick from.
// THREE-LABEL: func.func @main(
// THREE:         "stablehlo.case"
// THREE:           mosaic.kernel = @copy}
// THREE:           mosaic.kernel = @copy_cores2_d0}
// THREE:           mosaic.kernel = @copy_cores2_d1}
// THREE:           mosaic.kernel = @copy_cores2_d0_d1}
// THREE:           stablehlo.return
// THREE-NEXT:    }) :

// Dimensions with others between them can't be counted together; `linearize` then shares each by itself.
// APART:         "stablehlo.case"
// APART:           mosaic.kernel = @copy}
// APART:           mosaic.kernel = @copy_cores2_d0}
// APART:           mosaic.kernel = @copy_cores2_d2}
// APART-NEXT:      stablehlo.return
// APART-NEXT:    }) :
// APART:         iteration_bounds = array<i64: 2, -9223372036854775808, 3, -9223372036854775808>
//                the static 3 is an outer dimension of the second
// APART:         iteration_bounds = array<i64: 2, -9223372036854775808, 3, -9223372036854775808>

// One static step between two dimensions is no obstacle, and its index is 0.
// BETWEEN:       mosaic.kernel = @copy_cores2_d0_d1_d2}
// BETWEEN:       module @copy_cores2_d0_d1_d2
// BETWEEN:         iteration_bounds = array<i64: 2, -9223372036854775808>
// BETWEEN:         func.func @block(
// BETWEEN:           %[[I:.*]] = arith.divsi
// BETWEEN:           %[[K:.*]] = arith.subi
// BETWEEN:           %[[J:.*]] = arith.constant 0 : i32
// BETWEEN:           return %[[I]], %[[J]], %[[K]] : i32, i32, i32

//--- small.mlir
#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
module {
  func.func @main(%n: tensor<i32>, %m: tensor<i32>, %x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %m, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}"} : (tensor<i32>, tensor<i32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    return %0 : tensor<1024x1024xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        tpu.core_type = #tpu.core_type<tc>, iteration_bounds = array<i64: -9223372036854775808, -9223372036854775808>, dimension_semantics = [#parallel, #parallel],
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

//--- large.mlir
#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
module {
  func.func @main(%n: tensor<i32>, %m: tensor<i32>, %x: tensor<8192x8192xf32>) -> tensor<8192x8192xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %m, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}"} : (tensor<i32>, tensor<i32>, tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
    return %0 : tensor<8192x8192xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %j: i32, %x: memref<1024x1024xf32, #vmem>, %o: memref<1024x1024xf32, #vmem>) attributes {
        tpu.core_type = #tpu.core_type<tc>, iteration_bounds = array<i64: -9223372036854775808, -9223372036854775808>, dimension_semantics = [#parallel, #parallel],
        window_params = [{transform_indices = @block, window_bounds = array<i64: 1024, 1024>}, {transform_indices = @block, window_bounds = array<i64: 1024, 1024>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<1024x1024xf32, #vmem>, vector<1024x1024xf32>
      vector.store %v, %o[%c0, %c0] : memref<1024x1024xf32, #vmem>, vector<1024x1024xf32>
      return
    }
    func.func @block(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
  }
}

//--- apart.mlir
#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>
module {
  func.func @main(%n: tensor<i32>, %m: tensor<i32>, %x: tensor<64x24x1024xf32>) -> tensor<64x24x1024xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %m, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}"} : (tensor<i32>, tensor<i32>, tensor<64x24x1024xf32>) -> tensor<64x24x1024xf32>
    return %0 : tensor<64x24x1024xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %j: i32, %k: i32, %x: memref<8x8x128xf32, #vmem>, %o: memref<8x8x128xf32, #vmem>) attributes {
        tpu.core_type = #tpu.core_type<tc>, iteration_bounds = array<i64: -9223372036854775808, 3, -9223372036854775808>, dimension_semantics = [#parallel, #arbitrary, #parallel],
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

//--- between.mlir
#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
module {
  func.func @main(%n: tensor<i32>, %m: tensor<i32>, %x: tensor<64x8x1024xf32>) -> tensor<64x8x1024xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %m, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}"} : (tensor<i32>, tensor<i32>, tensor<64x8x1024xf32>) -> tensor<64x8x1024xf32>
    return %0 : tensor<64x8x1024xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %j: i32, %k: i32, %x: memref<8x8x128xf32, #vmem>, %o: memref<8x8x128xf32, #vmem>) attributes {
        tpu.core_type = #tpu.core_type<tc>, iteration_bounds = array<i64: -9223372036854775808, 1, -9223372036854775808>, dimension_semantics = [#parallel, #parallel, #parallel],
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
