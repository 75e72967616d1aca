// -o writes a file at once or not at all; into a directory, a file for each program.

// RUN: rm -rf %t && mkdir -p %t/out %t/a %t/b
// RUN: cp %s %t/a/same.mlir && cp %s %t/b/same.mlir && cp %s %t/other.txt

// RUN: %mosaic-opt %s -o %t/one.mlir --canonicalize && FileCheck %s --input-file %t/one.mlir

// RUN: %mosaic-opt %t/a/same.mlir %t/b/same.mlir %t/other.txt -o %t/out
// RUN: ls %t/out | FileCheck %s --check-prefix=NAMES
// NAMES: other.mlir
// NAMES-NEXT: same.1.mlir
// NAMES-NEXT: same.mlir

// RUN: %mosaic-opt --emit=bytecode %t/other.txt -o %t/out && %mosaic-opt %t/out/other.mlirbc | FileCheck %s

// Together in one file:
// RUN: %mosaic-opt %t/a %t/b -o %t/both.mlir && FileCheck %s --check-prefix=BOTH --input-file %t/both.mlir
// BOTH: func.func @main
// BOTH: {{^}}// -----{{$}}
// BOTH: func.func @main

// RUN: %expect-exit 2 %mosaic-opt %t/a %t/b --emit=bytecode -o %t/both.mlirbc 2>&1 | FileCheck %s --check-prefix=BYTECODE
// BYTECODE: error: 2 programs can't be written as one file of bytecode
// BYTECODE-NEXT: note: give a directory to -o

// A file that was there stays as it was if anything goes wrong:
// RUN: %expect-exit 2 %mosaic-opt %t/a %t/missing.mlir -o %t/one.mlir 2>&1 | FileCheck %s --check-prefix=KEPT
// KEPT: missing.mlir: error: can't read the input: no such file or directory
// KEPT: note: {{.*}}one.mlir is not written
// RUN: FileCheck %s --input-file %t/one.mlir

// RUN: %expect-exit 2 %mosaic-opt %s -o %t/no/such/file.mlir 2>&1 | FileCheck %s --check-prefix=FOLDER
// FOLDER: file.mlir: error: can't write the output: there is no directory '{{.*}}no/such'

// A slash at the end asks for a directory, which is made:
// RUN: %mosaic-opt %s -o %t/new/dir/ && FileCheck %s --input-file %t/new/dir/output.mlir
// RUN: %expect-exit 2 %mosaic-opt %s -o %t/other.txt/ 2>&1 | FileCheck %s --check-prefix=NEW
// NEW: other.txt/: error: can't make the directory: file exists

// RUN: %expect-exit 2 %mosaic-opt %s -o "" 2>&1 | FileCheck %s --check-prefix=NAMELESS
// NAMELESS: {{^}}error: can't write the output '': its name is empty
// NAMELESS-NEXT: note: give a file, a directory or '-' to -o

// A name in .gz is compressed, and the program in it can be read again:
// RUN: %mosaic-opt %s -o %t/one.mlir.gz && gzip -dc %t/one.mlir.gz | FileCheck %s && %mosaic-opt %t/one.mlir.gz | FileCheck %s

// The file of --summary is the summary's; standard output stays empty:
// RUN: %mosaic-opt %S/Inputs/double.mlir --summary -o %t/summary.txt 2>/dev/null | FileCheck %s --check-prefix=SILENT --allow-empty
// SILENT-NOT: {{.}}
// RUN: FileCheck %s --check-prefix=SUMMARY --input-file %t/summary.txt
// RUN: %mosaic-opt %S/Inputs/double.mlir %s --summary -o %t/sums/ && FileCheck %s --check-prefix=SUMMARY --input-file %t/sums/double.txt
// SUMMARY-NOT: module
// SUMMARY: grid: (?, 2)
// SUMMARY-NOT: {{module|warning}}

// RUN: %expect-exit 2 %mosaic-opt %s -o /dev/full 2>&1 | FileCheck %s --check-prefix=FULL
// FULL: /dev/full: error: can't write the output: no space left on device

// CHECK: func.func @main
func.func @main() {
  return
}
