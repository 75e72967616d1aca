// What is promised of arguments: it silences, it lets an index map that reads a table be looked at, and passes use it.

// RUN: split-file %s %t

// Without a promise nobody knows what a table holds, and a bound may be anything.
// RUN: %mosaic-opt %t/lengths.mlir --check-grid --target=v5e 2>&1 | FileCheck %s --check-prefix=NONE --allow-empty
// RUN: %mosaic-opt %t/bound.mlir --check-grid --target=v5e 2>&1 | FileCheck %s --check-prefix=BOUND
// NONE-NOT: window-out-of-bounds
// BOUND: warning: with n = 9 step (8) shows block (8, 0) of input 0 ('arg0'), wholly outside of its array [window-out-of-bounds]
// BOUND: note: keep the index map within the array, {{.*}}; or promise what the inputs can be, as with --contracts='n <= 8'

// The last block of a length is -1 where the length is less than a block.
// RUN: %mosaic-opt %t/lengths.mlir --check-grid --target=v5e --contracts='0 <= lengths[*] <= 1024' 2>&1 | FileCheck %s --check-prefix=TABLE
// TABLE: warning: with lengths[0] = 0 step (0) shows block (-1, 0) of input 0 ('arg0'), wholly outside of its array [window-out-of-bounds]
// TABLE-NEXT: note: the array is f32[1024,128], a block f32[8,128]

// RUN: %mosaic-opt %t/lengths.mlir --check-grid --target=v5e --strict --contracts='8 <= lengths[*], lengths[*] <= 1024' 2>&1 | FileCheck %s --check-prefix=PROVED --allow-empty
// RUN: %mosaic-opt %t/bound.mlir --check-grid --target=v5e --contracts='n <= 8' 2>&1 | FileCheck %s --check-prefix=PROVED --allow-empty
// RUN: %mosaic-opt %t/bound.mlir --check-grid --target=v5e --contracts='%%arg0 <= 8' 2>&1 | FileCheck %s --check-prefix=PROVED --allow-empty
// PROVED-NOT: window-out-of-bounds

// With --strict, what can't be decided is said, and why, and what would be enough.
// RUN: %mosaic-opt %t/lengths.mlir --check-grid --target=v5e --strict 2>&1 | FileCheck %s --check-prefix=STRICT
// STRICT: warning: can't tell whether each block of input 0 ('arg0') meets its array: it depends on lengths[i], which is read at run time [window-out-of-bounds]
// STRICT-NEXT: note: --contracts='8 <= lengths[*] <= 1031' would settle it

// A sum of all elements is one that contracts speak of, whatever they say of the elements.
// RUN: %mosaic-opt %t/sum.mlir --check-grid --target=v5e --contracts='sum(lengths) <= 128' 2>&1 | FileCheck %s --check-prefixes=SUM,NARROW
// RUN: %mosaic-opt %t/sum.mlir --check-grid --target=v5e --contracts='0 <= lengths[*] <= 5' 2>&1 | FileCheck %s --check-prefixes=SUM,ELEMENTS
// SUM: warning: with sum(lengths) = 72 step (8) shows block (8, 0) of input 0 ('arg0'), wholly outside of its array [window-out-of-bounds]
// SUM-NEXT: note: the array is f32[64,128], a block f32[8,128]
// NARROW-NEXT: note: {{.*}}; or promise what the inputs can be, as with --contracts='0 <= sum(lengths) <= 71'
// ELEMENTS-NEXT: note: {{.*}}; or promise what the inputs can be, as with --contracts='sum(lengths) <= 71'
// RUN: %mosaic-opt %t/sum.mlir --check-grid --target=v5e --strict --contracts='0 <= sum(lengths) <= 71' 2>&1 | FileCheck %s --check-prefix=PROVED --allow-empty
// RUN: %mosaic-opt %t/sum.mlir --check-grid --target=v5e --strict --contracts='0 <= lengths[*] <= 4' 2>&1 | FileCheck %s --check-prefix=PROVED --allow-empty
// RUN: %mosaic-opt %t/sum.mlir --check-grid --target=v5e --strict --contracts='0 <= lengths[*], sum(floordiv(lengths, 8)) <= 1' 2>&1 | FileCheck %s --check-prefix=FLOORED
// FLOORED-NOT: window-out-of-bounds
// FLOORED: can't tell whether each block of input 0 ('arg0') meets its array: it depends on sum(lengths), of which not every value need occur [window-out-of-bounds]

// Where only overflow shows it that is said.
// RUN: %mosaic-opt %t/sum.mlir --check-grid --target=v5e --contracts='sum(lengths) <= 71' 2>&1 | FileCheck %s --check-prefix=OVERFLOW
// OVERFLOW: warning: with sum(lengths) = -{{[0-9]+}}, where sum(lengths) overflows 32 bits, step (8) shows block (8, 0) of input 0 ('arg0')

