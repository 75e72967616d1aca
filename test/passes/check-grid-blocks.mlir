// The blocks that steps show: outside of their array, never shown, come back to; and near misses that are legal.
// RUN: %mosaic-opt %s --split-input-file --verify-diagnostics --check-grid --target=v5e

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// As many blocks as there are steps, which only the caller knows to be few enough.
module {
  func.func @main(%n: tensor<i32> loc("n"), %x: tensor<64x128xf32>) -> tensor<64x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    return %0 : tensor<64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#arbitrary],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%i: i32) -> (i32, i32) {
      // expected-warning@+3 {{with n = 9 step (8) shows block (8, 0) of input 0 ('arg0'), wholly outside of its array [window-out-of-bounds]}}
      // expected-note@+2 {{the array is f32[64,128], a block f32[8,128]}}
      // expected-note@+1 {{keep the index map within the array, as jnp.minimum does; or promise what the inputs can be, as with --contracts='n <= 8'}}
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
    func.func @out(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      %last = arith.constant 7 : i32
      %b = arith.minsi %i, %last : i32
      return %b, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// The same bound, clamped by the program; the last block reaches over the end.
module {
  func.func @main(%n: tensor<i32> loc("n"), %x: tensor<60x128xf32>) -> tensor<60x128xf32> {
    %most = stablehlo.constant dense<8> : tensor<i32>
    %few = stablehlo.minimum %n, %most : tensor<i32>
    %0 = stablehlo.custom_call @tpu_custom_call(%few, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<60x128xf32>) -> tensor<60x128xf32>
    return %0 : tensor<60x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#arbitrary],
        window_params = [{transform_indices = @map, window_bounds = array<i64: 8, 128>}, {transform_indices = @map, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @map(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// The next block, which the last step doesn't have, whatever the number of its columns; the output has no such block.
module {
  func.func @main(%n: tensor<i32> loc("n"), %x: tensor<64x128xf32>) -> tensor<64x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    return %0 : tensor<64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 8, -9223372036854775808>, dimension_semantics = [#arbitrary, #arbitrary],
        window_params = [{transform_indices = @next, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @next(%i: i32, %j: i32) -> (i32, i32) {
      // expected-error@+3 {{step (7, 0) shows block (8, 0) of input 0 ('arg0'), wholly outside of its array [window-out-of-bounds]}}
      // expected-note@+2 {{the array is f32[64,128], a block f32[8,128]}}
      // expected-note@+1 {{keep the index map within the array, as jnp.minimum does}}
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %b = arith.addi %i, %one : i32
      return %b, %zero : i32, i32
    }
    func.func @out(%i: i32, %j: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// Every second block is left out; of the input that is as it should be.
module {
  func.func @main(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<64x128xf32>) -> tensor<64x128xf32>
    return %0 : tensor<64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 4>, dimension_semantics = [#arbitrary],
        window_params = [{transform_indices = @map, window_bounds = array<i64: 8, 128>}, {transform_indices = @map, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @map(%i: i32) -> (i32, i32) {
      // expected-warning@+3 {{no step writes block (1, 0) of output 0 ('arg1'): it holds what was in memory [output-not-covered]}}
      // expected-note@+2 {{the array is f32[64,128], a block f32[8,128]}}
      // expected-note@+1 {{let the grid and the index map reach each block, or write the output over an input with the rest}}
      %zero = arith.constant 0 : i32
      %two = arith.constant 2 : i32
      %b = arith.muli %two, %i : i32
      return %b, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// Written over the input, the output has its values there.
module {
  func.func @main(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}", output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]} : (tensor<64x128xf32>) -> tensor<64x128xf32>
    return %0 : tensor<64x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 4>, dimension_semantics = [#arbitrary],
        window_params = [{transform_indices = @map, window_bounds = array<i64: 8, 128>}, {transform_indices = @map, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @map(%i: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      %two = arith.constant 2 : i32
      %b = arith.muli %two, %i : i32
      return %b, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// A sum over the outer dimension, kept in the output: each block is left for the next one before it is complete.
module {
  func.func @main(%x: tensor<32x256xf32>) -> tensor<8x256xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<32x256xf32>) -> tensor<8x256xf32>
    return %0 : tensor<8x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%k: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 4, 2>, dimension_semantics = [#arbitrary, #arbitrary],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0 : i32
      %first = arith.cmpi eq, %k, %zero : i32
      scf.if %first {
        %zeros = arith.constant dense<0.0> : vector<8x128xf32>
        vector.store %zeros, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      }
      // expected-error@+3 {{step (1, 0) reads block (0, 0) of output 0 ('arg1') back, which the grid has left since step (0, 0): what is written out isn't brought in again [nonconsecutive-revisit]}}
      // expected-note@+2 {{step (0, 1), right before, is at another block, so that the buffer holds something else}}
      // expected-note@+1 {{let the dimensions that choose the block come before the others, or accumulate in scratch}}
      %old = vector.load %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      %new = arith.addf %old, %v : vector<8x128xf32>
      vector.store %new, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%k: i32, %j: i32) -> (i32, i32) {
      return %k, %j : i32, i32
    }
    func.func @out(%k: i32, %j: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %zero, %j : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// The block is written whole, and then read, each time the grid is there: it may come back as often as it likes.
module {
  func.func @main(%x: tensor<32x256xf32>) -> tensor<8x256xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<32x256xf32>) -> tensor<8x256xf32>
    return %0 : tensor<8x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%k: i32, %j: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 4, 2>, dimension_semantics = [#arbitrary, #arbitrary],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      %old = vector.load %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      %new = arith.addf %old, %v : vector<8x128xf32>
      vector.store %new, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%k: i32, %j: i32) -> (i32, i32) {
      return %k, %j : i32, i32
    }
    func.func @out(%k: i32, %j: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %zero, %j : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// A visit of two steps, of which the first one writes and the second one reads: that is the same visit.
module {
  func.func @main(%x: tensor<64x256xf32>) -> tensor<8x256xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<64x256xf32>) -> tensor<8x256xf32>
    return %0 : tensor<8x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%k: i32, %j: i32, %l: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 4, 2, 2>, dimension_semantics = [#arbitrary, #arbitrary, #arbitrary],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0 : i32
      %first = arith.cmpi eq, %l, %zero : i32
      scf.if %first {
        %zeros = arith.constant dense<0.0> : vector<8x128xf32>
        vector.store %zeros, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      }
      %old = vector.load %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      %new = arith.addf %old, %v : vector<8x128xf32>
      vector.store %new, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      return
    }
    func.func @in(%k: i32, %j: i32, %l: i32) -> (i32, i32) {
      %two = arith.constant 2 : i32
      %rows = arith.muli %k, %two : i32
      %row = arith.addi %rows, %l : i32
      return %row, %j : i32, i32
    }
    func.func @out(%k: i32, %j: i32, %l: i32) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %zero, %j : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// The last step by its number, where only the caller knows how many there are.
module {
  func.func @main(%n: tensor<i32> loc("n"), %x: tensor<64x128xf32>) -> tensor<8x128xf32> {
    %most = stablehlo.constant dense<8> : tensor<i32>
    %few = stablehlo.minimum %n, %most : tensor<i32>
    %0 = stablehlo.custom_call @tpu_custom_call(%few, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<64x128xf32>) -> tensor<8x128xf32>
    return %0 : tensor<8x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<8x128xf32, #vmem>, %o: memref<8x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808>, dimension_semantics = [#arbitrary],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 8, 128>}, {transform_indices = @out, window_bounds = array<i64: 8, 128>}]} {
      %c0 = arith.constant 0 : index
      %seven = arith.constant 7 : i32
      %last = arith.cmpi eq, %i, %seven : i32
      scf.if %last {
        %v = vector.load %x[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
        // expected-warning@+2 {{with n = 1 no step writes output 0 ('arg1'): that is done only where grid index 0 is 7, and dimension 0 has bound min(8, n) [stale-bound-constant]}}
        // expected-note@+1 {{the last step is pl.num_programs(0) - 1, whatever the bound; or promise what the inputs can be, as with --contracts='n >= 8'}}
        vector.store %v, %o[%c0, %c0] : memref<8x128xf32, #vmem>, vector<8x128xf32>
      }
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

// A step that isn't there at all, since the blocks have grown.
module {
  func.func @main(%x: tensor<64x128xf32>) -> tensor<16x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<64x128xf32>) -> tensor<16x128xf32>
    return %0 : tensor<16x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<16x128xf32, #vmem>, %o: memref<16x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 4>, dimension_semantics = [#arbitrary],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 16, 128>}, {transform_indices = @out, window_bounds = array<i64: 16, 128>}]} {
      %c0 = arith.constant 0 : index
      %seven = arith.constant 7 : i32
      // expected-error@+2 {{no step writes output 0 ('arg1'): that is done only where grid index 0 is 7, and dimension 0 has bound 4 [stale-bound-constant]}}
      // expected-note@+1 {{the last step is pl.num_programs(0) - 1, whatever the bound}}
      %last = arith.cmpi eq, %i, %seven : i32
      scf.if %last {
        %v = vector.load %x[%c0, %c0] : memref<16x128xf32, #vmem>, vector<16x128xf32>
        vector.store %v, %o[%c0, %c0] : memref<16x128xf32, #vmem>, vector<16x128xf32>
      }
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

// The last step by its number, which is the right one.
module {
  func.func @main(%x: tensor<64x128xf32>) -> tensor<16x128xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<64x128xf32>) -> tensor<16x128xf32>
    return %0 : tensor<16x128xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %x: memref<16x128xf32, #vmem>, %o: memref<16x128xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 4>, dimension_semantics = [#arbitrary],
        window_params = [{transform_indices = @in, window_bounds = array<i64: 16, 128>}, {transform_indices = @out, window_bounds = array<i64: 16, 128>}]} {
      %c0 = arith.constant 0 : index
      %three = arith.constant 3 : i32
      %last = arith.cmpi eq, %i, %three : i32
      scf.if %last {
        %v = vector.load %x[%c0, %c0] : memref<16x128xf32, #vmem>, vector<16x128xf32>
        vector.store %v, %o[%c0, %c0] : memref<16x128xf32, #vmem>, vector<16x128xf32>
      }
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
