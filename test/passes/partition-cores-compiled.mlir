// What partition-cores makes compiles, and runs on both cores by the real compiler's word; the original runs on one.
// REQUIRES: libtpu

// RUN: %mosaic-opt %S/partition-cores.mlir --split-input-file -p partition-cores --target=v5p --compile=v5p | FileCheck %s --check-prefix=BASIC
// BASIC:      copy: v5p: compiles, cores used: 1 of 2, {{[0-9]+}} bundles
// BASIC-NEXT: copy: v5p: compiles, cores used: 2 of 2, {{[0-9]+}} bundles
//             with enough steps, and with an even number of them, there is no original any more
// BASIC-NEXT: copy: v5p: compiles, cores used: 2 of 2
// BASIC-NEXT: copy: v5p: compiles, cores used: 2 of 2
// BASIC-NEXT: copy: v5p: compiles, cores used: 1 of 2
// BASIC-NEXT: copy: v5p: compiles, cores used: 2 of 2
// BASIC-NEXT: copy: v5p: compiles, cores used: 1 of 2
// BASIC-NEXT: copy: v5p: compiles, cores used: 2 of 2
// BASIC-NEXT: copy: v5p: compiles, cores used: 1 of 2
// BASIC-NEXT: copy: v5p: compiles, cores used: 2 of 2
// BASIC-NEXT: gather: v5p: compiles, cores used: 1 of 2
// BASIC-NEXT: gather: v5p: compiles, cores used: 2 of 2
// BASIC-NEXT: copy: v5p: compiles, cores used: 1 of 2
// BASIC-NEXT: copy: v5p: compiles, cores used: 2 of 2
// BASIC-NEXT: copy: v5p: compiles, cores used: 1 of 2
// BASIC-NEXT: copy: v5p: compiles, cores used: 2 of 2
// BASIC-NOT:   compile

// What the compiler refuses compiles then.
// RUN: %expect-exit 1 %mosaic-opt %S/partition-cores-core-parallel.mlir --split-input-file --compile=v5p | FileCheck %s --check-prefix=REFUSED
// REFUSED:      copy: v5p: does not compile:
// REFUSED-NEXT: copy: v5p: does not compile: core-parallel dimension 0 has iteration bound: 9, which is greater than the number of active cores: 2
// REFUSED-NEXT: copy: v5p: does not compile: core-parallel dimension 0 has iteration bound: 8, which is greater than the number of active cores: 2
// RUN: %mosaic-opt %S/partition-cores-core-parallel.mlir --split-input-file -p partition-cores --target=v5p --compile=v5p | FileCheck %s --check-prefix=CORE
// CORE:       copy: v5p: compiles, cores used: 1 of 2
// CORE-NEXT:  copy: v5p: compiles, cores used: 2 of 2
// CORE-NEXT:  copy: v5p: compiles, cores used: 2 of 2
// CORE-NEXT:  copy: v5p: compiles, cores used: 2 of 2
// CORE-NEXT:  copy: v5p: compiles, cores used: 2 of 2
// CORE-NOT:    compile

// A kernel for each of two dimensions, and one that counts them together.
// RUN: split-file %S/partition-cores-several.mlir %t
// RUN: %mosaic-opt %t/small.mlir -p partition-cores --target=v5p --compile=v5p | FileCheck %s --check-prefix=TWO
// TWO:        copy: v5p: compiles, cores used: 1 of 2
// TWO-NEXT:   copy: v5p: compiles, cores used: 2 of 2
// TWO-NEXT:   copy: v5p: compiles, cores used: 2 of 2
// TWO-NOT:     compile
// RUN: %mosaic-opt %t/between.mlir -p 'partition-cores{strategy=linearize}' --target=v5p --compile=v5p | FileCheck %s --check-prefix=JOINT
// JOINT:      copy: v5p: compiles, cores used: 1 of 2
// JOINT-NEXT: copy: v5p: compiles, cores used: 2 of 2
// JOINT-NOT:   compile

// Windows by element, squeezed, whole in SMEM and left in HBM.
// RUN: %mosaic-opt %S/partition-cores-windows.mlir -p partition-cores --target=v5p --compile=v5p | FileCheck %s --check-prefix=WINDOWS
// WINDOWS:      windows: v5p: compiles, cores used: 1 of 2
// WINDOWS-NEXT: windows: v5p: compiles, cores used: 2 of 2
