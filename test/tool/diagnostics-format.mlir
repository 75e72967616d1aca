// Diagnostics as text on standard error, or as one document of JSON or SARIF on standard output.

// A run of nothing but checks prints no program, unless a flag says in which form.
// RUN: %mosaic-opt %S/Inputs/double.mlir --check-grid --target=v5p 2>&1 | FileCheck %s --check-prefix=TEXT
// TEXT: {{^}}step.py:7:11: warning: parallel dimension 0 has a dynamic bound: TPU v5p runs this kernel on 1 of its 2 cores [idle-cores]{{$}}
// TEXT: {{^}}note: partition-cores shares it between the cores; or make the bound static{{$}}
// TEXT-NOT: module
// RUN: %mosaic-opt %S/Inputs/double.mlir --check-grid --unpacked 2>/dev/null | FileCheck %s --check-prefix=PROGRAM
// PROGRAM: module @double

// RUN: %mosaic-opt %S/Inputs/double.mlir --check-grid --target=v5p --diagnostics-format=json | FileCheck %s --check-prefix=JSON
// JSON: "exit_code": 0,
// JSON: "name": "idle-cores",
// JSON-NEXT: "severity": "warning",
// JSON-NEXT: "kernel": "double",
// JSON: "file": "step.py",
// JSON-NEXT: "line": 7,
// JSON: "failures": []

// What can't be read is in the document as well as on standard error.
// RUN: %expect-exit 2 %mosaic-opt %S/Inputs/double.mlir %s.missing --check-grid --target=v5p --diagnostics-format=sarif 2> %t.err > %t.sarif
// RUN: FileCheck %s --check-prefix=SARIF < %t.sarif
// RUN: FileCheck %s --check-prefix=ERROR < %t.err
// SARIF: "version": "2.1.0",
// SARIF: "exitCode": 2,
// SARIF-NEXT: "toolExecutionNotifications": [
// SARIF: "ruleId": "idle-cores",
// SARIF: "startLine": 7,
// SARIF-NOT: module
// ERROR: missing: error: can't read the input
// ERROR-NOT: warning

// RUN: %expect-exit 2 %mosaic-opt %s --diagnostics-format=json --summary 2>&1 | FileCheck %s --check-prefix=BOTH
// BOTH: error: --diagnostics-format=json and --summary both write to standard output
module {}
