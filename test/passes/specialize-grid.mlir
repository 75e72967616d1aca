// Static variants of a dynamic grid, the index that picks one, and the original where none fits.
// RUN: split-file %s %t
// RUN: %mosaic-opt %t/one.mlir -p 'specialize-grid{values=8,16,24}' | FileCheck %s --check-prefix=EXACT
// RUN: %mosaic-opt %t/one.mlir -p 'specialize-grid{values=5,8,3}' | FileCheck %s --check-prefix=ANY
// RUN: %mosaic-opt %t/one.mlir -p 'specialize-grid{values=8,16 bucket=round-up}' | FileCheck %s --check-prefix=BUCKET
// RUN: %mosaic-opt %t/one.mlir -p 'specialize-grid{values=8,16 bucket=round-up}' --target=v5p | FileCheck %s --check-prefix=SHARED
// RUN: %mosaic-opt %t/one.mlir -p 'specialize-grid{ladder=multiples-of:6 bucket=round-up}' --contracts 'n >= 1, n <= 20' | FileCheck %s --check-prefix=LADDER
// RUN: %mosaic-opt %t/proved.mlir -p specialize-grid | FileCheck %s --check-prefix=PROVED
// RUN: %mosaic-opt %t/two.mlir -p 'specialize-grid{values=0=2,1=4}' | FileCheck %s --check-prefix=TWO
// RUN: %mosaic-opt %t/two.mlir -p 'specialize-grid{values=1=4}' | FileCheck %s --check-prefix=ONE-OF-TWO
// RUN: %mosaic-opt %t/places.mlir -p 'specialize-grid{values=n=2}' | FileCheck %s --check-prefix=PLACES
// RUN: %mosaic-opt %t/places.mlir -p 'specialize-grid{values=a*:0=2}' | FileCheck %s --check-prefix=NAMED

// Bounds at equal distances: one subtraction, one division, and a comparison that tells what lies between.
// EXACT-LABEL: func.func @one(
// EXACT-SAME:    %[[N:[a-z0-9]+]]: tensor<i32>, %[[X:[a-z0-9]+]]: tensor<256x512xf32>
// EXACT-DAG:     %[[EIGHT:.*]] = stablehlo.constant dense<8> : tensor<i32>
// EXACT:         %[[ABOVE:.*]] = stablehlo.subtract %[[N]], %[[EIGHT]]
// EXACT:         %[[STEPS:.*]] = stablehlo.divide %[[ABOVE]], %{{.*}}
// EXACT:         %[[BACK:.*]] = stablehlo.multiply %[[STEPS]], %{{.*}}
// EXACT:         %[[ON:.*]] = stablehlo.compare EQ, %[[BACK]], %[[ABOVE]]
// EXACT:         %[[INDEX:.*]] = stablehlo.select %[[ON]], %[[STEPS]], %{{.*}}
// EXACT-NOT:     stablehlo.compare
// EXACT:         %[[R:.*]] = "stablehlo.case"(%[[INDEX]]) ({
// the bound's operand is gone, and what counted operands follows
// EXACT:           stablehlo.custom_call @tpu_custom_call(%[[X]])
// EXACT-SAME:        \22input_memory_space_colors\22: [{\22operand_index\22: 0, \22color\22: 1}]
// EXACT-SAME:        mosaic.kernel = @last_d0_8,
// EXACT-SAME:        operand_layouts = [dense<[1, 0]> : tensor<2xindex>],
// EXACT-SAME:        output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]
// EXACT:         }, {
// EXACT:           stablehlo.custom_call @tpu_custom_call(%[[X]]) {{.*}}mosaic.kernel = @last_d0_16,
// EXACT:         }, {
// EXACT:           stablehlo.custom_call @tpu_custom_call(%[[X]]) {{.*}}mosaic.kernel = @last_d0_24,
// EXACT:         }, {
// the original is the last branch: an index out of range takes it
// EXACT:           stablehlo.custom_call @tpu_custom_call(%[[N]], %[[X]]) {{.*}}mosaic.kernel = @last,
// EXACT:         return %[[R]]
// EXACT:         module @last attributes
// EXACT:           iteration_bounds = array<i64: -9223372036854775808, 1>
// EXACT:         module @last_d0_8 attributes
// EXACT:           dimension_semantics = [#tpu.dimension_semantics<parallel>, #tpu.dimension_semantics<arbitrary>]
// EXACT-SAME:      iteration_bounds = array<i64: 8, 1>
// the guard of the last step compares with a constant, that of the dimension of one step is gone
// EXACT-DAG:       %[[SEVEN:.*]] = arith.constant 7 : i32
// EXACT-DAG:       %[[TRIPS:.*]] = arith.constant 8 : i32
// EXACT-NOT:       tpu.iteration_bound
// EXACT:           arith.cmpi eq, %{{.*}}, %[[SEVEN]] : i32
// EXACT-NEXT:      scf.if
// EXACT-NOT:       scf.if
// the loop over all steps has a static trip count
// EXACT:           scf.for %{{.*}} = %{{.*}} to %[[TRIPS]]

