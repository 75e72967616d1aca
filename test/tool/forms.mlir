// A program comes out in the form in which it came in, unless it is asked for otherwise.

// RUN: %mosaic-opt %S/Inputs/double.mlir -p pack-kernels -o %t.packed
// RUN: FileCheck %s --check-prefix=PACKED --input-file %t.packed
// RUN: %mosaic-opt %t.packed | FileCheck %s --check-prefix=PACKED
// RUN: %mosaic-opt %t.packed -p cse | FileCheck %s --check-prefix=PACKED
// RUN: %mosaic-opt %t.packed --unpacked | FileCheck %s --check-prefix=UNPACKED

// Passes see the unpacked program, whatever the form:
// RUN: %mosaic-opt %t.packed -p resolve-grid --mlir-print-ir-before-all 2>&1 >/dev/null | FileCheck %s --check-prefix=UNPACKED

// A pipeline with a pass that packs or unpacks decides itself:
// RUN: %mosaic-opt %t.packed -p unpack-kernels | FileCheck %s --check-prefix=UNPACKED
// RUN: %mosaic-opt %S/Inputs/double.mlir -p cse | FileCheck %s --check-prefix=UNPACKED

// Unpacking and packing are inverse, and the round trip through bytecode changes nothing:
// RUN: %mosaic-opt %t.packed --unpacked --mlir-print-debuginfo -o %t.1
// RUN: %mosaic-opt %t.packed -p unpack-kernels,pack-kernels --emit=bytecode | %mosaic-opt - --unpacked --mlir-print-debuginfo -o %t.2
// RUN: diff %t.1 %t.2

// PACKED-NOT: mosaic.kernel
// PACKED: body\22: \22TUzvUg
// PACKED-NOT: module @double

// UNPACKED: body\22: \22\22
// UNPACKED-SAME: mosaic.kernel = @double
// UNPACKED: module @double
// UNPACKED: func.func @double
