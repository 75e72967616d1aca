// Kernels go back into their launches, in the version they came in, with every field of the configuration.
// RUN: %mosaic-opt %s --split-input-file -p pack-kernels | FileCheck %s

// What was packed unpacks to the same text, locations included.
// RUN: %mosaic-opt %s --split-input-file --mlir-print-debuginfo > %t.before
// RUN: %mosaic-opt %s --split-input-file --mlir-print-debuginfo -p pack-kernels -o %t.packed
// RUN: %mosaic-opt %t.packed --split-input-file --mlir-print-debuginfo -p unpack-kernels | diff %t.before -
// RUN: %mosaic-opt %s --split-input-file --mlir-print-debuginfo -p 'pack-kernels,unpack-kernels' | diff %t.before -

// A field nobody has heard of and an odd spelling of JSON survive; `debug_locations` is filled where there is one. What only
// passes read is dropped, and a kernel that is launched goes.
// CHECK-LABEL: module @config
// CHECK:         stablehlo.custom_call @tpu_custom_call(%{{[a-z0-9]+}}, %{{[a-z0-9]+}}) {
// CHECK-SAME:      backend_config = "{\22new_field\22 : [1,2],  \22custom_call_config\22: {\22body\22 : \22TUzvUg{{[A-Za-z0-9+/=]+}}\22, \22debug_locations\22: \22TUzvUg{{[A-Za-z0-9+/=]+}}\22, \22flags\22: {\22xla_x\22: {\22boolean_value\22: true}}}}"
// CHECK-SAME:      kernel_name = "double", mhlo.frontend_attributes = {kernel_metadata = "{}"}
// CHECK-NOT:     mosaic.
// CHECK-NOT:     module @double
module @config {
  func.func @main(%n: tensor<i32>, %x: tensor<64x128xf32>) -> tensor<64x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @double, kernel_name = "double",
        mhlo.frontend_attributes = {kernel_metadata = "{}"},
        backend_config = "{\22new_field\22 : [1,2],  \22custom_call_config\22: {\22body\22 : \22\22, \22debug_locations\22: \22\22, \22flags\22: {\22xla_x\22: {\22boolean_value\22: true}}}}"
      } : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    return %0 : tensor<64x128xf32>
  }
  module @double attributes {stable_mosaic.version = 15 : i64} {
    func.func @double(%i: i32 loc("i"), %x: memref<8x128xf32, #tpu.memory_space<vmem>>, %o: memref<8x128xf32, #tpu.memory_space<vmem>>)
        attributes {dimension_semantics = [#tpu.dimension_semantics<parallel>], iteration_bounds = array<i64: -9223372036854775808>,
                    window_params = [{transform_indices = @block, window_bounds = array<i64: 8, 128>},
                                     {transform_indices = @block, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index loc("kernel.py":3:4)
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32> loc("load"("kernel.py":4:4))
      %w = arith.addf %v, %v : vector<8x128xf32> loc(callsite("kernel.py":5:4 at "kernel.py":9:1))
      vector.store %w, %o[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32> loc(fused["kernel.py":6:4, "kernel.py":7:4])
      return
    }
    func.func @block(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}

// -----

// Without a field `debug_locations` none is added: the locations stay in the body. One kernel for two launches, one of them
// in a loop, is packed into both.
// CHECK-LABEL: module @shared
// CHECK:         stablehlo.custom_call @tpu_custom_call(%{{[a-z0-9]+}}) {backend_config = "{\22custom_call_config\22: {\22body\22: \22[[BODY:TUzvUg[A-Za-z0-9+/=]+]]\22}}"}
// CHECK:         stablehlo.while
// CHECK:           stablehlo.custom_call @tpu_custom_call(%{{[a-zA-Z0-9_]+}}) {backend_config = "{\22custom_call_config\22: {\22body\22: \22[[BODY]]\22}}"}
// CHECK-NOT:     module @
module @shared {
  func.func @main(%x: tensor<8x128xf32>, %n: tensor<i32>) -> tensor<8x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @once, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<8x128xf32>) -> tensor<8x128xf32>
    %start = stablehlo.constant dense<0> : tensor<i32>
    %1:2 = stablehlo.while(%k = %start, %y = %0) : tensor<i32>, tensor<8x128xf32>
      cond {
        %more = stablehlo.compare LT, %k, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      } do {
        %2 = stablehlo.custom_call @tpu_custom_call(%y) {mosaic.kernel = @once, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<8x128xf32>) -> tensor<8x128xf32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %next = stablehlo.add %k, %one : tensor<i32>
        stablehlo.return %next, %2 : tensor<i32>, tensor<8x128xf32>
      }
    return %1#1 : tensor<8x128xf32>
  }
  module @once attributes {stable_mosaic.version = 15 : i64} {
    func.func @once(%x: memref<8x128xf32, #tpu.memory_space<vmem>>, %o: memref<8x128xf32, #tpu.memory_space<vmem>>) {
      return
    }
  }
}

// -----

// A kernel whose name another symbol had keeps its own in the body. One that nobody launches stays where it is, and a call
// of another target is not a launch.
// CHECK-LABEL: module @names
// CHECK:         func.func @main
// CHECK:           stablehlo.custom_call @tpu_custom_call(%{{[a-z0-9]+}}) {{.*}}\22body\22: \22TUzvUg
// CHECK:           stablehlo.custom_call @other_target(%{{[a-z0-9]+}}) {backend_config = "{}"}
// CHECK-NOT:     module @main_0
// CHECK:         module @unlaunched attributes
module @names {
  func.func @main(%x: tensor<8x128xf32>) -> tensor<8x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @main_0, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<8x128xf32>) -> tensor<8x128xf32>
    %1 = stablehlo.custom_call @other_target(%0) {backend_config = "{}"} : (tensor<8x128xf32>) -> tensor<8x128xf32>
    return %1 : tensor<8x128xf32>
  }
  module @unlaunched attributes {stable_mosaic.version = 15 : i64} {
    func.func @unlaunched(%x: memref<8x128xf32, #tpu.memory_space<vmem>>) {
      return
    }
  }
  module @main_0 attributes {mosaic.name = "main", stable_mosaic.version = 15 : i64} {
    func.func @main(%x: memref<8x128xf32, #tpu.memory_space<vmem>>, %o: memref<8x128xf32, #tpu.memory_space<vmem>>) {
      return
    }
  }
}

// -----

// A bare kernel becomes its portable form.
// CHECK-LABEL: module @bare attributes {stable_mosaic.version = 14 : i64}
// CHECK:         "stable_mosaic.func.func"
// CHECK:           "stable_mosaic.func.return"
module @bare attributes {stable_mosaic.version = 14 : i64} {
  func.func @bare(%x: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {tpu.core_type = #tpu.core_type<tc>} {
    return
  }
}