// Any bounds, in any order: a comparison each.
// ANY-LABEL:   func.func @one(
// ANY-COUNT-3:   stablehlo.compare EQ
// ANY-NOT:       stablehlo.compare
// ANY:           "stablehlo.case"
// ANY:             mosaic.kernel = @last_d0_3,
// ANY:             mosaic.kernel = @last_d0_5,
// ANY:             mosaic.kernel = @last_d0_8,
// ANY:             mosaic.kernel = @last,

// In buckets the ends below the bound are counted. No chip is named, so that nothing is shared. The last step is the last scalar-prefetch operand.
// BUCKET-LABEL: func.func @one(
// BUCKET-SAME:    %[[N:[a-z0-9]+]]: tensor<i32>, %[[X:[a-z0-9]+]]: tensor<256x512xf32>
// BUCKET:         %[[A:.*]] = stablehlo.compare GT, %[[N]], %{{.*}}
// BUCKET:         %[[B:.*]] = stablehlo.compare GT, %[[N]], %{{.*}}
// BUCKET:         stablehlo.add
// BUCKET:         %[[NONE:.*]] = stablehlo.compare LT, %[[N]], %{{.*}}
// BUCKET:         %[[INDEX:.*]] = stablehlo.select %[[NONE]], %{{.*}}, %{{.*}}
// BUCKET:         "stablehlo.case"(%[[INDEX]])
// BUCKET:           %[[LAST:.*]] = stablehlo.subtract %[[N]], %{{.*}} : tensor<i32>
// BUCKET:           %[[TABLE:.*]] = stablehlo.reshape %[[LAST]] : (tensor<i32>) -> tensor<1xi32>
// BUCKET:           stablehlo.custom_call @tpu_custom_call(%[[TABLE]], %[[X]])
// BUCKET-SAME:        \22operand_index\22: 1, \22color\22: 1
// BUCKET-SAME:        mosaic.kernel = @last_d0_8,
// BUCKET-SAME:        operand_layouts = [dense<0> : tensor<1xindex>, dense<[1, 0]> : tensor<2xindex>]
// BUCKET-SAME:        operand_index = 1,
// BUCKET:         module @last_d0_8 attributes
// BUCKET:           func.func @last(%[[I:.*]]: i32, %{{.*}}: i32, %[[T:.*]]: memref<1xi32, #tpu.memory_space<smem>>
// BUCKET-SAME:        dimension_semantics = [#tpu.dimension_semantics<arbitrary>, #tpu.dimension_semantics<arbitrary>]
// BUCKET-SAME:        iteration_bounds = array<i64: 8, 1>, scalar_prefetch = 1 : i64
// BUCKET:           %[[LAST:.*]] = memref.load %[[T]]
// BUCKET:           %[[VALID:.*]] = arith.cmpi sle, %[[I]], %[[LAST]] : i32
// BUCKET:           scf.if %[[VALID]] {
// BUCKET:         func.func @rows(%[[I:.*]]: i32, %{{.*}}: i32, %[[T:.*]]: memref<1xi32
// BUCKET:           %[[LAST:.*]] = memref.load %[[T]]
// BUCKET:           %[[ROW:.*]] = arith.minsi %[[I]], %[[LAST]] : i32
// BUCKET:           return %[[ROW]], %{{.*}}

