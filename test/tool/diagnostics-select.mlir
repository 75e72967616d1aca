// Which diagnostics are reported, and as what: levels, suppression by kernel, and a baseline of what is known.

// RUN: %expect-exit 0 %mosaic-opt %S/Inputs/double.mlir --check-grid 2>&1 | FileCheck %s --check-prefix=WARNING
// RUN: %expect-exit 0 %mosaic-opt %S/Inputs/double.mlir --check-grid --contracts='%%arg0 <= 128' --Werror --warn=idle-cores 2>&1 | FileCheck %s --check-prefix=WARNING
// WARNING: warning: parallel dimension 0 has a dynamic bound: {{.*}} [idle-cores]

// RUN: %expect-exit 1 %mosaic-opt %S/Inputs/double.mlir --check-grid --Werror 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: %expect-exit 1 %mosaic-opt %S/Inputs/double.mlir --check-grid --Werror=idle-cores 2>&1 | FileCheck %s --check-prefix=ERROR
// ERROR: error: parallel dimension 0 has a dynamic bound: {{.*}} [idle-cores]

// RUN: %mosaic-opt %S/Inputs/double.mlir --check-grid --no-warn=idle-cores 2>&1 | FileCheck %s --check-prefix=NONE --allow-empty
// RUN: %mosaic-opt %S/Inputs/double.mlir --check-grid --contracts='%%arg0 <= 128' --Werror --suppress='idle-cores:dou*' 2>&1 | FileCheck %s --check-prefix=NONE --allow-empty
// NONE-NOT: idle-cores

// RUN: %expect-exit 1 %mosaic-opt %S/Inputs/double.mlir --check-grid --Werror --suppress='idle-cores:dubble' 2>&1 | FileCheck %s --check-prefixes=ERROR,UNUSED
// UNUSED: {{^}}warning: --suppress=idle-cores:dubble matches no kernel; did you mean 'double'?
// UNUSED-NEXT: note: the kernels are double
// RUN: %expect-exit 0 %mosaic-opt %S/Inputs/double.mlir %s --check-grid --warn=zero-trip-grid --suppress='idle-cores:double' 2>&1 | FileCheck %s --check-prefix=USED
// USED-NOT: --suppress

// A baseline takes the findings of a run; the next run is silent about them, and only about them.
// RUN: %mosaic-opt %S/Inputs/double.mlir --check-grid --Werror --write-baseline=%t.json 2>&1 | FileCheck %s --check-prefix=WRITTEN
// WRITTEN: {{^}}note: 3 findings written to {{.*}}.json, which --baseline reads
// RUN: %mosaic-opt %S/Inputs/double.mlir --check-grid --Werror --baseline=%t.json 2>&1 | FileCheck %s --check-prefix=NONE --allow-empty
// RUN: %expect-exit 1 %mosaic-opt %S/Inputs/double.mlir %s --check-grid --Werror --baseline=%t.json 2>&1 | FileCheck %s --check-prefix=NEW
// NEW-NOT: idle-cores
// NEW: error: grid dimension 0 has bound 0: the kernel never runs, and outputs are not written [zero-trip-grid]

// What a check couldn't decide is a warning on request.
// RUN: %mosaic-opt %S/Inputs/double.mlir --check-grid --strict --no-warn=idle-cores 2>&1 | FileCheck %s --check-prefix=STRICT
// STRICT: warning: the bound of grid dimension 0 may be 0: then the kernel never runs, and output 0 is not written [zero-trip-grid]

module @empty attributes {stable_mosaic.version = 18 : i64} {
  func.func @empty(%i: i32) attributes {iteration_bounds = array<i64: 0>, dimension_semantics = [#tpu.dimension_semantics<arbitrary>]} {
    return
  }
}
