// --kernel=NAME lets passes look at some kernels only; a name that no kernel has is an error with the names there are.

// RUN: %mosaic-opt %s -p resolve-grid --kernel=left | FileCheck %s --check-prefixes=CHECK,LEFT
// RUN: %mosaic-opt %s -p resolve-grid -kernel 'r*' | FileCheck %s --check-prefixes=CHECK,RIGHT
// RUN: %mosaic-opt %s -p resolve-grid --kernel=left --kernel=right | FileCheck %s --check-prefixes=CHECK,BOTH

// RUN: %expect-exit 2 %mosaic-opt %s -p resolve-grid --kernel=lift -o %t.none 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not cat %t.none
// NONE: error: --kernel=lift matches no kernel; did you mean 'left'?
// NONE-NEXT: note: the kernels are left, right

// RUN: %mosaic-opt %s -p resolve-grid,cse --kernel=left 2>&1 >/dev/null | FileCheck %s --check-prefix=NATIVE
// NATIVE: warning: --kernel is for this tool's passes: MLIR's work on the whole program (cse)

// CHECK: func.func @main
// LEFT: tpu_custom_call(%arg0)
// LEFT: tpu_custom_call({{%[^,]+}}, %arg0)
// RIGHT: tpu_custom_call({{%[^,]+}}, %arg0)
// RIGHT: tpu_custom_call(%arg0)
// BOTH: tpu_custom_call(%arg0)
// BOTH: tpu_custom_call(%arg0)
func.func @main(%x: tensor<8xf32>) {
  %n = stablehlo.constant dense<3> : tensor<i32>
  stablehlo.custom_call @tpu_custom_call(%n, %x) {
    backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}", mosaic.kernel = @left, has_side_effect = true
  } : (tensor<i32>, tensor<8xf32>) -> ()
  stablehlo.custom_call @tpu_custom_call(%n, %x) {
    backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}", mosaic.kernel = @right, has_side_effect = true
  } : (tensor<i32>, tensor<8xf32>) -> ()
  return
}
module @left attributes {stable_mosaic.version = 15 : i64} {
  func.func @left(%i: i32, %x: memref<8xf32>) attributes {
    iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#tpu.dimension_semantics<arbitrary>],
    scalar_prefetch = 0 : i64, scratch_operands = 0 : i64, tpu.core_type = #tpu.core_type<tc>
  } {
    return
  }
}
module @right attributes {stable_mosaic.version = 15 : i64} {
  func.func @right(%i: i32, %x: memref<8xf32>) attributes {
    iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#tpu.dimension_semantics<arbitrary>],
    scalar_prefetch = 0 : i64, scratch_operands = 0 : i64, tpu.core_type = #tpu.core_type<tc>
  } {
    return
  }
}