// On two cores a guarded parallel dimension is shared between them; one step is left to the original.
// SHARED-LABEL: func.func @one(
// SHARED-SAME:    %[[N:[a-z0-9]+]]: tensor<i32>, %[[X:[a-z0-9]+]]: tensor<256x512xf32>
// SHARED:         stablehlo.constant dense<2> : tensor<i32>
// SHARED-NEXT:    stablehlo.compare LT, %[[N]],
// SHARED:         "stablehlo.case"
// SHARED:           stablehlo.custom_call @tpu_custom_call(%{{.*}}, %{{.*}}, %[[X]])
// SHARED-SAME:        mosaic.kernel = @last_d0_8,
// SHARED:         module @last_d0_8 attributes
// SHARED:           dimension_semantics = [#tpu.dimension_semantics<core_parallel>, #tpu.dimension_semantics<arbitrary>
// SHARED-SAME:      iteration_bounds = array<i64: 2, 4{{[,>]}}
// SHARED:         module @last_d0_16 attributes
// SHARED:           iteration_bounds = array<i64: 2, 8{{[,>]}}

// Those up to a largest bound that is promised leave nothing to the original.
// LADDER-LABEL: func.func @one(
// LADDER-COUNT-3: stablehlo.compare GT
// LADDER-NOT:     stablehlo.compare
// LADDER:         mosaic.kernel = @last_d0_6,
// LADDER:         mosaic.kernel = @last_d0_12,
// LADDER:         mosaic.kernel = @last_d0_18,
// LADDER:         mosaic.kernel = @last_d0_20,
// LADDER-NOT:   module @last attributes

// All of a small range: the index is a difference, and there is no original any more.
// PROVED-LABEL: func.func @proved(
// PROVED:         %[[BOUND:.*]] = stablehlo.clamp
// PROVED:         %[[INDEX:.*]] = stablehlo.subtract %[[BOUND]], %{{.*}}
// PROVED-NEXT:    "stablehlo.case"(%[[INDEX]])
// PROVED:         mosaic.kernel = @copy_d0_2
// PROVED:         mosaic.kernel = @copy_d0_3
// PROVED:         mosaic.kernel = @copy_d0_4
// PROVED-NOT:     mosaic.kernel
// PROVED-NOT:   module @copy attributes

// Both bounds have to fit; each is compared once.
// TWO-LABEL:    func.func @two(
// TWO-SAME:       %[[N:[a-z0-9]+]]: tensor<i32>, %[[M:[a-z0-9]+]]: tensor<i32>, %[[X:[a-z0-9]+]]: tensor<256x512xf32>
// TWO-DAG:        %[[A:.*]] = stablehlo.compare EQ, %[[N]],
// TWO-DAG:        %[[B:.*]] = stablehlo.compare EQ, %[[M]],
// TWO:            stablehlo.and %[[A]], %[[B]]
// TWO-NOT:        stablehlo.compare
// TWO:            @tpu_custom_call(%[[X]]) {{.*}}mosaic.kernel = @copy_d0_2_d1_4
// TWO:            @tpu_custom_call(%[[N]], %[[M]], %[[X]]) {{.*}}mosaic.kernel = @copy}
// TWO:          iteration_bounds = array<i64: 2, 4>

// A dimension that nothing is asked of stays dynamic, and keeps its operand.
// ONE-OF-TWO-LABEL: func.func @two(
// ONE-OF-TWO-SAME:    %[[N:[a-z0-9]+]]: tensor<i32>, %[[M:[a-z0-9]+]]: tensor<i32>, %[[X:[a-z0-9]+]]: tensor<256x512xf32>
// ONE-OF-TWO:         @tpu_custom_call(%[[N]], %[[X]]) {{.*}}mosaic.kernel = @copy_d1_4
// ONE-OF-TWO:         @tpu_custom_call(%[[N]], %[[M]], %[[X]]) {{.*}}mosaic.kernel = @copy}
// ONE-OF-TWO:       iteration_bounds = array<i64: -9223372036854775808, 4>

