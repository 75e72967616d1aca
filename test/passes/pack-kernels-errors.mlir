// What can't be packed is said at the launch.
// RUN: %mosaic-opt %s --split-input-file -p pack-kernels --verify-diagnostics

module {
  func.func @nowhere(%x: tensor<8x128xf32>) -> tensor<8x128xf32> {
    // expected-error@+2 {{this launch names the kernel @gone, which is not in the program}}
    // expected-note@+1 {{there is no kernel in it}}
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @gone, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<8x128xf32>) -> tensor<8x128xf32>
    return %0 : tensor<8x128xf32>
  }
}

// -----

module {
  func.func @no_version(%x: tensor<8x128xf32>) -> tensor<8x128xf32> {
    // expected-note@+2 {{give its module the attribute stable_mosaic.version = N : i64}}
    // expected-error@+1 {{the kernel @once has no stable_mosaic.version, so it can't be packed}}
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @once, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<8x128xf32>) -> tensor<8x128xf32>
    return %0 : tensor<8x128xf32>
  }
  module @once {
    func.func @once(%x: memref<8x128xf32, #tpu.memory_space<vmem>>, %o: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {tpu.core_type = #tpu.core_type<tc>} {
      return
    }
  }
}

// -----

module {
  func.func @too_few(%x: tensor<i32>) {
    // expected-error@+1 {{this launch has fewer operands than @once has bounds and prefetch operands}}
    stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @once, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>) -> ()
    return
  }
  module @once attributes {stable_mosaic.version = 15 : i64} {
    func.func @once(%i: i32, %j: i32) attributes {iteration_bounds = array<i64: -9223372036854775808, -9223372036854775808>} {
      return
    }
  }
}
