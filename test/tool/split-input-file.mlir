// --split-input-file makes each part an input of its own, in whose messages the lines are those of the whole file.

// RUN: %expect-exit 2 %mosaic-opt --split-input-file %s 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=ERR --input-file %t.err
// RUN: %mosaic-opt '--split-input-file=// other marker' %S/Inputs/marked.txt | FileCheck %s --check-prefix=MARKED

// Without it the markers are comments, and the parts one text:
// RUN: %mosaic-opt %S/Inputs/marked.txt | FileCheck %s --check-prefix=WHOLE

// CHECK: func.func @first
// CHECK: {{^}}// -----{{$}}
// CHECK-NOT: func
// CHECK: func.func @third
// ERR: split-input-file.mlir:[[@LINE+7]]:10: error: use of undeclared SSA value
func.func @first() {
  return
}
// -----
// A part that can't be read doesn't keep the others from being written.
func.func @second() -> i32 {
  return %nothing : i32
}
// -----
func.func @third() {
  return
}

// MARKED: func.func private @a
// MARKED: {{^}}// other marker{{$}}
// MARKED: func.func private @b
// WHOLE: func.func private @a
// WHOLE-NOT: {{^}}//