// Launches in a branch, in a loop and in a function share a variant, that of an equal kernel too; where the bound isn't
// computed from `n` a launch stays as it is.
// PLACES-LABEL: func.func @places(
// PLACES:         stablehlo.if
// PLACES:           "stablehlo.case"
// PLACES:             mosaic.kernel = @[[V:[a-z]+_d0_2]]
// PLACES:             mosaic.kernel = @a}
// PLACES:         stablehlo.while
// PLACES:           "stablehlo.case"
// PLACES:             mosaic.kernel = @[[V]]}
// PLACES:             mosaic.kernel = @again}
// PLACES:         stablehlo.custom_call {{.*}}mosaic.kernel = @a}
// PLACES:         module @a attributes
// PLACES:         module @again attributes
// PLACES:         module @[[V]] attributes
// PLACES-NOT:     module @

// A kernel by its name; all of its launches have dimension 0.
// NAMED-LABEL:  func.func @places(
// NAMED:          mosaic.kernel = @[[V:[a-z]+_d0_2]]
// NAMED:          mosaic.kernel = @[[V]]}
// NAMED:          mosaic.kernel = @[[V]]}
// NAMED:          mosaic.kernel = @a}

//--- one.mlir
#vmem = #tpu.memory_space<vmem>
#parallel = #tpu.dimension_semantics<parallel>
#arbitrary = #tpu.dimension_semantics<arbitrary>
module {
  func.func @one(%n: tensor<i32> loc("n"), %x: tensor<256x512xf32>) -> tensor<256x512xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {
        mosaic.kernel = @last, kernel_name = "last",
        backend_config = "{\22custom_call_config\22: {\22body\22: \22\22, \22input_memory_space_colors\22: [{\22operand_index\22: 1, \22color\22: 1}]}}",
        operand_layouts = [dense<> : tensor<0xindex>, dense<[1, 0]> : tensor<2xindex>],
        result_layouts = [dense<[1, 0]> : tensor<2xindex>],
        output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>]
      } : (tensor<i32>, tensor<256x512xf32>) -> tensor<256x512xf32>
    return %0 : tensor<256x512xf32>
  }
  module @last attributes {stable_mosaic.version = 15 : i64} {
    func.func @last(%i: i32, %j: i32, %x: memref<8x512xf32, #vmem>, %o: memref<8x512xf32, #vmem>) attributes {
        iteration_bounds = array<i64: -9223372036854775808, 1>, dimension_semantics = [#parallel, #arbitrary],
        scalar_prefetch = 0 : i64, scratch_operands = 0 : i64, tpu.core_type = #tpu.core_type<tc>,
        window_params = [{transform_indices = @rows, window_bounds = array<i64: 8, 512>},
                         {transform_indices = @rows, window_bounds = array<i64: 8, 512>}]} {
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %block = vector.load %x[%c0, %c0] : memref<8x512xf32, #vmem>, vector<8x512xf32>
      %n = tpu.iteration_bound 0 : i32
      %last = arith.subi %n, %one : i32
      %is_last = arith.cmpi eq, %i, %last : i32
      scf.if %is_last {
        tpu.vector_store %o[%c0, %c0], %block {strides = array<i32>} : memref<8x512xf32, #vmem>, vector<8x512xf32>,
      }
      %m = tpu.iteration_bound 1 : i32
      %inner_last = arith.subi %m, %one : i32
      %is_not_last = arith.cmpi ne, %j, %inner_last : i32
      scf.if %is_not_last {
        tpu.vector_store %o[%c0, %c0], %block {strides = array<i32>} : memref<8x512xf32, #vmem>, vector<8x512xf32>,
      }
      scf.for %k = %zero to %n step %one : i32 {
        %old = vector.load %o[%c0, %c0] : memref<8x512xf32, #vmem>, vector<8x512xf32>
        %sum = arith.addf %old, %block : vector<8x512xf32>
        tpu.vector_store %o[%c0, %c0], %sum {strides = array<i32>} : memref<8x512xf32, #vmem>, vector<8x512xf32>,
      }
      return
    }
    func.func @rows(%i: i32, %j: i32) -> (i32, i32) {
      return %i, %j : i32, i32
    }
  }
}

