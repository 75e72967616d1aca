// What is proved of windows, loads, stores and copies; what isn't is told with what shows it, or what would prove it.
// RUN: %mosaic-opt %s --verify-diagnostics --certify
// RUN: %mosaic-opt %s --certify --contracts='0 <= %arg0[*] <= 56' --diagnostics-format=json | FileCheck %s --check-prefix=KEPT
// RUN: %mosaic-opt %s --certify --contracts='0 <= %arg0[*] <= 57' 2>&1 | FileCheck %s --check-prefix=BROKEN

// KEPT: "message": "the kernel 'kernel' stays within memory: 2 of 2 windows and 3 of 3 accesses proved"
// KEPT: "under the contracts 0 <= %arg0[*] <= 56"
// BROKEN: warning: with %arg0[0] = 57 step (0) reads input 0 ('arg0') outside of it: from 57 on, 8 of 64 in dimension 0 [not-certified]
// BROKEN: note: what would prove it:{{.*}}%arg0[0] + 8 <= 64
// BROKEN: the kernel 'kernel' isn't proved to stay within memory: 2 of 2 windows and 2 of 3 accesses are [memory-certificate]

#vmem = #tpu.memory_space<vmem>
#smem = #tpu.memory_space<smem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// Without a contract the table may hold anything.
module {
  func.func @main(%n: tensor<1xi32>, %x: tensor<64x256xf32>) -> tensor<8x256xf32> {
    // expected-remark@+2 {{the kernel 'kernel' isn't proved to stay within memory: 2 of 2 windows and 2 of 3 accesses are [memory-certificate]}}
    // expected-note@+1 {{whatever the arguments are}}
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<1xi32>, tensor<64x256xf32>) -> tensor<8x256xf32>
    return %0 : tensor<8x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %n: memref<1xi32, #smem>, %x: memref<64x256xf32, #vmem>, %o: memref<8x256xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 1>, dimension_semantics = [#arbitrary], scalar_prefetch = 1 : i64,
        window_params = [{transform_indices = @map, window_bounds = array<i64: 64, 256>}, {transform_indices = @map, window_bounds = array<i64: 8, 256>}]} {
      %c0 = arith.constant 0 : index
      %read = memref.load %n[%c0] : memref<1xi32, #smem>
      %row = arith.index_cast %read : i32 to index
      // expected-warning@+3 {{reads input 0 ('arg0') outside of it}}
      // expected-note@+2 {{what would prove it: 0 <= %arg0[0] and}}
      // expected-note@+1 {{promise what the inputs can be, as with --contracts='0 <= %arg0[0] <= 56'}}
      %v = vector.load %x[%row, %c0] : memref<64x256xf32, #vmem>, vector<8x256xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x256xf32, #vmem>, vector<8x256xf32>
      return
    }
    func.func @map(%i: i32, %n: memref<1xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %zero, %zero : i32, i32
    }
  }
}
