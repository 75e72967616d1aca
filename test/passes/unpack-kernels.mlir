// Kernels come out of their launches as modules of their own.
// RUN: %mosaic-opt %s --split-input-file --mlir-print-debuginfo -p pack-kernels -o %t.packed
// RUN: FileCheck %s --check-prefix=PACKED < %t.packed
// RUN: %mosaic-opt %t.packed --split-input-file -p unpack-kernels | FileCheck %s
// RUN: %mosaic-opt %t.packed --split-input-file -p unpack-kernels --mlir-print-debuginfo | FileCheck %s --check-prefix=PLACES

// What was unpacked packs to the same text, locations included, and so it does when nothing is asked for but to look.
// RUN: %mosaic-opt %t.packed --split-input-file -p 'unpack-kernels,pack-kernels' --mlir-print-debuginfo | diff %t.packed -
// RUN: %mosaic-opt %t.packed --split-input-file -p canonicalize | FileCheck %s --check-prefix=PACKED
// RUN: %mosaic-opt %t.packed --split-input-file --unpacked | FileCheck %s

// An unpacked program is left as it is.
// RUN: %mosaic-opt %t.packed --split-input-file -p unpack-kernels > %t.once
// RUN: %mosaic-opt %t.packed --split-input-file -p 'unpack-kernels,unpack-kernels' | diff %t.once -
// RUN: %mosaic-opt %t.once --split-input-file -p unpack-kernels | diff %t.once -

// PACKED-NOT: mosaic.kernel
// PACKED-NOT: func.func @double
// PACKED-NOT: iteration_bounds

