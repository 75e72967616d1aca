// Variants are kept for what the real compiler makes of them; the table says it.
// REQUIRES: libtpu
// RUN: %mosaic-opt %s -p 'specialize-grid{values=1,8 keep=profitable target=v5p}' -o /dev/null 2>&1 | FileCheck %s
// CHECK:      remark: specialize-grid keeps 2 of 2 variants of 'last' for v5p [variants-kept]
// CHECK-NEXT: note: variant  bundles per step  in all  cores  code bytes  seconds
// CHECK-NEXT: note: (?, 1) {{[0-9]+}} {{[0-9]+}} 1 {{[0-9]+}} {{[0-9.]+$}}
// a grid of one step has no loop: the step is all of it
// CHECK-NEXT: note: (1, 1) [[ONE:[0-9]+]] [[ONE]] 1 {{[0-9]+}} {{[0-9.]+}} kept: {{[0-9.]+}}% better
// CHECK-NEXT: note: (8, 1) {{[0-9]+}} {{[0-9]+}} 2 {{[0-9]+}} {{[0-9.]+}} kept: {{[0-9.]+}}% better

// Nothing gains all of it, and the program stays as it is.
// RUN: %mosaic-opt %s -p 'specialize-grid{values=8 keep=profitable min-gain=100}' --target=v5e -o %t.none 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: remark: specialize-grid keeps 0 of 1 variants of 'last' for v5e
// NONE: note: (8, 1) {{.*}} dropped: {{[0-9.]+}}% {{better|worse}}, it takes 100%
// RUN: %mosaic-opt %s -o %t.same
// RUN: diff %t.none %t.same

// A bucket of a parallel dimension is shared between the cores, if each has a step.
// RUN: %mosaic-opt %s -p 'specialize-grid{values=8,16 bucket=round-up}' --target=v5p --compile=v5p -o /dev/null | FileCheck %s --check-prefix=BUCKET
// BUCKET:      last: v5p: compiles, cores used: 2 of 2, {{[0-9]+}} bundles (branch 0 of 3)
// BUCKET-NEXT: last: v5p: compiles, cores used: 2 of 2, {{[0-9]+}} bundles (branch 1 of 3)
// BUCKET-NEXT: last: v5p: compiles, cores used: 1 of 2, {{[0-9]+}} bundles (branch 2 of 3)

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>
module {
  func.func @main(%n: tensor<i32>, %x: tensor<256x512xf32>) -> tensor<256x512xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {
        mosaic.kernel = @last, kernel_name = "last", backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22serialization_format\22: 1, \22needs_layout_passes\22: true}}",
        operand_layouts = [dense<> : tensor<0xindex>, dense<[1, 0]> : tensor<2xindex>],
        result_layouts = [dense<[1, 0]> : tensor<2xindex>]
      } : (tensor<i32>, tensor<256x512xf32>) -> tensor<256x512xf32>
    return %0 : tensor<256x512xf32>
  }
  module @last attributes {stable_mosaic.version = 15 : i64} {
    func.func @last(%i: i32, %j: i32, %x: memref<8x512xf32, #vmem>, %o: memref<8x512xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808, 1>, dimension_semantics = [#parallel, #arbitrary],
        scalar_prefetch = 0 : i64, scratch_operands = 0 : i64, tpu.core_type = #tpu.core_type<tc>,
        window_params = [{transform_indices = @rows, window_bounds = array<i64: 8, 512>},
                         {transform_indices = @rows, window_bounds = array<i64: 8, 512>}]} {
      %c0 = arith.constant 0 : index
      %one = arith.constant 1 : i32
      %block = vector.load %x[%c0, %c0] : memref<8x512xf32, #vmem>, vector<8x512xf32>
      tpu.vector_store %o[%c0, %c0], %block {strides = array<i32>} : memref<8x512xf32, #vmem>, vector<8x512xf32>,
      %n = tpu.iteration_bound 0 : i32
      %last = arith.subi %n, %one : i32
      %is_last = arith.cmpi eq, %i, %last : i32
      scf.if %is_last {
        %sum = arith.addf %block, %block : vector<8x512xf32>
        tpu.vector_store %o[%c0, %c0], %sum {strides = array<i32>} : memref<8x512xf32, #vmem>, vector<8x512xf32>,
      }
      return
    }
    func.func @rows(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
  }
}