//--- proved.mlir
module {
  func.func @proved(%n: tensor<i32>, %x: tensor<256x512xf32>) -> tensor<256x512xf32> {
    %low = stablehlo.constant dense<2> : tensor<i32>
    %high = stablehlo.constant dense<4> : tensor<i32>
    %bound = stablehlo.clamp %low, %n, %high : tensor<i32>
    %0 = stablehlo.custom_call @tpu_custom_call(%bound, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<256x512xf32>) -> tensor<256x512xf32>
    return %0 : tensor<256x512xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %x: memref<256x512xf32, #tpu.memory_space<vmem>>, %o: memref<256x512xf32, #tpu.memory_space<vmem>>)
        attributes {iteration_bounds = array<i64: -9223372036854775808>} {
      return
    }
  }
}

//--- two.mlir
module {
  func.func @two(%n: tensor<i32>, %m: tensor<i32>, %x: tensor<256x512xf32>) -> tensor<256x512xf32> {
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %m, %x) {mosaic.kernel = @copy, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<i32>, tensor<256x512xf32>) -> tensor<256x512xf32>
    return %0 : tensor<256x512xf32>
  }
  module @copy attributes {stable_mosaic.version = 15 : i64} {
    func.func @copy(%i: i32, %j: i32, %x: memref<256x512xf32, #tpu.memory_space<vmem>>, %o: memref<256x512xf32, #tpu.memory_space<vmem>>)
        attributes {iteration_bounds = array<i64: -9223372036854775808, -9223372036854775808>} {
      return
    }
  }
}

//--- places.mlir
module {
  func.func @places(%n: tensor<i32> loc("n"), %m: tensor<i32> loc("m"), %yes: tensor<i1>, %x: tensor<256x512xf32>) -> tensor<256x512xf32> {
    %0 = "stablehlo.if"(%yes) ({
      %1 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @a, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<256x512xf32>) -> tensor<256x512xf32>
      stablehlo.return %1 : tensor<256x512xf32>
    }, {
      stablehlo.return %x : tensor<256x512xf32>
    }) : (tensor<i1>) -> tensor<256x512xf32>
    %start = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %2:2 = stablehlo.while(%k = %start, %y = %0) : tensor<i32>, tensor<256x512xf32>
      cond {
        %more = stablehlo.compare LT, %k, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      } do {
        %3 = stablehlo.custom_call @tpu_custom_call(%n, %y) {mosaic.kernel = @again, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<256x512xf32>) -> tensor<256x512xf32>
        %next = stablehlo.add %k, %one : tensor<i32>
        stablehlo.return %next, %3 : tensor<i32>, tensor<256x512xf32>
      }
    %4 = stablehlo.custom_call @tpu_custom_call(%m, %2#1) {mosaic.kernel = @a, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"} : (tensor<i32>, tensor<256x512xf32>) -> tensor<256x512xf32>
    return %4 : tensor<256x512xf32>
  }
  module @a attributes {stable_mosaic.version = 15 : i64} {
    func.func @add(%i: i32, %x: memref<256x512xf32, #tpu.memory_space<vmem>>, %o: memref<256x512xf32, #tpu.memory_space<vmem>>)
        attributes {iteration_bounds = array<i64: -9223372036854775808>} {
      return
    }
  }
  module @again attributes {stable_mosaic.version = 15 : i64} {
    func.func @add(%i: i32, %x: memref<256x512xf32, #tpu.memory_space<vmem>>, %o: memref<256x512xf32, #tpu.memory_space<vmem>>)
        attributes {iteration_bounds = array<i64: -9223372036854775808>} {
      return
    }
  }
}
