// Inputs are files, directories and '-', of any kind and compressed or not; a bad one doesn't stop the others.

// RUN: rm -rf %t && mkdir -p %t/some %t/none
// RUN: cp %s %t/some/b.mlir && %mosaic-opt %s --emit=bytecode -o %t/some/a.bin && echo "hello" > %t/some/notes.txt
// RUN: gzip -c %s > %t/some/c.gz

// RUN: cat %s | %mosaic-opt | FileCheck %s --check-prefix=ONE
// RUN: cat %s | %mosaic-opt - | FileCheck %s --check-prefix=ONE
// RUN: cat %t/some/c.gz | %mosaic-opt | FileCheck %s --check-prefix=ONE
// RUN: %mosaic-opt < %t/some/a.bin | FileCheck %s --check-prefix=ONE
// RUN: %mosaic-opt --split-input-file %t/some/c.gz | FileCheck %s --check-prefix=ONE
// ONE: func.func @main
// ONE-NOT: func.func @main

// RUN: %mosaic-opt %t/some 2>%t/err | FileCheck %s --check-prefix=SOME
// RUN: FileCheck %s --check-prefix=SKIPPED --input-file %t/err
// SOME-COUNT-3: func.func @main
// SOME-NOT: func.func @main
// SKIPPED: notes.txt:1:1: note: skipped: this is text, but neither MLIR nor HLO

// RUN: %expect-exit 2 %mosaic-opt %t/missing %s --unpacked %t/none %t/some/notes.txt %s 2>%t/err | FileCheck %s --check-prefix=TWO
// RUN: FileCheck %s --check-prefix=BAD --input-file %t/err
// TWO-COUNT-2: func.func @main
// TWO-NOT: func.func @main
// BAD: missing: error: can't read the input: no such file or directory
// BAD: none: error: no file in this directory is a dump that can be read
// BAD: notes.txt:1:1: error: this is text, but neither MLIR nor HLO: it begins with 'hello'

// RUN: echo "module {" > %t/some/broken.mlir
// RUN: %expect-exit 2 %mosaic-opt %t/some 2>&1 >%t/out | FileCheck %s --check-prefix=BROKEN
// RUN: FileCheck %s --check-prefix=SOME --input-file %t/out
// BROKEN: broken.mlir:{{[0-9]+:[0-9]+}}: error:

// RUN: %expect-exit 2 %mosaic-opt /dev/null 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: /dev/null: error: the input is empty

// RUN: %expect-exit 2 %mosaic-opt %s/child 2>&1 | FileCheck %s --check-prefix=CHILD
// CHILD: inputs.mlir/child: error: can't read the input: not a directory

// RUN: %expect-exit 2 %mosaic-opt --verify-diagnostics %t/some/a.bin 2>&1 | FileCheck %s --check-prefix=TEXT
// TEXT: a.bin: error: this is not text, which --split-input-file, --verify-diagnostics and --run-reproducer want

func.func @main() {
  return
}
