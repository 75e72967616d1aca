// What is wrong with a pipeline is said with its column, and with the name that was probably meant.

// RUN: %expect-exit 2 %mosaic-opt %s -p 'cse,resolv-grid' 2>&1 | FileCheck %s --check-prefix=PASS
// PASS: pipeline:1:5: error: unknown pass 'resolv-grid'; did you mean 'resolve-grid'?

// RUN: %expect-exit 2 %mosaic-opt %s -p 'partition-cores{core=2}' 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: pipeline:1:17: error: pass 'partition-cores' has no option 'core'; did you mean 'cores'?
// OPTION-NEXT: note: its options are cores, strategy

// RUN: %expect-exit 2 %mosaic-opt %s --partition-cores=cores=many 2>&1 | FileCheck %s --check-prefix=VALUE
// VALUE: pipeline:1:17: error: option 'cores' of pass 'partition-cores' expects an integer or none, got 'many'

// RUN: %expect-exit 2 %mosaic-opt %s -canonicalize=top-dwn=true 2>&1 | FileCheck %s --check-prefix=NATIVE
// NATIVE: error: native pass 'canonicalize' has no option 'top-dwn'; did you mean 'top-down'?

// RUN: %expect-exit 2 %mosaic-opt %s -p cse --canonicalize 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: the passes are given twice
// TWICE-NEXT: note: use one of -p, --pass-pipeline and passes as flags

module {}
