// Kernels that ship with JAX as they are: unpacked and packed they are the same to the last location, and partition-cores
// leaves them alone and says why: their dynamic dimensions are not parallel, or the compiler shares a static one.
// DEFINE: %{name} = gmm
// DEFINE: %{check} = %python %S/Inputs/lowered.py %{name} > %t.lowered \
// DEFINE:   && %mosaic-opt %t.lowered --mlir-print-debuginfo > %t.before \
// DEFINE:   && %mosaic-opt %t.lowered --mlir-print-debuginfo -p 'unpack-kernels,pack-kernels' > %t.after \
// DEFINE:   && diff %t.before %t.after \
// DEFINE:   && %mosaic-opt %t.lowered --mlir-print-debuginfo -p partition-cores --target=v5p > %t.shared 2> %t.said \
// DEFINE:   && diff %t.before %t.shared && FileCheck %s < %t.said
// CHECK: remark: partition-cores changed nothing: {{.*}} [nothing-to-share]
// CHECK-NOT: {{.}}
// RUN: %{check}
// REDEFINE: %{name} = flash_gradient
// RUN: %{check}
// REDEFINE: %{name} = all_gather
// RUN: %{check}
// REDEFINE: %{name} = paged_megacore_batch
// RUN: %{check}
