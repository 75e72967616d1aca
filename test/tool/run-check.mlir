// mosaic-run --check watches the kernels and says what they do wrong: where, at which grid point, and how often.

// RUN: split-file %s %t.split
// RUN: %expect-exit 1 %mosaic-run %t.split/sum.mlir --check --input x=iota 2>%t.errors | FileCheck %s --check-prefix=RESULT
// RUN: FileCheck %s --check-prefix=ERRORS < %t.errors
// ERRORS: {{^}}sum.py:4:2: error: 'sum' writes elements of 'o' that grid point (0) has written, maybe on another core, first at grid point (1), 3 times in all [core-race]
// ERRORS-NEXT: {{^}}note: steps that differ in dimension 0 (parallel) may run on different cores, in any order
// ERRORS-NEXT: {{^}}sum.py:9:7: error: 'sum' reads 1024 elements of 'o' that nobody wrote, and results depend on them, at grid point (0) [unwritten-read]
// ERRORS-NOT: {{.}}
// RESULT: {{^}}result type min max mean NaN sha256
// RESULT-NEXT: {{^}}0 f32[8,128] - - - 1024 {{[0-9a-f]+$}}
// RESULT-NOT: {{.}}

// Without it the program runs as it is, and only NaN is told of; of one that is right it is said that it is.
// RUN: %mosaic-run %t.split/sum.mlir --input x=iota | FileCheck %s --check-prefix=RESULT
// RUN: %mosaic-run %t.split/sum.mlir --input x=iota 2>&1 >%t.table | FileCheck %s --check-prefix=NAN
// NAN: {{^}}note: memory that nobody wrote holds NaN, {{.*}} --check says where it comes from{{$}}
// NAN-NOT: {{.}}
// RUN: %mosaic-run %S/Inputs/double.mlir --check --bounds 128 2>&1 | FileCheck %s --check-prefix=RIGHT
// RIGHT: {{^}}remark: check: nothing found
// RIGHT-NEXT: {{^}}result
// RIGHT-NEXT: {{^}}0 f32[1024,256] {{.*}} 0 {{[0-9a-f]+$}}
// RIGHT-NOT: {{.}}

// A warning is no error.
// RUN: %mosaic-run %S/Inputs/double.mlir --check --bounds 3 2>&1 >%t.table | FileCheck %s --check-prefix=WARNING
// WARNING: warning: 'double' leaves 256000 of 262144 elements of output 0 unwritten, the first at [24, 0] [output-not-written]
// WARNING-NOT: {{.}}

// A wait that is never met is an error in any run, and then there are no results.
// RUN: %expect-exit 1 %mosaic-run %t.split/stuck.mlir 2>&1 | FileCheck %s --check-prefix=STUCK
// RUN: %expect-exit 1 %mosaic-run %t.split/stuck.mlir --time 2>&1 | FileCheck %s --check-prefix=STUCK
// STUCK: {{^}}wait.py:3:1: error: 'wait' waits for semaphore 'ready' in vain: it counts 0, and 2 are waited for, first at grid point (0), 2 times in all [stuck-wait]
// STUCK-NOT: {{.}}

// What the kernel's author checks and prints is told by a check, and by nothing else.
// RUN: %mosaic-run %t.split/says.mlir 2>&1 | FileCheck %s --check-prefix=SILENT
// SILENT: {{^}}result
// SILENT-NEXT: {{^}}0 f32[8,128] {{.*$}}
// SILENT-NOT: {{.}}
// RUN: %expect-exit 1 %mosaic-run %t.split/says.mlir --check 2>&1 >%t.table | FileCheck %s --check-prefix=SAYS
// SAYS: {{^}}says.py:3:1: error: 'says' fails a check of its own: one step is enough, at grid point (1) [failed-check]
// SAYS-NEXT: {{^}}says.py:5:1: error: 'says' reads elements 1 to 8 of dimension 0 of 'x', which has 8, at grid point (1) [out-of-bounds-read]
// SAYS-NEXT: {{^}}says.py:4:1: remark: 'says' prints 'step 0', first at grid point (0), 2 times in all [kernel-print]
// SAYS-NOT: {{.}}

// Findings are in the JSON too.
// RUN: %expect-exit 1 %mosaic-run %t.split/sum.mlir --check --input x=iota --format=json 2>%t.errors | FileCheck %s --check-prefix=JSON
// JSON: "findings": [
// JSON-NEXT: {
// JSON-NEXT: "name": "core-race",
// JSON-NEXT: "severity": "error",
// JSON-NEXT: "message": "'sum' writes elements of 'o' that grid point (0) has written, maybe on another core, first at grid point (1), 3 times in all",
// JSON-NEXT: "file": "sum.py",
// JSON-NEXT: "line": 4,
// JSON-NEXT: "column": 2,
// JSON-NEXT: "notes": [
// JSON-NEXT: "steps that differ in dimension 0 (parallel) may run on different cores, in any order"

