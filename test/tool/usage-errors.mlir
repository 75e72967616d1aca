// A wrong command line is one message, says what to do, and ends with 2.

// RUN: %expect-exit 2 %mosaic-opt %s --split-input-fil 2>&1 | FileCheck %s --check-prefix=FLAG
// FLAG: {{^}}error: unknown flag '--split-input-fil'; did you mean '--split-input-file'?
// FLAG-NEXT: note: --help shows every flag

// RUN: %expect-exit 2 %mosaic-opt %s --emit=text --resolve-gird 2>&1 | FileCheck %s --check-prefix=PASS
// PASS: error: unknown flag '--resolve-gird'; did you mean '--resolve-grid'?

// RUN: %expect-exit 2 %mosaic-opt %s -o 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: error: -o: expected one argument

// RUN: %expect-exit 2 %mosaic-opt %s --target=v5x 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: error: unknown target 'v5x'; did you mean 'v5p'?
// TARGET-NEXT: note: targets: v2, v3

// RUN: %expect-exit 2 %mosaic-opt "" 2>&1 | FileCheck %s --check-prefix=NAMELESS
// NAMELESS: {{^}}error: can't read the input '': its name is empty

// RUN: %expect-exit 2 %mosaic-opt %s -p "partition-cores{cores=2,strategy=split}" 2>&1 | FileCheck %s --check-prefix=COMMA
// COMMA: pipeline:1:17: error: option 'cores' of pass 'partition-cores' expects an integer or none, got '2,strategy=split'
// COMMA-NEXT: note: options are separated by spaces

// RUN: %expect-exit 2 %mosaic-opt %s -p "partition-cores{cores=99999999999999999999}" 2>&1 | FileCheck %s --check-prefix=CORES
// CORES: error: pass 'partition-cores': option 'cores' expects an integer from 1 to 64, got 99999999999999999999

// RUN: %mosaic-opt %s --target=v5p -p "partition-cores{cores=4}" 2>&1 | FileCheck %s --check-prefix=CHIP
// CHIP: {{^}}warning: partition-cores shares grids between 4 cores, but v5p has 2

module {}
