// Slices that begin at a number read at run time; what libtpu takes and refuses was asked of it for each of them.
// RUN: %mosaic-opt %s --split-input-file --verify-diagnostics --check-grid --target=v5e

#vmem = #tpu.memory_space<vmem>
#smem = #tpu.memory_space<smem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// Several rows from anywhere.
module {
  func.func @main(%n: tensor<1xi32>, %x: tensor<64x256xf32>) -> tensor<8x256xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<1xi32>, tensor<64x256xf32>) -> tensor<8x256xf32>
    return %0 : tensor<8x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %n: memref<1xi32, #smem>, %x: memref<64x256xf32, #vmem>, %o: memref<8x256xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 1>, dimension_semantics = [#arbitrary], scalar_prefetch = 1 : i64,
        window_params = [{transform_indices = @map, window_bounds = array<i64: 64, 256>}, {transform_indices = @map, window_bounds = array<i64: 8, 256>}]} {
      %c0 = arith.constant 0 : index
      %read = memref.load %n[%c0] : memref<1xi32, #smem>
      %row = arith.index_cast %read : i32 to index
      // expected-error@+3 {{the kernel reads from a buffer at an index in dimension 0 that the compiler can't prove to be a multiple of 8 [unproven-alignment]}}
      // expected-note@+2 {{with %arg0[0] = 1 step (0) has it at 1}}
      // expected-note@+1 {{begin at multiples of 8, or read whole tiles and shift them}}
      %v = vector.load %x[%row, %c0] : memref<64x256xf32, #vmem>, vector<8x256xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x256xf32, #vmem>, vector<8x256xf32>
      return
    }
    func.func @map(%i: i32, %n: memref<1xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %zero, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#smem = #tpu.memory_space<smem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// A sum isn't a multiple of 8 because a term is.
module {
  func.func @main(%n: tensor<1xi32>, %x: tensor<64x256xf32>) -> tensor<8x256xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<1xi32>, tensor<64x256xf32>) -> tensor<8x256xf32>
    return %0 : tensor<8x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %n: memref<1xi32, #smem>, %x: memref<64x256xf32, #vmem>, %o: memref<8x256xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 1>, dimension_semantics = [#arbitrary], scalar_prefetch = 1 : i64,
        window_params = [{transform_indices = @map, window_bounds = array<i64: 64, 256>}, {transform_indices = @map, window_bounds = array<i64: 8, 256>}]} {
      %c0 = arith.constant 0 : index
      %number = arith.constant 8 : i32
      %read = memref.load %n[%c0] : memref<1xi32, #smem>
      %computed = arith.addi %read, %number : i32
      %row = arith.index_cast %computed : i32 to index
      // expected-error@+3 {{the kernel reads from a buffer at an index in dimension 0 that the compiler can't prove to be a multiple of 8 [unproven-alignment]}}
      // expected-note@+2 {{with %arg0[0] = 1 step (0) has it at 9}}
      // expected-note@+1 {{begin at multiples of 8}}
      %v = vector.load %x[%row, %c0] : memref<64x256xf32, #vmem>, vector<8x256xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x256xf32, #vmem>, vector<8x256xf32>
      return
    }
    func.func @map(%i: i32, %n: memref<1xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %zero, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#smem = #tpu.memory_space<smem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// Half of a tile at a time.
module {
  func.func @main(%n: tensor<1xi32>, %x: tensor<64x256xf32>) -> tensor<8x256xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<1xi32>, tensor<64x256xf32>) -> tensor<8x256xf32>
    return %0 : tensor<8x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %n: memref<1xi32, #smem>, %x: memref<64x256xf32, #vmem>, %o: memref<8x256xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 1>, dimension_semantics = [#arbitrary], scalar_prefetch = 1 : i64,
        window_params = [{transform_indices = @map, window_bounds = array<i64: 64, 256>}, {transform_indices = @map, window_bounds = array<i64: 8, 256>}]} {
      %c0 = arith.constant 0 : index
      %number = arith.constant 4 : i32
      %read = memref.load %n[%c0] : memref<1xi32, #smem>
      %computed = arith.muli %read, %number : i32
      %row = arith.index_cast %computed : i32 to index
      // expected-error@+3 {{the kernel reads from a buffer at an index in dimension 0 that the compiler can't prove to be a multiple of 8 [unproven-alignment]}}
      // expected-note@+2 {{with %arg0[0] = 1 step (0) has it at 4}}
      // expected-note@+1 {{begin at multiples of 8}}
      %v = vector.load %x[%row, %c0] : memref<64x256xf32, #vmem>, vector<8x256xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x256xf32, #vmem>, vector<8x256xf32>
      return
    }
    func.func @map(%i: i32, %n: memref<1xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %zero, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#smem = #tpu.memory_space<smem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// A tile at a time.
module {
  func.func @main(%n: tensor<1xi32>, %x: tensor<64x256xf32>) -> tensor<8x256xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<1xi32>, tensor<64x256xf32>) -> tensor<8x256xf32>
    return %0 : tensor<8x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %n: memref<1xi32, #smem>, %x: memref<64x256xf32, #vmem>, %o: memref<8x256xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 1>, dimension_semantics = [#arbitrary], scalar_prefetch = 1 : i64,
        window_params = [{transform_indices = @map, window_bounds = array<i64: 64, 256>}, {transform_indices = @map, window_bounds = array<i64: 8, 256>}]} {
      %c0 = arith.constant 0 : index
      %number = arith.constant 8 : i32
      %read = memref.load %n[%c0] : memref<1xi32, #smem>
      %computed = arith.muli %read, %number : i32
      %row = arith.index_cast %computed : i32 to index
      %v = vector.load %x[%row, %c0] : memref<64x256xf32, #vmem>, vector<8x256xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x256xf32, #vmem>, vector<8x256xf32>
      return
    }
    func.func @map(%i: i32, %n: memref<1xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %zero, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#smem = #tpu.memory_space<smem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// It is a multiple, but the compiler doesn't look through a shift.
module {
  func.func @main(%n: tensor<1xi32>, %x: tensor<64x256xf32>) -> tensor<8x256xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<1xi32>, tensor<64x256xf32>) -> tensor<8x256xf32>
    return %0 : tensor<8x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %n: memref<1xi32, #smem>, %x: memref<64x256xf32, #vmem>, %o: memref<8x256xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 1>, dimension_semantics = [#arbitrary], scalar_prefetch = 1 : i64,
        window_params = [{transform_indices = @map, window_bounds = array<i64: 64, 256>}, {transform_indices = @map, window_bounds = array<i64: 8, 256>}]} {
      %c0 = arith.constant 0 : index
      %number = arith.constant 3 : i32
      %read = memref.load %n[%c0] : memref<1xi32, #smem>
      %computed = arith.shli %read, %number : i32
      %row = arith.index_cast %computed : i32 to index
      // expected-error@+3 {{the kernel reads from a buffer at an index in dimension 0 that the compiler can't prove to be a multiple of 8 [unproven-alignment]}}
      // expected-note@+2 {{it always is one, by operations that the compiler doesn't follow or by contracts}}
      // expected-note@+1 {{say pl.multiple_of(index, 8)}}
      %v = vector.load %x[%row, %c0] : memref<64x256xf32, #vmem>, vector<8x256xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x256xf32, #vmem>, vector<8x256xf32>
      return
    }
    func.func @map(%i: i32, %n: memref<1xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %zero, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#smem = #tpu.memory_space<smem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// A single row of 16-bit elements is half of a row of words.
module {
  func.func @main(%n: tensor<1xi32>, %x: tensor<64x256xbf16>) -> tensor<1x256xbf16> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<1xi32>, tensor<64x256xbf16>) -> tensor<1x256xbf16>
    return %0 : tensor<1x256xbf16>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %n: memref<1xi32, #smem>, %x: memref<64x256xbf16, #vmem>, %o: memref<1x256xbf16, #vmem>) attributes {
        iteration_bounds = array<i64: 1>, dimension_semantics = [#arbitrary], scalar_prefetch = 1 : i64,
        window_params = [{transform_indices = @map, window_bounds = array<i64: 64, 256>}, {transform_indices = @map, window_bounds = array<i64: 1, 256>}]} {
      %c0 = arith.constant 0 : index
      %number = arith.constant 1 : i32
      %read = memref.load %n[%c0] : memref<1xi32, #smem>
      %computed = arith.addi %read, %number : i32
      %row = arith.index_cast %computed : i32 to index
      // expected-error@+3 {{the kernel reads from a buffer at an index in dimension 0 that the compiler can't prove to be a multiple of 8 [unproven-alignment]}}
      // expected-note@+2 {{with %arg0[0] = 0 step (0) has it at 1}}
      // expected-note@+1 {{begin at multiples of 8}}
      %v = vector.load %x[%row, %c0] : memref<64x256xbf16, #vmem>, vector<1x256xbf16>
      vector.store %v, %o[%c0, %c0] : memref<1x256xbf16, #vmem>, vector<1x256xbf16>
      return
    }
    func.func @map(%i: i32, %n: memref<1xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %zero, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#smem = #tpu.memory_space<smem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// A single row of 16-bit elements at a tile.
module {
  func.func @main(%n: tensor<1xi32>, %x: tensor<64x256xbf16>) -> tensor<1x256xbf16> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<1xi32>, tensor<64x256xbf16>) -> tensor<1x256xbf16>
    return %0 : tensor<1x256xbf16>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %n: memref<1xi32, #smem>, %x: memref<64x256xbf16, #vmem>, %o: memref<1x256xbf16, #vmem>) attributes {
        iteration_bounds = array<i64: 1>, dimension_semantics = [#arbitrary], scalar_prefetch = 1 : i64,
        window_params = [{transform_indices = @map, window_bounds = array<i64: 64, 256>}, {transform_indices = @map, window_bounds = array<i64: 1, 256>}]} {
      %c0 = arith.constant 0 : index
      %number = arith.constant 8 : i32
      %read = memref.load %n[%c0] : memref<1xi32, #smem>
      %computed = arith.muli %read, %number : i32
      %row = arith.index_cast %computed : i32 to index
      %v = vector.load %x[%row, %c0] : memref<64x256xbf16, #vmem>, vector<1x256xbf16>
      vector.store %v, %o[%c0, %c0] : memref<1x256xbf16, #vmem>, vector<1x256xbf16>
      return
    }
    func.func @map(%i: i32, %n: memref<1xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %zero, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#smem = #tpu.memory_space<smem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// The author says that it is a multiple.
module {
  func.func @main(%n: tensor<1xi32>, %x: tensor<64x256xf32>) -> tensor<8x256xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<1xi32>, tensor<64x256xf32>) -> tensor<8x256xf32>
    return %0 : tensor<8x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %n: memref<1xi32, #smem>, %x: memref<64x256xf32, #vmem>, %o: memref<8x256xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 1>, dimension_semantics = [#arbitrary], scalar_prefetch = 1 : i64,
        window_params = [{transform_indices = @map, window_bounds = array<i64: 64, 256>}, {transform_indices = @map, window_bounds = array<i64: 8, 256>}]} {
      %c0 = arith.constant 0 : index
      %read = memref.load %n[%c0] : memref<1xi32, #smem>
      %known = tpu.assume_multiple %read, 8 : i32
      %row = arith.index_cast %known : i32 to index
      %v = vector.load %x[%row, %c0] : memref<64x256xf32, #vmem>, vector<8x256xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x256xf32, #vmem>, vector<8x256xf32>
      return
    }
    func.func @map(%i: i32, %n: memref<1xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %zero, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#smem = #tpu.memory_space<smem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// A single row may be anywhere.
module {
  func.func @main(%n: tensor<1xi32>, %x: tensor<64x256xf32>) -> tensor<1x256xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<1xi32>, tensor<64x256xf32>) -> tensor<1x256xf32>
    return %0 : tensor<1x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %n: memref<1xi32, #smem>, %x: memref<64x256xf32, #vmem>, %o: memref<1x256xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 1>, dimension_semantics = [#arbitrary], scalar_prefetch = 1 : i64,
        window_params = [{transform_indices = @map, window_bounds = array<i64: 64, 256>}, {transform_indices = @map, window_bounds = array<i64: 1, 256>}]} {
      %c0 = arith.constant 0 : index
      %read = memref.load %n[%c0] : memref<1xi32, #smem>
      %row = arith.index_cast %read : i32 to index
      %v = vector.load %x[%row, %c0] : memref<64x256xf32, #vmem>, vector<1x256xf32>
      vector.store %v, %o[%c0, %c0] : memref<1x256xf32, #vmem>, vector<1x256xf32>
      return
    }
    func.func @map(%i: i32, %n: memref<1xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %zero, %zero : i32, i32
    }
  }
}

