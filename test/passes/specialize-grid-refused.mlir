// What specialize-grid leaves alone or can't do, and why.
// RUN: split-file %s %t
// RUN: %mosaic-opt %t/one.mlir -p specialize-grid -o %t/same.mlir 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: remark: specialize-grid changed nothing: the bound of dimension 0 is n, in [-2147483648, 2147483647]: more values than the budget of 8; a contract may say less ('copy') [not-specialized]
// RUN: %mosaic-opt %t/one.mlir -p 'specialize-grid{ladder=pow2}' -o %t/same.mlir 2>&1 | FileCheck %s --check-prefix=NO-TOP
// NO-TOP: remark: specialize-grid changed nothing: the bound of dimension 0 is n, and at most 2147483647 for all that is known: a contract may say more ('copy') [not-specialized]
// RUN: %mosaic-opt %t/one.mlir -p 'specialize-grid{values=0,-3}' -o %t/same.mlir 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: remark: specialize-grid changed nothing: none of the values that are asked for can occur ('copy') [not-specialized]
// RUN: %mosaic-opt %t/one.mlir -p 'specialize-grid{values=9..16}' --contracts 'n <= 8' -o %t/same.mlir 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: %mosaic-opt %t/one.mlir -p 'specialize-grid{values=4,2,8 budget=2}' -o %t/two.out.mlir 2>&1 | FileCheck %s --check-prefix=BUDGET
// BUDGET:      remark: the kernel 'copy' gets 2 of 3 variants: more exceed the budget [not-specialized]
// BUDGET-NEXT: note: budget=N allows for more
// RUN: FileCheck %s --check-prefix=KEPT --input-file %t/two.out.mlir
// KEPT: mosaic.kernel = @copy_d0_2
// KEPT: mosaic.kernel = @copy_d0_4
// KEPT: mosaic.kernel = @copy}

// RUN: %mosaic-opt %t/static.mlir -p 'specialize-grid{values=4}' -o %t/same.mlir 2>&1 | FileCheck %s --check-prefix=STATIC
// STATIC-NOT: '0'
// STATIC:     remark: specialize-grid changed nothing: its grid is static ('copy')
// RUN: %mosaic-opt %t/aliased.mlir -p 'specialize-grid{values=4}' -o %t/same.mlir 2>&1 | FileCheck %s --check-prefix=ALIASED
// ALIASED: remark: specialize-grid changed nothing: the bound of dimension 0 is aliased by an output ('copy')
// RUN: %mosaic-opt %t/cores.mlir -p 'specialize-grid{values=2}' -o %t/same.mlir 2>&1 | FileCheck %s --check-prefix=CORES
// CORES: remark: specialize-grid changed nothing: dimension 0 is core_parallel: it counts cores, not steps ('copy')
// RUN: %mosaic-opt %t/inner.mlir -p 'specialize-grid{values=8 bucket=round-up}' --target=v5p -o %t/same.mlir 2>&1 | FileCheck %s --check-prefix=LOSES
// LOSES: remark: specialize-grid changed nothing: a guard would keep the compiler from sharing dimension 1 between the cores ('copy')
// With one core there is nothing to lose.
// RUN: %mosaic-opt %t/inner.mlir -p 'specialize-grid{values=8 bucket=round-up}' --target=v5e | FileCheck %s --check-prefix=ONE-CORE
// ONE-CORE: iteration_bounds = array<i64: 8, 4>

// All steps write one block, which only a dynamic bound has kept from being a race: the variant runs them in order.
// RUN: %mosaic-opt %t/race.mlir -p 'specialize-grid{values=8}' --target=v5p -o %t/race.out.mlir 2>&1 | FileCheck %s --check-prefix=RACE
// RACE: remark: the static variants of 'race' aren't shared between cores along dimension 0: {{.*}} [not-partitioned]
// RUN: FileCheck %s --check-prefix=ORDERED --input-file %t/race.out.mlir
// ORDERED:      module @race_d0_8
// ORDERED:      dimension_semantics = [#tpu.dimension_semantics<arbitrary>], iteration_bounds = array<i64: 8>

// What isn't proved and nothing speaks against is taken from the kernel's author, and said, of either kind of variant.
// RUN: %mosaic-opt %S/partition-cores-trusted.mlir --split-input-file -p 'specialize-grid{values=4}' --target=v5p -o /dev/null 2>&1 | FileCheck %s --check-prefix=TRUST
// RUN: %mosaic-opt %S/partition-cores-trusted.mlir --split-input-file -p 'specialize-grid{values=4 bucket=round-up}' --target=v5p -o /dev/null 2>&1 | FileCheck %s --check-prefix=TRUST
// TRUST-COUNT-1: remark: the kernel 'scatter' is shared along dimension 0 on its author's word: {{.*}} [parallel-on-trust]
// TRUST-NOT:     scatter

