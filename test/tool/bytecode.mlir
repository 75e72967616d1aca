// --emit=bytecode writes what is read again, from a file or a pipe.

// RUN: %mosaic-opt %s --emit=bytecode | %mosaic-opt | FileCheck %s
// RUN: %mosaic-opt %s -emit bytecode -o %t && %mosaic-opt %t -p cse --emit=text | FileCheck %s

// CHECK: func.func @main(%arg0: i32) -> i32
func.func @main(%a: i32) -> i32 {
  return %a : i32
}
