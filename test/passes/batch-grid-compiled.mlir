// One launch of all elements compiles for each target, and is shared between the cores of those that have two.
// REQUIRES: libtpu

// RUN: %mosaic-opt %S/batch-grid.mlir -p batch-grid --contracts '0 <= lengths[*] <= 8' --compile=v4,v5e,v5p,v6e,tpu7x | FileCheck %s --check-prefix=ONE
// ONE:      kernel: v4: compiles, cores used: 1 of 2, {{[0-9]+}} bundles{{$}}
// ONE-NEXT: kernel: v5e: compiles, cores used: 1 of 1, {{[0-9]+}} bundles{{$}}
// ONE-NEXT: kernel: v5p: compiles, cores used: 1 of 2, {{[0-9]+}} bundles{{$}}
// ONE-NEXT: kernel: v6e: compiles, cores used: 1 of 1, {{[0-9]+}} bundles{{$}}
// ONE-NEXT: kernel: tpu7x: compiles, cores used: 1 of 1, {{[0-9]+}} bundles{{$}}
// ONE-NOT:  compile

// RUN: %mosaic-opt %S/batch-grid.mlir -p batch-grid,partition-cores --contracts '1 <= lengths[*] <= 8' --compile=v5p | FileCheck %s --check-prefix=SHARED
// SHARED:      kernel: v5p: compiles, cores used: 1 of 2, {{[0-9]+}} bundles (branch 0 of 2)
// SHARED-NEXT: kernel: v5p: compiles, cores used: 2 of 2, {{[0-9]+}} bundles (branch 1 of 2)
// SHARED-NOT:  compile