// RUN: %mosaic-opt %t/one.mlir -p 'specialize-grid{values=m=8}' -o %t/same.mlir 2>&1 | FileCheck %s --check-prefix=NAME
// NAME:      remark: specialize-grid has values for 'm', but no kernel has such a dynamic bound [no-such-bound]
// NAME-NEXT: note: 'copy' has dimension 0: n
// RUN: %mosaic-opt %t/one.mlir -p 'specialize-grid{values=1=8}' -o %t/same.mlir 2>&1 | FileCheck %s --check-prefix=DIMENSION
// DIMENSION: remark: specialize-grid has values for '1', but no kernel has such a dynamic bound [no-such-bound]
// RUN: %mosaic-opt %t/one.mlir -p 'specialize-grid{values=other:n=8}' -o %t/same.mlir 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: remark: specialize-grid has values for 'other:n', but no kernel has such a dynamic bound [no-such-bound]
// RUN: %expect-exit 2 %mosaic-opt %t/one.mlir -p 'specialize-grid{values=8..}' 2>&1 | FileCheck %s --check-prefix=SYNTAX
// SYNTAX: pipeline:1:17: error: pass 'specialize-grid': '8..' is no value of a bound: it is 8, 1..4, DIMENSION=8, NAME=8 or KERNEL:NAME=8
// RUN: %expect-exit 2 %mosaic-opt %t/one.mlir -p 'specialize-grid{target=v5x}' 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: error: pass 'specialize-grid': option 'target': unknown target 'v5x'; did you mean 'v5p'?
// RUN: %expect-exit 2 %mosaic-opt %t/one.mlir -p 'specialize-grid{values=@%t/nothing}' 2>&1 | FileCheck %s --check-prefix=NO-FILE
// NO-FILE: nothing: error: can't read the values of bounds: no such file or directory
// RUN: %expect-exit 2 %mosaic-opt %t/one.mlir -p 'specialize-grid{values=@%t/bad.txt}' 2>&1 | FileCheck %s --check-prefix=BAD-FILE
// BAD-FILE: bad.txt:2: error: 'n=eight' is no value of a bound
// RUN: %mosaic-opt %t/one.mlir -p 'specialize-grid{values=@%t/good.txt}' | FileCheck %s --check-prefix=FILE
// FILE: mosaic.kernel = @copy_d0_3}
// FILE: mosaic.kernel = @copy_d0_8}
// FILE: mosaic.kernel = @copy_d0_9}

//--- bad.txt
n=4
n=eight
//--- good.txt
# what the service sees on Mondays
n=8,9   # and on Tuesdays
copy:0=3
//--- one.mlir
module {
  func.func @one(%n: tensor<i32> loc("n"), %x: tensor<256x512xf32>) -> tensor<256x512xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<256x512xf32>) -> tensor<256x512xf32>
    return %0 : tensor<256x512xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %x: memref<256x512xf32, #tpu.memory_space<vmem>>, %o: memref<256x512xf32, #tpu.memory_space<vmem>>)
        attributes {iteration_bounds = array<i64: -9223372036854775808>} {
      return
    }
  }
}
//--- static.mlir
module {
  func.func @static(%x: tensor<256x512xf32>) -> tensor<256x512xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<256x512xf32>) -> tensor<256x512xf32>
    return %0 : tensor<256x512xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %x: memref<256x512xf32, #tpu.memory_space<vmem>>, %o: memref<256x512xf32, #tpu.memory_space<vmem>>)
        attributes {iteration_bounds = array<i64: 8>} {
      return
    }
  }
}
//--- aliased.mlir
module {
  func.func @aliased(%n: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}",
        output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]
      } : (tensor<i32>) -> tensor<i32>
    return %0 : tensor<i32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %o: memref<i32, #tpu.memory_space<smem>>) attributes {iteration_bounds = array<i64: -9223372036854775808>} {
      return
    }
  }
}
//--- cores.mlir
module {
  func.func @cores(%n: tensor<i32>, %x: tensor<256x512xf32>) -> tensor<256x512xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<256x512xf32>) -> tensor<256x512xf32>
    return %0 : tensor<256x512xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %x: memref<256x512xf32, #tpu.memory_space<vmem>>, %o: memref<256x512xf32, #tpu.memory_space<vmem>>)
        attributes {iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#tpu.dimension_semantics<core_parallel>]} {
      return
    }
  }
}
//--- inner.mlir
module {
  func.func @inner(%n: tensor<i32>, %x: tensor<256x512xf32>) -> tensor<256x512xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<256x512xf32>) -> tensor<256x512xf32>
    return %0 : tensor<256x512xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %j: i32, %x: memref<256x512xf32, #tpu.memory_space<vmem>>, %o: memref<256x512xf32, #tpu.memory_space<vmem>>)
        attributes {iteration_bounds = array<i64: -9223372036854775808, 4>,
                    dimension_semantics = [#tpu.dimension_semantics<arbitrary>, #tpu.dimension_semantics<parallel>]} {
      return
    }
  }
}
//--- race.mlir
module {
  func.func @writes(%n: tensor<i32>, %x: tensor<256x512xf32>) -> tensor<8x512xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @race, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<256x512xf32>) -> tensor<8x512xf32>
    return %0 : tensor<8x512xf32>
  }
  module @race attributes {stable_mosaic.version = 15 : i64} {
    func.func @race(%i: i32, %x: memref<8x512xf32, #tpu.memory_space<vmem>>, %o: memref<8x512xf32, #tpu.memory_space<vmem>>)
        attributes {iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#tpu.dimension_semantics<parallel>],
                    window_params = [{transform_indices = @row, window_bounds = array<i64: 8, 512>},
                                     {transform_indices = @first, window_bounds = array<i64: 8, 512>}]} {
      %c0 = arith.constant 0 : index
      %block = vector.load %x[%c0, %c0] : memref<8x512xf32, #tpu.memory_space<vmem>>, vector<8x512xf32>
      tpu.vector_store %o[%c0, %c0], %block {strides = array<i32>} : memref<8x512xf32, #tpu.memory_space<vmem>>, vector<8x512xf32>,
      return
    }
    func.func @row(%i: i32) -> (i32, i32) {
      %c0 = arith.constant 0 : i32
      return %i, %c0 : i32, i32
    }
    func.func @first(%i: i32) -> (i32, i32) {
      %c0 = arith.constant 0 : i32
      return %c0, %c0 : i32, i32
    }
  }
}
