// A launch whose kernel can't be read is said where it stands.
// RUN: %mosaic-opt %s --split-input-file -p unpack-kernels --verify-diagnostics

module {
  func.func @not_json() {
    // expected-error@+1 {{backend_config is not JSON: }}
    stablehlo.custom_call @tpu_custom_call() {backend_config = "{\22custom_call_config\22: "} : () -> ()
    return
  }
}

// -----

module {
  func.func @no_section() {
    // expected-error@+1 {{backend_config has no 'custom_call_config' object}}
    stablehlo.custom_call @tpu_custom_call() {backend_config = "{\22body\22: \22\22}"} : () -> ()
    return
  }
}

// -----

module {
  func.func @no_body() {
    // expected-error@+1 {{backend_config has no 'custom_call_config.body' string: there is no kernel in this call}}
    stablehlo.custom_call @tpu_custom_call() {backend_config = "{\22custom_call_config\22: {}}"} : () -> ()
    return
  }
}

// -----

module {
  func.func @not_base64() {
    // expected-error@+1 {{'custom_call_config.body' is not base64}}
    stablehlo.custom_call @tpu_custom_call() {backend_config = "{\22custom_call_config\22: {\22body\22: \22?\22}}"} : () -> ()
    return
  }
}

// -----

module {
  func.func @not_bytecode() {
    // expected-error@+1 {{the kernel of this call can't be read: it is not MLIR bytecode}}
    stablehlo.custom_call @tpu_custom_call() {backend_config = "{\22custom_call_config\22: {\22body\22: \22AAAA\22}}"} : () -> ()
    return
  }
}

// -----

module {
  func.func @no_config() {
    // expected-error@+1 {{this tpu_custom_call has no backend_config string}}
    stablehlo.custom_call @tpu_custom_call() : () -> ()
    return
  }
}
