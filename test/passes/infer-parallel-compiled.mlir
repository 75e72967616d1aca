// What infer-parallel marks, static or dynamic, runs on both cores by the real compiler's word; before, on one.
// REQUIRES: libtpu

// RUN: %mosaic-opt %S/infer-parallel.mlir --split-input-file --compile=v5p | FileCheck %s --check-prefix=BEFORE
// BEFORE:      matmul: v5p: compiles, cores used: 1 of 2
// BEFORE-NEXT: copy: v5p: compiles, cores used: 1 of 2
// BEFORE-NOT:    compile

// RUN: %mosaic-opt %S/infer-parallel.mlir --split-input-file -p infer-parallel,partition-cores --target=v5p --compile=v5p | FileCheck %s --check-prefix=AFTER
// AFTER:       matmul: v5p: compiles, cores used: 2 of 2
// the original is left for when there are fewer steps than cores
// AFTER-NEXT:  copy: v5p: compiles, cores used: 1 of 2, {{[0-9]+}} bundles (branch 0 of 2)
// AFTER-NEXT:  copy: v5p: compiles, cores used: 2 of 2, {{[0-9]+}} bundles (branch 1 of 2)
// AFTER-NOT:     compile
