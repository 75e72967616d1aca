// --verify-diagnostics: what is said is what the comments expect, each where it is expected, and nothing else.

// RUN: %mosaic-opt %s --split-input-file --verify-diagnostics -p canonicalize | FileCheck %s

// CHECK: func.func @fine
// CHECK-NOT: func.func
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
  return %0 : i64
  // expected-error@-1 {{type of return operand 0 ('i64') doesn't match function result type ('i{{[0-9]+}}')}}
  // expected-note@-2 {{see current operation}}
}

// -----
// expected-error@below {{'tast.op' is of an unregistered dialect}}
"tast.op"() : () -> ()

// -----
module @main {
  func.func @launch(%x: tensor<i32>) {
    stablehlo.custom_call @tpu_custom_call(%x) {has_side_effect = true, backend_config = "no JSON"} : (tensor<i32>) -> ()
    // expected-error@above {{backend_config is not JSON}}
    return
  }
}