// -----

#vmem = #tpu.memory_space<vmem>
#smem = #tpu.memory_space<smem>
#arbitrary = #tpu.dimension_semantics<arbitrary>

// Lanes come in 128.
module {
  func.func @main(%n: tensor<1xi32>, %x: tensor<64x256xf32>) -> tensor<8x256xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<1xi32>, tensor<64x256xf32>) -> tensor<8x256xf32>
    return %0 : tensor<8x256xf32>
  }
  module @kernel attributes {stable_mosaic.version = 15 : i64} {
    func.func @kernel(%i: i32, %n: memref<1xi32, #smem>, %x: memref<64x256xf32, #vmem>, %o: memref<8x256xf32, #vmem>) attributes {
        iteration_bounds = array<i64: 1>, dimension_semantics = [#arbitrary], scalar_prefetch = 1 : i64,
        window_params = [{transform_indices = @map, window_bounds = array<i64: 64, 256>}, {transform_indices = @map, window_bounds = array<i64: 8, 256>}]} {
      %c0 = arith.constant 0 : index
      %read = memref.load %n[%c0] : memref<1xi32, #smem>
      %lane = arith.index_cast %read : i32 to index
      // expected-error@+3 {{the kernel reads from a buffer at an index in dimension 1 that the compiler can't prove to be a multiple of 128 [unproven-alignment]}}
      // expected-note@+2 {{with %arg0[0] = 1 step (0) has it at 1}}
      // expected-note@+1 {{begin at multiples of 128}}
      %v = vector.load %x[%c0, %lane] : memref<64x256xf32, #vmem>, vector<8x256xf32>
      vector.store %v, %o[%c0, %c0] : memref<8x256xf32, #vmem>, vector<8x256xf32>
      return
    }
    func.func @map(%i: i32, %n: memref<1xi32, #smem>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %zero, %zero : i32, i32
    }
  }
}
