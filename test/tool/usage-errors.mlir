// A wrong command line is one message, says what to do, and ends with 2.

// RUN: %expect-exit 2 %mosaic-opt %s --split-input-fil 2>&1 | FileCheck %s --check-prefix=FLAG
// FLAG: {{^}}error: unknown flag '--split-input-fil'; did you mean '--split-input-file'?
// FLAG-NEXT: note: --help shows every flag

// RUN: %expect-exit 2 %mosaic-opt %s --emit=text --resolve-gird 2>&1 | FileCheck %s --check-prefix=PASS
// PASS: error: unknown flag '--resolve-gird'; did you mean '--resolve-grid'?

// RUN: %expect-exit 2 %mosaic-opt %s --emit=bytcode 2>&1 | FileCheck %s --check-prefix=EMIT
// EMIT: error: --emit: expects 'text' or 'bytecode', got 'bytcode'; did you mean 'bytecode'?

// RUN: %expect-exit 2 %mosaic-opt %s -o 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: error: -o: expected one argument

// RUN: %expect-exit 2 %mosaic-opt %s --verify-each=maybe 2>&1 | FileCheck %s --check-prefix=BOOL
// BOOL: error: --verify-each: expects true or false, got 'maybe'

// RUN: %expect-exit 2 %mosaic-opt %s --target=v5x 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: error: unknown target 'v5x'; did you mean 'v5p'?
// TARGET-NEXT: note: targets: v2, v3

// RUN: %expect-exit 2 %mosaic-opt %s --target=v5e:2 2>&1 | FileCheck %s --check-prefix=CORES
// CORES: error: target 'v5e:2': a v5e device can't have '2' cores; use 'v5e:1'

// RUN: %expect-exit 2 %mosaic-opt %s --mlir-print-ir-after=resolve-gird 2>&1 | FileCheck %s --check-prefix=PRINT
// PRINT: error: --mlir-print-ir-after names the unknown pass 'resolve-gird'; did you mean 'resolve-grid'?

// RUN: %expect-exit 2 %mosaic-opt %s --compile-format=json 2>&1 | FileCheck %s --check-prefix=FORMAT
// FORMAT: error: --compile-format is about --compile, which is not given
// FORMAT-NEXT: note: add --compile=v5p

// RUN: %expect-exit 2 %mosaic-opt - - 2>&1 | FileCheck %s --check-prefix=STDIN
// STDIN: error: standard input can be read only once, and '-' is given twice

module {}
