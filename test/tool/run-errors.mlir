// What can't be run is one message that says what to do; a wrong command line too.

// RUN: %expect-exit 2 %mosaic-run 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: {{^}}error: the program to run is not given
// NONE-NEXT: note: give one dump, '-' for standard input; or --help

// RUN: %expect-exit 2 %mosaic-run %s --tim 2>&1 | FileCheck %s --check-prefix=FLAG
// FLAG: {{^}}error: unknown flag '--tim'; did you mean '--time'?

// RUN: %expect-exit 2 %mosaic-run %s.missing 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: .missing: error: can't read the input: no such file or directory

// RUN: %expect-exit 2 %mosaic-run %S/Inputs 2>&1 | FileCheck %s --check-prefix=FOLDER
// FOLDER: Inputs: error: this directory holds {{[0-9]+}} dumps; one program is run at a time

// RUN: %expect-exit 2 %mosaic-run %S/Inputs/double.mlir 2>&1 | FileCheck %s --check-prefix=BOUND
// BOUND: {{^}}error: a bound of a grid is an argument, and it isn't given
// BOUND-NEXT: note: argument 0 is the bound of dimension 0 of 'double'
// BOUND-NEXT: note: give --bounds arg0=N

// RUN: %expect-exit 2 %mosaic-run %S/Inputs/double.mlir --bounds m=3 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: {{^}}error: --bounds: the program has no argument 'm'
// NAME-NEXT: note: the arguments that are one integer: arg0 (dimension 0 of 'double')

// RUN: %expect-exit 2 %mosaic-run %S/Inputs/double.mlir --bounds 3 --input 1=foo 2>&1 | FileCheck %s --check-prefix=VALUE
// VALUE: {{^}}error: argument 1: 'foo' is no value
// VALUE-NEXT: note: a value is FILE.npy

// RUN: %expect-exit 2 %mosaic-run %S/Inputs/double.mlir --bounds 3 -o %t.txt 2>&1 | FileCheck %s --check-prefix=SUFFIX
// SUFFIX: {{^}}error: -o writes arrays: '{{.*}}.txt' should end in .npz, or in .npy for one array
// RUN: %expect-exit 2 %mosaic-run %S/Inputs/double.mlir --bounds 3 -o %t.none/a.npz 2>&1 | FileCheck %s --check-prefix=PLACE
// PLACE: a.npz: error: can't write the output: there is no directory '{{.*}}.none'

// RUN: %expect-exit 2 %mosaic-run %S/Inputs/double.mlir --rtol=1 2>&1 | FileCheck %s --check-prefix=TOLERANCE
// TOLERANCE: {{^}}error: a tolerance is for --compare, which is not given
// RUN: %expect-exit 2 %mosaic-run %S/Inputs/double.mlir --print --format=json 2>&1 | FileCheck %s --check-prefix=PRINT
// PRINT: {{^}}error: --print is for text, and not for --format=json

// RUN: %expect-exit 2 %mosaic-run %S/Inputs/double.mlir -p resolve-gird 2>&1 | FileCheck %s --check-prefix=PASS
// PASS: error: unknown pass 'resolve-gird'; did you mean 'resolve-grid'?

// RUN: split-file %s %t
// RUN: %expect-exit 2 %mosaic-run %t/kernel.mlir 2>&1 | FileCheck %s --check-prefix=KERNEL
// KERNEL: kernel.mlir: error: a bare kernel can't be run: only a launch says what arrays its windows are windows of
// KERNEL-NEXT: note: give the whole lowered program: jax.jit(f)
// RUN: %expect-exit 2 %mosaic-run %t/devices.mlir 2>&1 | FileCheck %s --check-prefix=DEVICES
// DEVICES: devices.mlir: error: the program is for 4 devices and can't be run: on the CPU there is one
// DEVICES-NEXT: note: lower the function for one device
// RUN: %expect-exit 2 %mosaic-run %t/symbolic.mlir 2>&1 | FileCheck %s --check-prefix=SYMBOLIC
// SYMBOLIC: symbolic.mlir: error: the program has symbolic shapes and can't be run: argument 0 is a tensor<?xf32>
// SYMBOLIC-NEXT: note: lower the function for the shapes that it is to run with
// RUN: %expect-exit 2 %mosaic-run %t/token.mlir 2>&1 | FileCheck %s --check-prefix=TOKEN
// TOKEN: error: argument 0 of the program is a !stablehlo.token
// RUN: %expect-exit 2 %mosaic-run %t/nomain.mlir 2>&1 | FileCheck %s --check-prefix=NOMAIN
// NOMAIN: nomain.mlir: error: the program has no function @main that could be run
// NOMAIN-NEXT: note: its functions are @f, @g
// RUN: %expect-exit 2 %mosaic-run %t/odd.mlir 2>&1 | FileCheck %s --check-prefix=ODD
// ODD: odd.mlir:2:3: error: the program can't be run: 'odd.op' is of a dialect that is not known
// RUN: %expect-exit 2 %mosaic-run %t/hlo.txt 2>&1 | FileCheck %s --check-prefix=HLO
// HLO: hlo.txt: error: this HLO module launches no Mosaic kernel

// An operation without a rule is named at its line, and all of them at once.
// RUN: %expect-exit 2 %mosaic-run %t/two.mlir 2>&1 | FileCheck %s --check-prefix=TWO
// TWO: two.mlir:{{[0-9]+}}:{{[0-9]+}}: error: the kernel 'two' can't be lowered for the CPU: 2 operations in it can't
// TWO-NEXT: note: {{.*}}two.mlir:[[#LINE:]]:{{[0-9]+}}: vector.print has no rule
// TWO-NEXT: note: {{.*}}two.mlir:[[#LINE+1]]:{{[0-9]+}}: vector.print has no rule

//--- kernel.mlir
module attributes {stable_mosaic.version = 15 : i64} {
  func.func @f() attributes {tpu.core_type = #tpu.core_type<tc>} {
    return
  }
}
//--- devices.mlir
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main() {
    return
  }
}
//--- symbolic.mlir
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
//--- token.mlir
func.func @main(%x: !stablehlo.token) {
  return
}
//--- nomain.mlir
func.func @f() {
  return
}
func.func @g() {
  return
}
//--- odd.mlir
func.func @main() {
  "odd.op"() : () -> ()
  return
}
//--- hlo.txt
HloModule jit_f, entry_computation_layout={(f32[])->f32[]}

ENTRY %main (x: f32[]) -> f32[] {
  ROOT %x = f32[] parameter(0)
}
//--- two.mlir
func.func @main(%x: tensor<8x128xf32>) -> tensor<8x128xf32> {
  %0 = stablehlo.custom_call @tpu_custom_call(%x) {backend_config = "{}", mosaic.kernel = @two}
      : (tensor<8x128xf32>) -> tensor<8x128xf32>
  return %0 : tensor<8x128xf32>
}
module @two attributes {stable_mosaic.version = 15 : i64} {
  func.func @two(%x: memref<8x128xf32, #tpu.memory_space<vmem>>, %o: memref<8x128xf32, #tpu.memory_space<vmem>>)
      attributes {scalar_prefetch = 0 : i64, scratch_operands = 0 : i64, tpu.core_type = #tpu.core_type<tc>} {
    %c0 = arith.constant 0 : index
    %0 = vector.load %x[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>
    vector.print %0 : vector<8x128xf32>
    vector.print %0 : vector<8x128xf32>
    return
  }
}
