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

module {}
