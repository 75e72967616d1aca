// mosaic-run runs a program on the CPU and says what came out: a line a result, its values, files, times.

// RUN: %mosaic-run %S/Inputs/double.mlir --bounds 128 --input arg1=iota | FileCheck %s --check-prefix=TABLE
// TABLE: {{^}}result type min max mean NaN sha256
// TABLE-NEXT: {{^}}0 f32[1024,256] 0 524286 262143 0 {{[0-9a-f]+$}}
// TABLE-NOT: {{.}}

// The kernel of a packed program, from standard input and as bytecode, is the same; so is its checksum.
// RUN: %mosaic-run %S/Inputs/double.mlir --bounds 3 > %t.unpacked
// RUN: %mosaic-opt %S/Inputs/double.mlir -p pack-kernels --emit=bytecode | %mosaic-run - --bounds arg0=3 | diff - %t.unpacked
// RUN: %mosaic-run %S/Inputs/double.mlir --bounds 3 --seed=1 | not diff - %t.unpacked

// Steps that don't run write nothing, and memory that nobody wrote is NaN unless it is asked to be zero.
// RUN: %mosaic-run %S/Inputs/double.mlir --bounds 0 --print | FileCheck %s --check-prefix=NOTHING
// NOTHING: {{^}}0 f32[1024,256] - - - 262144
// NOTHING: {{^}}result 0 f32[1024,256] ={{$}}
// NOTHING-NEXT: {{^\[\[}}nan, nan, nan, ..., nan, nan, nan],
// RUN: %mosaic-run %S/Inputs/double.mlir --bounds 0 --uninitialized=zero | FileCheck %s --check-prefix=ZERO
// ZERO: {{^}}0 f32[1024,256] 0 0 0 0

// Arguments are listed with the bounds that depend on them; text and json say the same.
// RUN: %mosaic-run %s --list-inputs | FileCheck %s --check-prefix=LIST
// LIST: {{^}}0 n i32[] bound of dimension 0 of 'double'{{$}}
// LIST-NEXT: {{^}}1 params['w'] f32[16,128]{{$}}
// LIST-NOT: {{.}}
// RUN: %mosaic-run %s --list-inputs --format=json | FileCheck %s --check-prefix=LIST-JSON
// LIST-JSON: "name": "n",
// LIST-JSON-NEXT: "type": "i32",
// LIST-JSON-NEXT: "shape": [],
// LIST-JSON-NEXT: "bounds": [
// LIST-JSON-NEXT: "dimension 0 of 'double'"

// A name is what a flag calls an argument, and JAX's name of a result is in the table. What is saved is an input again.
// RUN: %mosaic-run %s --bounds n=2 --input "params['w']=2.5" -o %t.npy | FileCheck %s --check-prefix=NAMES
// RUN: %mosaic-run %s --bounds n=2 --input 1=%t.npy | FileCheck %s --check-prefix=AGAIN
// NAMES: {{^}}0 ['y'] f32[16,128] 5 5 5 0
// AGAIN: {{^}}0 ['y'] f32[16,128] 10 10 10 0

// RUN: %mosaic-run %s --bounds n=2 --time=2 | FileCheck %s --check-prefix=TIME
// TIME: {{^}}0 ['y']
// TIME-NEXT: {{^}}compile: {{[0-9.]+}} {{m?s}} (lowering {{[0-9.]+}} {{m?s}}, XLA {{[0-9.]+}} {{m?s}})
// TIME-NEXT: {{^}}run: best {{[0-9.]+}} {{m?s}}, median {{[0-9.]+}} {{m?s}} of 2 runs

// RUN: %mosaic-run --help | FileCheck %s --check-prefix=HELP
// HELP: usage: mosaic-run
// HELP: --compare OTHER
// HELP: Exit codes: 0, 1 if results differ
// RUN: %mosaic-run --version | FileCheck %s --check-prefix=VERSION
// VERSION: {{^}}mosaic-grid

func.func @main(%n: tensor<i32> loc("n"), %x: tensor<16x128xf32> loc("params['w']"))
    -> (tensor<16x128xf32> {jax.result_info = "result['y']"}) {
  %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {backend_config = "{}", mosaic.kernel = @double}
      : (tensor<i32>, tensor<16x128xf32>) -> tensor<16x128xf32>
  return %0 : tensor<16x128xf32>
}
module @double attributes {stable_mosaic.version = 15 : i64} {
  func.func @double(%i: i32, %x: memref<8x128xf32, #tpu.memory_space<vmem>>,
                    %o: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {
    dimension_semantics = [#tpu.dimension_semantics<parallel>], iteration_bounds = array<i64: -9223372036854775808>,
    scalar_prefetch = 0 : i64, scratch_operands = 0 : i64, tpu.core_type = #tpu.core_type<tc>,
    window_params = [{transform_indices = @transform_0, window_bounds = array<i64: 8, 128>},
                     {transform_indices = @transform_0, window_bounds = array<i64: 8, 128>}]
  } {
    %c0 = arith.constant 0 : index
    %0 = vector.load %x[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>
    %1 = arith.addf %0, %0 : vector<8x128xf32>
    vector.store %1, %o[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>
    return
  }
  func.func @transform_0(%i: i32) -> (i32, i32) {
    %c0 = arith.constant 0 : i32
    return %i, %c0 : i32, i32
  }
}