// RUN: %expect-exit 2 %mosaic-run %t.split/sum.mlir --check --time 2>&1 | FileCheck %s --check-prefix=TIME
// TIME: error: --time measures a program that isn't watched
// TIME-NEXT: note: leave out --check
// RUN: %expect-exit 2 %mosaic-run %t.split/sum.mlir --check --dma=late 2>&1 | FileCheck %s --check-prefix=LATE
// LATE: error: where kernels are checked, copies land at once
// LATE-NEXT: note: leave out --dma=late

//--- sum.mlir
func.func @main(%x: tensor<32x128xf32> loc("x")) -> tensor<8x128xf32> {
  %0 = stablehlo.custom_call @tpu_custom_call(%x) {backend_config = "{}", mosaic.kernel = @sum}
      : (tensor<32x128xf32>) -> tensor<8x128xf32> loc("sum.py":4:2)
  return %0 : tensor<8x128xf32>
}
module @sum attributes {stable_mosaic.version = 15 : i64} {
  func.func @sum(%i: i32, %x: memref<8x128xf32, #tpu.memory_space<vmem>> loc("x"),
                 %o: memref<8x128xf32, #tpu.memory_space<vmem>> loc("o")) attributes {
    dimension_semantics = [#tpu.dimension_semantics<parallel>], iteration_bounds = array<i64: 4>,
    scalar_prefetch = 0 : i64, scratch_operands = 0 : i64, tpu.core_type = #tpu.core_type<tc>,
    window_params = [{transform_indices = @rows, window_bounds = array<i64: 8, 128>},
                     {transform_indices = @same, window_bounds = array<i64: 8, 128>}]
  } {
    %c0 = arith.constant 0 : index
    %0 = vector.load %x[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>
    %1 = vector.load %o[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32> loc("sum.py":9:7)
    %2 = arith.addf %0, %1 : vector<8x128xf32>
    vector.store %2, %o[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>
    return
  }
  func.func @rows(%i: i32) -> (i32, i32) {
    %c0 = arith.constant 0 : i32
    return %i, %c0 : i32, i32
  }
  func.func @same(%i: i32) -> (i32, i32) {
    %c0 = arith.constant 0 : i32
    return %c0, %c0 : i32, i32
  }
}

//--- says.mlir
func.func @main(%x: tensor<8x128xf32>) -> tensor<8x128xf32> {
  %0 = stablehlo.custom_call @tpu_custom_call(%x) {backend_config = "{}", mosaic.kernel = @says}
      : (tensor<8x128xf32>) -> tensor<8x128xf32>
  return %0 : tensor<8x128xf32>
}
module @says attributes {stable_mosaic.version = 15 : i64} {
  func.func @says(%i: i32, %x: memref<8x128xf32, #tpu.memory_space<vmem>> loc("x"),
                  %o: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {
    dimension_semantics = [#tpu.dimension_semantics<arbitrary>], iteration_bounds = array<i64: 2>,
    scalar_prefetch = 0 : i64, scratch_operands = 0 : i64, tpu.core_type = #tpu.core_type<tc>,
    window_params = [{transform_indices = @same, window_bounds = array<i64: 8, 128>},
                     {transform_indices = @same, window_bounds = array<i64: 8, 128>}]
  } {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : i32
    %first = arith.cmpi slt, %i, %c1 : i32
    cf.assert %first, "one step is enough" loc("says.py":3:1)
    tpu.log "step" : [%i] : i32 loc("says.py":4:1)
    %row = arith.index_cast %i : i32 to index
    %0 = vector.load %x[%row, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32> loc("says.py":5:1)
    vector.store %0, %o[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>
    return
  }
  func.func @same(%i: i32) -> (i32, i32) {
    %c0 = arith.constant 0 : i32
    return %c0, %c0 : i32, i32
  }
}

//--- stuck.mlir
func.func @main(%x: tensor<8x128xf32>) -> tensor<8x128xf32> {
  %0 = stablehlo.custom_call @tpu_custom_call(%x) {backend_config = "{}", mosaic.kernel = @wait}
      : (tensor<8x128xf32>) -> tensor<8x128xf32>
  return %0 : tensor<8x128xf32>
}
module @wait attributes {stable_mosaic.version = 15 : i64} {
  func.func @wait(%i: i32, %x: memref<8x128xf32, #tpu.memory_space<vmem>>,
                  %o: memref<8x128xf32, #tpu.memory_space<vmem>>,
                  %s: memref<!tpu.semaphore, #tpu.memory_space<semaphore_mem>> loc("ready")) attributes {
    dimension_semantics = [#tpu.dimension_semantics<arbitrary>], iteration_bounds = array<i64: 2>,
    scalar_prefetch = 0 : i64, scratch_operands = 1 : i64, tpu.core_type = #tpu.core_type<tc>,
    window_params = [{transform_indices = @same, window_bounds = array<i64: 8, 128>},
                     {transform_indices = @same, window_bounds = array<i64: 8, 128>}]
  } {
    %k2 = arith.constant 2 : i32
    tpu.sem_wait %s, %k2 : memref<!tpu.semaphore, #tpu.memory_space<semaphore_mem>> loc("wait.py":3:1)
    return
  }
  func.func @same(%i: i32) -> (i32, i32) {
    %c0 = arith.constant 0 : i32
    return %c0, %c0 : i32, i32
  }
}
