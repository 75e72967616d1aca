// --verify-diagnostics: what is said is what the comments expect, each where it is expected, and nothing else.

// RUN: %mosaic-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect -p partition-cores | FileCheck %s

// CHECK: func.func @fine
func.func @fine() {
  return
}

// -----
// Errors of the parser and the verifier are diagnostics too.
func.func @undefined() -> i32 {
  // expected-error@+1 {{use of undeclared SSA value}}
  return %nothing : i32
}

// -----
func.func @mismatch() -> i32 {
  %0 = arith.constant 0 : i64
  return %0 : i64 // expected-error {{type of return operand 0 ('i64') doesn't match function result type ({{'i[0-9]+'}})}}
  // expected-note@below {{see}}
}
