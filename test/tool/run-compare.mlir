// --compare runs two programs on the same inputs: where they differ, by how much, and which step of which kernel wrote it.

// A program and what a pass makes of it are equal bit for bit, whatever the bound.
// RUN: %mosaic-run %S/Inputs/double.mlir -p partition-cores --target=v5p --bounds 0 --compare %S/Inputs/double.mlir | FileCheck %s --check-prefix=SAME
// RUN: %mosaic-run %S/Inputs/double.mlir -p partition-cores --target=v5p --bounds 1 --compare %S/Inputs/double.mlir | FileCheck %s --check-prefix=SAME
// RUN: %mosaic-run %S/Inputs/double.mlir -p partition-cores --target=v5p --bounds 127 --compare %S/Inputs/double.mlir | FileCheck %s --check-prefix=SAME
// RUN: %mosaic-run %S/Inputs/double.mlir -p partition-cores --target=v5p --bounds 127 --cores-interleaved=3 --compare %S/Inputs/double.mlir | FileCheck %s --check-prefix=SAME
// SAME: {{^}}result 0: f32[1024,256]: equal{{$}}
// SAME-NOT: {{.}}

// The other kernel adds 3 where this one adds the number itself.
// RUN: sed 's/%%1 = arith.addf %%0, %%0/%%c = arith.constant dense<3.0> : vector<8x128xf32> %%1 = arith.addf %%0, %%c/' %S/Inputs/double.mlir > %t.plus
// RUN: %expect-exit 1 %mosaic-run %S/Inputs/double.mlir --bounds 4 --input 1=iota --compare %t.plus | FileCheck %s --check-prefix=PLUS
// PLUS: {{^}}result 0: f32[1024,256]: 8191 of 262144 elements differ
// PLUS-NEXT: {{^}}  at most 8188 apart, 1 relative to {{.*}}.plus
// PLUS-NEXT: {{^}}  first at [0, 0]: 0.0 in {{.*}}double.mlir, 3.0 in {{.*}}.plus
// PLUS-NEXT: {{^}}  {{.*}}double.mlir: step (0, 0) of 'double' wrote it last
// PLUS-NEXT: {{^}}  {{.*}}.plus: step (0, 0) of 'double' wrote it last

// A tolerance is for what is told apart only by rounding.
// RUN: %mosaic-run %S/Inputs/double.mlir --bounds 4 --input 1=iota --atol=8188 --compare %t.plus | FileCheck %s --check-prefix=CLOSE
// CLOSE: equal, within the tolerance: at most 8188 apart, 1 relative

// What a fallback chose is computed by no launch alone.
// RUN: %expect-exit 1 %mosaic-run %t.plus -p partition-cores --target=v5p --bounds 4 --input 1=iota --compare %S/Inputs/double.mlir | FileCheck %s --check-prefix=CASE
// CASE: .plus: the grid point is not known: no launch wrote it: stablehlo.case computed it
// CASE-NEXT: double.mlir: step (0, 0) of 'double' wrote it last

module {}
