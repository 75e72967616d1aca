// --help and --list-passes are made from the declarations of the passes; --version names what a bug report needs.

// RUN: %mosaic-opt --help | FileCheck %s --check-prefix=HELP
// HELP: usage: mosaic-opt
// HELP: -p PASSES
// HELP: --verify-each BOOL
// HELP: --compile CHIP
// HELP: our passes
// HELP: unpack-kernels takes each Mosaic kernel out of its launch
// HELP: partition-cores shares a grid between the cores
// HELP-NEXT: cores {{.*}}; an integer or none
// HELP-NEXT: strategy {{.*}}; one of 'auto',
// HELP: Exit codes: 0, 1 if an error was diagnosed

// RUN: %mosaic-opt --list-passes | FileCheck %s --check-prefix=LIST
// LIST: {{^}}unpack-kernels {{.*}}
// LIST: {{^}}pack-kernels {{.*}}
// LIST: {{^}}resolve-grid {{.*}}
// LIST: {{^}}partition-cores {{.*}}
// LIST: {{^}}MLIR's own:
// LIST: {{^}} canonicalize{{$}}

// RUN: %mosaic-opt --version | FileCheck %s --check-prefix=VERSION
// RUN: %mosaic-opt %s -version | FileCheck %s --check-prefix=VERSION
// VERSION: {{^}}mosaic-grid {{[0-9.]+}}, jaxlib {{[0-9.]+}}, stable_mosaic version {{[0-9]+$}}
