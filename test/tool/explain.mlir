// --explain says what a diagnostic is about, with an example and its fix, and lists them all.

// RUN: %mosaic-opt --explain idle-cores | FileCheck %s
// CHECK: {{^}}idle-cores (warning): a core of the device has nothing to do while the kernel runs
// CHECK: For example:
// CHECK: {{^}}    pl.pallas_call(kernel, grid=(n, 8),
// CHECK: partition-cores

// RUN: %mosaic-opt --explain | FileCheck %s --check-prefix=LIST
// LIST: {{^}}Cores that idle
// LIST: {{^}}  idle-cores {{ *}}warning {{.+}}
// LIST: {{^}}  zero-trip-grid {{ *}}error {{.+}}
// LIST: {{^}}  not-partitioned {{ *}}remark {{.+}}
// LIST: {{^}}--explain NAME

// RUN: %expect-exit 2 %mosaic-opt --explain=paralel-race 2>&1 | FileCheck %s --check-prefix=NEAR
// NEAR: {{^}}error: there is no diagnostic 'paralel-race'; did you mean 'parallel-race'?
// NEAR-NEXT: note: --explain lists them