// resolve-grid makes a bound static that a contract leaves one value.
// RUN: %mosaic-opt %t/bound.mlir --resolve-grid --contracts='mod(n, 8) == 0, 1 <= n <= 8' --unpacked | FileCheck %s --check-prefix=STATIC
// RUN: %mosaic-opt %t/sum.mlir --resolve-grid --contracts='sum(lengths) == 64' --unpacked | FileCheck %s --check-prefix=STATIC
// STATIC: iteration_bounds = array<i64: 8>

// partition-cores needs no choice at run time where a contract says that there is a step for each core.
// RUN: %mosaic-opt %S/../tool/Inputs/double.mlir --partition-cores --contracts='2 <= %%arg0 <= 1024' --unpacked | FileCheck %s --check-prefix=SHARED
// SHARED-NOT: stablehlo.case
// SHARED: core_parallel

// What can't be read, or kept, is one error with its place.
// RUN: %expect-exit 2 %mosaic-opt %t/bound.mlir --check-grid --contracts='n >= 1, n*m <= 3' 2>&1 | FileCheck %s --check-prefix=SYNTAX
// SYNTAX: error: contract 'n*m <= 3', column 2: the product of n and m is not linear: one factor has to be an integer
// SYNTAX-NEXT: note: n*m <= 3
// SYNTAX-NEXT: note:  ^
// RUN: %expect-exit 2 %mosaic-opt %t/bound.mlir --check-grid --contracts='n >= 5, n < 4' 2>&1 | FileCheck %s --check-prefix=CONFLICT
// CONFLICT: bound.mlir: error: contracts 'n >= 5' and 'n < 4' contradict each other
// CONFLICT-NEXT: note: n is in [-2147483648, 2147483647]
// RUN: %expect-exit 2 %mosaic-opt %t/lengths.mlir --check-grid --contracts='length[*] >= 0' 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: lengths.mlir: error: contract 'length[*] >= 0': the program has no integer argument 'length'; did you mean lengths?
// NAME-NEXT: note: it has lengths[*]
// RUN: %expect-exit 2 %mosaic-opt %t/lengths.mlir --check-grid --contracts='lengths >= 0' 2>&1 | FileCheck %s --check-prefix=ARRAY
// ARRAY: error: contract 'lengths >= 0': 'lengths' is an array
// ARRAY-NEXT: note: write lengths[*] for each of its elements

//--- bound.mlir
module {
  func.func @main(%n: tensor<i32> loc("n"), %x: tensor<64x128xf32>) -> tensor<64x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    return %0 : tensor<64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #tpu.memory_space<vmem>>, %o: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {
        iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#tpu.dimension_semantics<arbitrary>],
        window_params = [{transform_indices = @map, window_bounds = array<i64: 8, 128>}, {transform_indices = @map, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>
      return
    }
    func.func @map(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}

//--- lengths.mlir
module {
  func.func @main(%t: tensor<8xi32> loc("lengths"), %x: tensor<1024x128xf32>) -> tensor<64x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%t, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<8xi32>, tensor<1024x128xf32>) -> tensor<64x128xf32>
    return %0 : tensor<64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %t: memref<8xi32, #tpu.memory_space<smem>> loc("t"), %x: memref<8x128xf32, #tpu.memory_space<vmem>>, %o: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {
        iteration_bounds = array<i64: 8>, dimension_semantics = [#tpu.dimension_semantics<arbitrary>], scalar_prefetch = 1 : i64,
        window_params = [{transform_indices = @last, window_bounds = array<i64: 8, 128>}, {transform_indices = @map, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>
      return
    }
    func.func @last(%i: i32, %t: memref<8xi32, #tpu.memory_space<smem>>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %eight = arith.constant 8 : i32
      %at = arith.index_cast %i : i32 to index
      %n = memref.load %t[%at] : memref<8xi32, #tpu.memory_space<smem>>
      %blocks = arith.divsi %n, %eight : i32
      %b = arith.subi %blocks, %one : i32
      return %b, %zero : i32, i32
    }
    func.func @map(%i: i32, %t: memref<8xi32, #tpu.memory_space<smem>>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}

//--- sum.mlir
module {
  func.func @main(%t: tensor<16xi32> loc("lengths"), %x: tensor<64x128xf32>) -> tensor<64x128xf32> {
    %c0 = stablehlo.constant dense<0> : tensor<i32>
    %s = stablehlo.reduce(%t init: %c0) applies stablehlo.add across dimensions = [0] : (tensor<16xi32>, tensor<i32>) -> tensor<i32>
    %c8 = stablehlo.constant dense<8> : tensor<i32>
    %n = stablehlo.divide %s, %c8 : tensor<i32>
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    return %0 : tensor<64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 18 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #tpu.memory_space<vmem>>, %o: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {
        iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#tpu.dimension_semantics<arbitrary>],
        window_params = [{transform_indices = @map, window_bounds = array<i64: 8, 128>}, {transform_indices = @map, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>
      return
    }
    func.func @map(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}