// The configuration keeps all but the kernel's bytes. Two kernels that are the same are stored once; one that differs in
// nothing but a location is another. Locations stand on ops and arguments.
// CHECK-LABEL: module @program
// CHECK:         stablehlo.custom_call @tpu_custom_call(%{{[a-z0-9]+}}, %{{[a-z0-9]+}})
// CHECK-SAME:      backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22debug_locations\22: \22\22, \22needs_layout_passes\22: true}}", kernel_name = "double"
// CHECK-SAME:      mosaic.kernel = @double
// CHECK:         stablehlo.custom_call @tpu_custom_call(%{{[a-z0-9]+}}, %{{[a-z0-9]+}}) {{.*}}mosaic.kernel = @double}
// CHECK:         stablehlo.custom_call @tpu_custom_call(%{{[a-z0-9]+}}, %{{[a-z0-9]+}}) {{.*}}mosaic.kernel = @double_0}
// CHECK:         module @double attributes {stable_mosaic.version = 15 : i64}
// CHECK:           func.func @double(%{{[a-z0-9]+}}: i32, %{{[a-z0-9]+}}: memref<8x128xf32, #tpu.memory_space<vmem>>,
// CHECK-SAME:        dimension_semantics = [#tpu.dimension_semantics<parallel>], iteration_bounds = array<i64: -9223372036854775808>
// CHECK:             vector.load
// CHECK:             arith.addf
// CHECK:             vector.store
// CHECK:           func.func @block(%{{[a-z0-9]+}}: i32) -> (i32, i32)
// CHECK-NOT:     module @double attributes
// CHECK:         module @double_0 attributes {mosaic.name = "double", stable_mosaic.version = 15 : i64}
// PLACES:       module @program
// PLACES:       func.func @double(%{{[a-z0-9]+}}: i32 loc("i"(#{{loc[0-9]*}}))
// PLACES:         arith.constant 0 : index loc(#[[CONSTANT:loc[0-9]*]])
// PLACES:         vector.load {{.*}} loc(#[[LOAD:loc[0-9]*]])
// PLACES:       #[[CONSTANT]] = loc("kernel.py":3:4)
// PLACES:       #[[FILE:loc[0-9]*]] = loc("kernel.py":4:4)
// PLACES:       #[[LOAD]] = loc("load"(#[[FILE]]))
module @program {
  func.func @main(%n: tensor<i32>, %x: tensor<64x128xf32>) -> tensor<64x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @double, kernel_name = "double",
        backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22debug_locations\22: \22\22, \22needs_layout_passes\22: true}}"
      } : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    %1 = stablehlo.custom_call @tpu_custom_call(%n, %0) {mosaic.kernel = @same,
        backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22debug_locations\22: \22\22}}"
      } : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    %2 = stablehlo.custom_call @tpu_custom_call(%n, %1) {mosaic.kernel = @elsewhere,
        backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22debug_locations\22: \22\22}}"
      } : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    return %2 : tensor<64x128xf32>
  }
  module @double attributes {stable_mosaic.version = 15 : i64} {
    func.func @double(%i: i32 loc("i"("kernel.py":1:1)), %x: memref<8x128xf32, #tpu.memory_space<vmem>> loc("x"), %o: memref<8x128xf32, #tpu.memory_space<vmem>> loc("o"))
        attributes {dimension_semantics = [#tpu.dimension_semantics<parallel>], iteration_bounds = array<i64: -9223372036854775808>,
                    window_params = [{transform_indices = @block, window_bounds = array<i64: 8, 128>},
                                     {transform_indices = @block, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index loc("kernel.py":3:4)
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32> loc("load"("kernel.py":4:4))
      %w = arith.addf %v, %v : vector<8x128xf32> loc("kernel.py":5:4)
      vector.store %w, %o[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32> loc("kernel.py":6:4)
      return loc("kernel.py":7:4)
    } loc("kernel.py":1:1)
    func.func @block(%i: i32 loc("i")) -> (i32, i32) {
      %zero = arith.constant 0 : i32 loc("kernel.py":8:4)
      return %i, %zero : i32, i32 loc("kernel.py":8:4)
    } loc("kernel.py":8:1)
  } loc("kernel.py":1:1)
  module @same attributes {mosaic.name = "double", stable_mosaic.version = 15 : i64} {
    func.func @double(%i: i32 loc("i"("kernel.py":1:1)), %x: memref<8x128xf32, #tpu.memory_space<vmem>> loc("x"), %o: memref<8x128xf32, #tpu.memory_space<vmem>> loc("o"))
        attributes {dimension_semantics = [#tpu.dimension_semantics<parallel>], iteration_bounds = array<i64: -9223372036854775808>,
                    window_params = [{transform_indices = @block, window_bounds = array<i64: 8, 128>},
                                     {transform_indices = @block, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index loc("kernel.py":3:4)
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32> loc("load"("kernel.py":4:4))
      %w = arith.addf %v, %v : vector<8x128xf32> loc("kernel.py":5:4)
      vector.store %w, %o[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32> loc("kernel.py":6:4)
      return loc("kernel.py":7:4)
    } loc("kernel.py":1:1)
    func.func @block(%i: i32 loc("i")) -> (i32, i32) {
      %zero = arith.constant 0 : i32 loc("kernel.py":8:4)
      return %i, %zero : i32, i32 loc("kernel.py":8:4)
    } loc("kernel.py":8:1)
  } loc("kernel.py":1:1)
  module @elsewhere attributes {mosaic.name = "double", stable_mosaic.version = 15 : i64} {
    func.func @double(%i: i32 loc("i"("kernel.py":1:1)), %x: memref<8x128xf32, #tpu.memory_space<vmem>> loc("x"), %o: memref<8x128xf32, #tpu.memory_space<vmem>> loc("o"))
        attributes {dimension_semantics = [#tpu.dimension_semantics<parallel>], iteration_bounds = array<i64: -9223372036854775808>,
                    window_params = [{transform_indices = @block, window_bounds = array<i64: 8, 128>},
                                     {transform_indices = @block, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index loc("kernel.py":3:4)
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32> loc("load"("kernel.py":4:4))
      %w = arith.addf %v, %v : vector<8x128xf32> loc("kernel.py":50:4)
      vector.store %w, %o[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32> loc("kernel.py":6:4)
      return loc("kernel.py":7:4)
    } loc("kernel.py":1:1)
    func.func @block(%i: i32 loc("i")) -> (i32, i32) {
      %zero = arith.constant 0 : i32 loc("kernel.py":8:4)
      return %i, %zero : i32, i32 loc("kernel.py":8:4)
    } loc("kernel.py":8:1)
  } loc("kernel.py":1:1)
}

// -----

// A bare kernel comes out of its portable form, and a kernel without a name gets that of its launch.
// CHECK-LABEL: module @in_case
// CHECK:         "stablehlo.case"
// CHECK:           stablehlo.custom_call @tpu_custom_call() {{.*}}mosaic.kernel = @[[NAMELESS:kernel[_0-9]*]]}
// CHECK:           stablehlo.custom_call @tpu_custom_call() {{.*}}kernel_name = "named", mosaic.kernel = @named}
// CHECK:         module @[[NAMELESS]] attributes {mosaic.name = "", stable_mosaic.version = 15 : i64}
// CHECK:         module @named attributes {mosaic.name = "", stable_mosaic.version = 14 : i64}
module @in_case {
  func.func @main(%i: tensor<i32>) {
    "stablehlo.case"(%i) ({
      stablehlo.custom_call @tpu_custom_call() {mosaic.kernel = @a, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : () -> ()
      stablehlo.return
    }, {
      stablehlo.custom_call @tpu_custom_call() {mosaic.kernel = @b, kernel_name = "named", backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : () -> ()
      stablehlo.return
    }) : (tensor<i32>) -> ()
    return
  }
  module @a attributes {mosaic.name = "", stable_mosaic.version = 15 : i64} {
    func.func @f() {
      return
    }
  }
  module @b attributes {mosaic.name = "", stable_mosaic.version = 14 : i64} {
    func.func @f() {
      return
    }
  }
}

// -----

// CHECK-LABEL: module @bare attributes {stable_mosaic.version = 15 : i64}
// CHECK:         func.func @bare(%{{[a-z0-9]+}}: memref<8x128xf32, #tpu.memory_space<vmem>>)
// CHECK-NEXT:      return
// PACKED:      "stable_mosaic.func.func"
module @bare attributes {stable_mosaic.version = 15 : i64} {
  func.func @bare(%x: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {tpu.core_type = #tpu.core_type<tc>} {
    return
  }
}
