// --compile asks the real compiler about the program that the passes have left.
// REQUIRES: libtpu
// The libtpu of an older JAX refuses a launch with the fields of a newer one.
// UNSUPPORTED: jax-0.10

// RUN: %mosaic-opt %S/Inputs/double.mlir --compile=v5p,v5e | FileCheck %s
// CHECK: {{^}}double: v5p: compiles, cores used: 1 of 2, {{[0-9]+}} bundles{{$}}
// CHECK-NEXT: {{^}}double: v5e: compiles, cores used: 1 of 1, {{[0-9]+}} bundles{{$}}

// RUN: %mosaic-opt %S/Inputs/double.mlir -p partition-cores --compile=v5p --compile-format=json -o %t | FileCheck %s --check-prefix=JSON
// JSON: "input": "{{.*}}double.mlir"
// JSON: "target": "v5p"
// JSON: "branch": "branch 0 of 2"
// JSON: "branch": "branch 1 of 2"
// JSON: "cores_used": 2
// JSON: "bundles": {{[0-9]+}}
// JSON-NEXT: "step_bundles": {{[0-9]+}}
// RUN: FileCheck %s --check-prefix=WRITTEN --input-file %t
// WRITTEN: core_parallel

// Launches in the branches of a choice at run time are told apart:
// RUN: %mosaic-opt %S/Inputs/double.mlir -p partition-cores --compile=v5p | FileCheck %s --check-prefix=BRANCHES
// BRANCHES: {{^}}double: v5p: compiles, cores used: 1 of 2, {{[0-9]+}} bundles (branch 0 of 2){{$}}
// BRANCHES-NEXT: {{^}}double: v5p: compiles, cores used: 2 of 2, {{[0-9]+}} bundles (branch 1 of 2){{$}}

// What the compiler refuses is an error in the program:
// RUN: sed s/f32/f64/g %S/Inputs/double.mlir > %t.f64
// RUN: %expect-exit 1 %mosaic-opt %t.f64 --compile=v5p | FileCheck %s --check-prefix=REFUSED
// REFUSED: double: v5p: does not compile: {{.+}}
