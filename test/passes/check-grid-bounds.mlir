// Grids without a step or with too many, and index maps that count elements.
// RUN: %mosaic-opt %s --split-input-file --verify-diagnostics --check-grid --target=v5e

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// A quotient that was rounded down to 0.
module {
  func.func @main(%x: tensor<8x128xf32>) -> tensor<8x128xf32> {
    // expected-error@+2 {{grid dimension 0 has bound 0: the kernel never runs, and output 0 is not written [zero-trip-grid]}}
    // expected-note@+1 {{round up with pl.cdiv}}
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<8x128xf32>) -> tensor<8x128xf32>
    return %0 : tensor<8x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 0>, dimension_semantics = [#arbitrary],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
    func.func @out(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// A dynamic bound that is never positive.
module {
  func.func @main(%n: tensor<i32>, %x: tensor<8x128xf32>) -> tensor<8x128xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %m = stablehlo.minimum %n, %c : tensor<i32>
    // expected-error@+2 {{grid dimension 0 has bound 0 at most: the kernel never runs, and output 0 is not written [zero-trip-grid]}}
    // expected-note@+1 {{round up with pl.cdiv}}
    %0 = stablehlo.custom_call @tpu_custom_call(%m, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<8x128xf32>) -> tensor<8x128xf32>
    return %0 : tensor<8x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#arbitrary],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %old = vector.load %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      %new = arith.addf %old, %v : vector<8x128xf32>
      vector.store %new, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
    func.func @out(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %zero, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// Its output is written over an input, whose values stay.
module {
  func.func @main(%x: tensor<8x128xf32>) -> tensor<8x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}", output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]} : (tensor<8x128xf32>) -> tensor<8x128xf32>
    return %0 : tensor<8x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 0>, dimension_semantics = [#arbitrary],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
    func.func @out(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// An output without elements has none to write.
module {
  func.func @main(%x: tensor<0x128xf32>) -> tensor<0x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<0x128xf32>) -> tensor<0x128xf32>
    return %0 : tensor<0x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 0>, dimension_semantics = [#arbitrary],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
    func.func @out(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// A bound of 1 is fine.
module {
  func.func @main(%x: tensor<8x128xf32>) -> tensor<8x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<8x128xf32>) -> tensor<8x128xf32>
    return %0 : tensor<8x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 1>, dimension_semantics = [#arbitrary],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
    func.func @out(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// More steps than an i32 counts, together.
module {
  func.func @main(%x: tensor<524288x8388608xf32>) -> tensor<524288x8388608xf32> {
    // expected-error@+2 {{the static bounds of the grid give 65536 * 65536 = 4294967296 steps, and libtpu takes less than 2147483647 [grid-overflow]}}
    // expected-note@+1 {{use larger blocks}}
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<524288x8388608xf32>) -> tensor<524288x8388608xf32>
    return %0 : tensor<524288x8388608xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 65536, 65536>, dimension_semantics = [#parallel, #arbitrary],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
    func.func @out(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// A bound that is no i32.
module {
  func.func @main(%x: tensor<16x128xf32>) -> tensor<16x128xf32> {
    // expected-error@+2 {{grid dimension 1 has bound 2147483648, and a grid index is an i32: it ends at 2147483647 [grid-overflow]}}
    // expected-note@+1 {{use larger blocks}}
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<16x128xf32>) -> tensor<16x128xf32>
    return %0 : tensor<16x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 2, 2147483648>, dimension_semantics = [#parallel, #arbitrary],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32, %j: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
    func.func @out(%i: i32, %j: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// Just as many as fit; and placeholders of a symbolic export, which are no bounds.
module {
  func.func @main(%x: tensor<262144x8388480xf32>) -> tensor<262144x8388480xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<262144x8388480xf32>) -> tensor<262144x8388480xf32>
    return %0 : tensor<262144x8388480xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 32768, 65535>, dimension_semantics = [#parallel, #arbitrary],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
    func.func @out(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// Placeholders of a symbolic export are no bounds.
module {
  func.func @main(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<?x?xf32>) -> tensor<?x?xf32>
    return %0 : tensor<?x?xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 2147483647, 2147483646>, dimension_semantics = [#parallel, #arbitrary],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
    func.func @out(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>

// An index map that multiplies by the block's size.
module {
  func.func @main(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<64x128xf32>) -> tensor<64x128xf32>
    return %0 : tensor<64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 8>, dimension_semantics = [#parallel],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
    // expected-error@+4 {{the index map of output 0 ('arg1') gives 8*i in dimension 0, an element where a block is wanted: step (1) asks for block 8 of 8 [index-map-in-elements]}}
    // expected-note@+3 {{blocks of 8 cover 64 elements; block 8 would begin at element 64}}
    // expected-note@+2 {{return i there: Pallas multiplies by the block's size}}
    func.func @out(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      %size = arith.constant 8 : i32
      %e = arith.muli %i, %size : i32
      return %e, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>

// Every eighth block of an array that has as many.
module {
  func.func @main(%x: tensor<512x128xf32>) -> tensor<64x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<512x128xf32>) -> tensor<64x128xf32>
    return %0 : tensor<64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 8>, dimension_semantics = [#parallel],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      %size = arith.constant 8 : i32
      %e = arith.muli %i, %size : i32
      return %e, %zero : i32, i32
    }
    func.func @out(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>

// One step, whose index is 0 in any unit.
module {
  func.func @main(%x: tensor<8x128xf32>) -> tensor<8x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<8x128xf32>) -> tensor<8x128xf32>
    return %0 : tensor<8x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 1>, dimension_semantics = [#parallel],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      %size = arith.constant 8 : i32
      %e = arith.muli %i, %size : i32
      return %e, %zero : i32, i32
    }
    func.func @out(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      %size = arith.constant 8 : i32
      %e = arith.muli %i, %size : i32
      return %e, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>

// An index map that gives an index too many: nothing is known of such a window.
module {
  func.func @main(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<64x128xf32>) -> tensor<64x128xf32>
    return %0 : tensor<64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 8>, dimension_semantics = [#parallel],
        window_params = [{transform_indices = @at, window_bounds = array<i64: 8, 128>}, {transform_indices = @at, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @at(%i: i32) -> (i32, i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero, %zero : i32, i32, i32
    }
  }
}
