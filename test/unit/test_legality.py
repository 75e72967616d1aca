"""Which dimensions may be shared between cores, asked through small kernels written as Pallas lowers them."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterator

import pytest
from jaxlib.mlir import ir

from mosaic_grid import legality
from mosaic_grid.context import create_context
from mosaic_grid.program import Program, ProgramError

VMEM = "memref<8x128xf32, #tpu.memory_space<vmem>>"
SMEM = "memref<1xi32, #tpu.memory_space<smem>>"
TABLE = "memref<16xi32, #tpu.memory_space<smem>>"
HBM = "memref<64x128xf32, #tpu.memory_space<hbm>>"
SEM = "memref<!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>"
SEMS = "memref<2x!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>"
PRELUDE = """
  %zero = arith.constant 0 : index
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %f = arith.constant dense<0.0> : vector<8x128xf32>
"""
DYNAMIC = -(2**63)


def load(ref: str, name: str) -> str:
    """A load of a whole f32[8,128] buffer."""
    return f"{name} = vector.load {ref}[%zero, %zero] : {VMEM}, vector<8x128xf32>\n"


def store(ref: str, value: str = "%f") -> str:
    """A store to a whole f32[8,128] buffer."""
    return f"tpu.vector_store {ref}[%zero, %zero], {value} {{strides = array<i32>}} : {VMEM}, vector<8x128xf32>,\n"


def when(condition: str, body: str) -> str:
    """`pl.when` on an i1, as JAX lowers it."""
    flag = f"%when{zlib.crc32((condition + body).encode())}_"
    return f"{flag} = arith.extui {condition} : i1 to i32\n{flag}b = arith.cmpi ne, {flag}, %c0 : i32\n" + (
        f"scf.if {flag}b {{\n{body}}} else {{\n}}\n"
    )


def is_first(axis: int) -> str:
    """%first{axis}: whether a grid index is 0."""
    return f"%first{axis} = arith.cmpi eq, %i{axis}, %c0 : i32\n"


@dataclasses.dataclass(frozen=True)
class Source:
    """A kernel with one input and one output of 8x128 blocks, unless `windows` says otherwise."""

    body: str
    bounds: tuple[int, ...] = (4, 2)
    semantics: tuple[str, ...] = ("parallel", "arbitrary")
    output_map: str = "%i0, %c0"
    input_map: str = "%i0, %c0"
    scratch: tuple[str, ...] = ()
    prefetch: tuple[str, ...] = ()
    map_prelude: str = ""
    output: str = VMEM
    blocked_output: bool = True
    attributes: str = "tpu.core_type = #tpu.core_type<tc>"
    window: str = "window_bounds = array<i64: 8, 128>"

    @property
    def text(self) -> str:
        """The module."""
        indices = [f"%i{axis}: i32" for axis in range(len(self.bounds))]
        tables = [f"%t{k}: {kind}" for k, kind in enumerate(self.prefetch)]
        scratch = [f"%s{k}: {kind}" for k, kind in enumerate(self.scratch)]
        arguments = ", ".join([*indices, *tables, f"%in: {VMEM}", f"%out: {self.output}", *scratch])
        semantics = ", ".join(f"#tpu.dimension_semantics<{word}>" for word in self.semantics)
        windows = [f"{{transform_indices = @transform_0, {self.window}}}"]
        windows.append(f"{{transform_indices = @transform_1, {self.window}}}" if self.blocked_output else "{}")
        maps = "".join(
            f"""func.func @transform_{k}({", ".join([*indices, *tables])}) -> (i32, i32) {{
              %c0 = arith.constant 0 : i32
              %c1 = arith.constant 1 : i32
              %c2 = arith.constant 2 : i32
              {self.map_prelude}
              return {result} : i32, i32
            }}\n"""
            for k, result in enumerate((self.input_map, self.output_map))
        )
        return f"""module @kernel attributes {{stable_mosaic.version = 18 : i64}} {{
          func.func @kernel({arguments}) attributes {{
              dimension_semantics = [{semantics}], iteration_bounds = array<i64: {", ".join(map(str, self.bounds))}>,
              scalar_prefetch = {len(self.prefetch)} : i64, scratch_operands = {len(self.scratch)} : i64,
              {self.attributes}, window_params = [{", ".join(windows)}]}} {{
            {PRELUDE}
            {self.body}
            return
          }}
          {maps}
        }}"""


COPY = load("%in", "%x") + store("%out", "%x")


@pytest.fixture(autouse=True)
def _context() -> Iterator[None]:
    with create_context():
        yield


def launched(source: Source, attributes: str = "", config: str = "") -> Program:
    """A program with one launch of the kernel, both arrays f32[64,128]."""
    dynamic = [axis for axis, bound in enumerate(source.bounds) if bound == DYNAMIC]
    scalars = [f"%n{axis}" for axis in dynamic]
    tables = [f"%t{k}" for k in range(len(source.prefetch))]
    shapes = [f"tensor<{kind.split('<')[1].split('xi32')[0]}xi32>" for kind in source.prefetch]
    kinds = ["tensor<i32>"] * len(scalars) + shapes + ["tensor<64x128xf32>"]
    operands = [*scalars, *tables, "%x"]
    arguments = ", ".join(f"{name}: {kind}" for name, kind in zip(operands, kinds, strict=True))
    config = f"{{\\22custom_call_config\\22: {{\\22body\\22: \\22\\22{config}}}}}"
    text = f"""module @jit_f {{
      func.func public @main({arguments}) -> tensor<64x128xf32> {{
        %0 = stablehlo.custom_call @tpu_custom_call({", ".join(operands)}) {{
          mosaic.kernel = @kernel, backend_config = "{config}" {attributes}}}
          : ({", ".join(kinds)}) -> tensor<64x128xf32>
        return %0 : tensor<64x128xf32>
      }}
      {source.text}
    }}"""
    return Program(ir.Operation.parse(text, source_name="kernel.mlir").operation)


def judged(source: Source, *axes: int, attributes: str = "", config: str = "") -> legality.Judgement:
    """The judgement on a kernel that is launched once."""
    program = launched(source, attributes, config)
    kernel = program.kernels["kernel"]
    for axis in range(len(kernel.grid)):
        # what is found with less work is found by the judgement, too, of this dimension and of those behind it
        if legality.hands_on(kernel, axis, program.launches):
            behind = range(axis, len(kernel.grid))
            assert all(legality.judge(kernel, (other,), program.launches).objections for other in behind)
    return legality.judge(kernel, axes or (0,), program.launches)


def reasons(source: Source, *axes: int) -> list[tuple[str, bool]]:
    """The objections, each with whether it is certain."""
    return [(objection.reason, objection.certain) for objection in judged(source, *axes).objections]


def not_shown(what: str, axis: int = 0) -> tuple[str, bool]:
    """The objection to memory that may not be written."""
    return f"can't show that {what} is written before it is read within one step of dimension {axis}", False


ACCUMULATE = load("%s0", "%acc") + "%sum = arith.addf %acc, %f : vector<8x128xf32>\n" + load("%s0", "%dead")
ACCUMULATE += store("%s0", "%sum") + load("%s0", "%total") + store("%out", "%total")
SCRATCH = "scratch operand 0 (f32[8,128])"


def test_copy_is_fine() -> None:
    """A kernel without state whose output block follows the split dimension has nothing against it, and no trust."""
    assert judged(Source(COPY)) == legality.Judgement()


def test_accumulator_initialised_at_the_first_inner_step_is_fine() -> None:
    """The matmul pattern: zero at k == 0, then add."""
    source = Source(is_first(1) + when("%first1", store("%s0")) + ACCUMULATE, scratch=(VMEM,))
    assert judged(source) == legality.Judgement()


def test_initialised_at_the_first_step_of_the_split_dimension() -> None:
    """A value that is set once for the whole grid crosses the split dimension, for certain."""
    source = Source(is_first(0) + when("%first0", store("%s0")) + ACCUMULATE, scratch=(VMEM,))
    told = f"{SCRATCH} is initialised only where grid index 0 is 0, so its value crosses dimension 0"
    assert reasons(source) == [(told, True)]


def test_initialised_at_the_very_first_step() -> None:
    """The same where the guard also asks for the first inner step."""
    body = is_first(0) + is_first(1) + "%both = arith.andi %first0, %first1 : i1\n" + when("%both", store("%s0"))
    told = f"{SCRATCH} is initialised only where grid index 0 is 0, so its value crosses dimension 0"
    assert reasons(Source(body + ACCUMULATE, scratch=(VMEM,))) == [(told, True)]


def test_scratch_that_is_handed_on_is_seen_at_a_glance() -> None:
    """An accumulator that the inner dimension initialises is handed on along that, and not along the outer one."""
    body = is_first(1) + when("%first1", store("%s0"))
    program = launched(Source(body + ACCUMULATE, scratch=(VMEM,)))
    found = [legality.hands_on(program.kernels["kernel"], axis, program.launches) for axis in (0, 1)]
    assert found == [False, True]


def test_inner_dimension_of_the_accumulation_is_refused() -> None:
    """Splitting the reduction itself is refused for its state and for its race."""
    source = Source(is_first(1) + when("%first1", store("%s0")) + ACCUMULATE, scratch=(VMEM,))
    told = [reason for reason, certain in reasons(source, 1) if certain]
    assert told == [
        f"{SCRATCH} is initialised only where grid index 1 is 0, so its value crosses dimension 1",
        "steps (0, 0) and (0, 1) write the same block (0, 0) of output 0",
    ]


def test_counter_without_initialisation() -> None:
    """A running count in SMEM is carried from each step to the next."""
    body = f"""%n = memref.load %s0[%zero] : {SMEM}
      %m = arith.addi %n, %c1 : i32
      memref.store %m, %s0[%zero] : {SMEM}
      """
    told = "scratch operand 0 (i32[1]) is read before it is written, so its value crosses dimension 0"
    assert reasons(Source(body + COPY, scratch=(SMEM,))) == [(told, True)]


@pytest.mark.parametrize(("last", "fine"), [("%first1", True), ("%other", False)])
def test_condition_from_a_table_or_first_step(last: str, fine: bool) -> None:
    """tgmm initialises where the group changes or at the first step: only the second is a proof."""
    body = (
        is_first(1)
        + f"""%g = memref.load %t0[%zero] : {TABLE}
      %changed = arith.cmpi ne, %g, %c1 : i32
      %other = arith.cmpi eq, %g, %c2 : i32
      %init = arith.ori %changed, {last} : i1
      """
    )
    source = Source(body + when("%init", store("%s0")) + ACCUMULATE, scratch=(VMEM,), prefetch=(TABLE,))
    assert reasons(source) == ([] if fine else [not_shown(SCRATCH)])


def test_dead_load_is_not_a_read() -> None:
    """JAX loads what a store overwrites; nothing uses it."""
    body = load("%s0", "%dead") + store("%s0") + load("%s0", "%y") + store("%out", "%y")
    assert reasons(Source(body, scratch=(VMEM,))) == []


def test_load_selected_away_at_the_first_step() -> None:
    """`where(k == 0, 0, acc)` reads nothing at k == 0; without the choice it does."""
    body = is_first(1) + load("%s0", "%acc") + "%now = arith.select %first1, %f, %acc : vector<8x128xf32>\n"
    assert reasons(Source(body + store("%s0", "%now") + COPY, scratch=(VMEM,))) == []
    other_way = body.replace("%f, %acc :", "%acc, %f :")
    assert reasons(Source(other_way + store("%s0", "%now") + COPY, scratch=(VMEM,))) == [not_shown(SCRATCH)]


@pytest.mark.parametrize("rows", [8, 4])
def test_parts_must_cover_what_is_read(rows: int) -> None:
    """Two half stores cover a whole load; one doesn't."""
    parts = "".join(
        f"%r{start} = arith.constant {start} : index\n"
        f"tpu.vector_store %s0[%r{start}, %zero], %h {{strides = array<i32>}} : {VMEM}, vector<4x128xf32>,\n"
        for start in range(0, rows, 4)
    )
    body = "%h = arith.constant dense<0.0> : vector<4x128xf32>\n" + parts + load("%s0", "%y") + store("%out", "%y")
    assert reasons(Source(body, scratch=(VMEM,))) == ([] if rows == 8 else [not_shown(SCRATCH)])


def test_masked_store_covers_nothing() -> None:
    """Elements that the mask leaves out keep what another step wrote."""
    masked = (
        store("%s0")
        .replace("vector<8x128xf32>,\n", "vector<8x128xf32>, vector<8x128xi1>\n")
        .replace("%f {", "%f masked %mask {")
    )
    body = "%mask = arith.constant dense<true> : vector<8x128xi1>\n" + masked + load("%s0", "%y") + store("%out", "%y")
    assert reasons(Source(body, scratch=(VMEM,))) == [not_shown(SCRATCH)]


def test_part_read_only_in_later_steps() -> None:
    """What the first inner step neither writes nor reads, a later one must not read."""
    half = f"%q = vector.load %s0[%zero, %zero] : {VMEM}, vector<4x128xf32>\n"
    write = f"tpu.vector_store %s0[%zero, %zero], %h {{strides = array<i32>}} : {VMEM}, vector<4x128xf32>,\n"
    first = is_first(1) + "%h = arith.constant dense<0.0> : vector<4x128xf32>\n" + when("%first1", write)
    later = "%true = arith.constant true\n%later = arith.xori %first1, %true : i1\n"
    use_half = (
        half + "tpu.vector_store %out[%zero, %zero], %q {strides = array<i32>} : " + f"{VMEM}, vector<4x128xf32>,\n"
    )
    use_all = load("%s0", "%y") + store("%out", "%y")
    kept = store("%s0", "%f")
    tail = "%last = arith.cmpi eq, %i1, %c2 : i32\n" + when("%last", kept)
    assert reasons(Source(first + later + when("%later", use_half) + tail, scratch=(VMEM,))) == []
    assert reasons(Source(first + later + when("%later", use_all) + tail, scratch=(VMEM,))) == [not_shown(SCRATCH)]


@pytest.mark.parametrize(("end", "fine"), [(2, True), (1, False)])
def test_initialised_in_a_loop(end: int, fine: bool) -> None:
    """A loop of few iterations is followed exactly."""
    body = f"""%h = arith.constant dense<0.0> : vector<4x128xf32>
      %c4 = arith.constant 4 : i32
      %end = arith.constant {end} : i32
      scf.for %j = %c0 to %end step %c1 : i32 {{
        %o = arith.muli %j, %c4 : i32
        %oi = arith.index_cast %o : i32 to index
        tpu.vector_store %s0[%oi, %zero], %h {{strides = array<i32>}} : {VMEM}, vector<4x128xf32>,
      }}
      """
    source = Source(body + load("%s0", "%y") + store("%out", "%y"), scratch=(VMEM,))
    assert reasons(source) == ([] if fine else [not_shown(SCRATCH)])


def test_loop_of_unknown_length() -> None:
    """What a loop that may not run has written isn't there behind it, but is inside it."""
    head = f"%n = memref.load %t0[%zero] : {TABLE}\nscf.for %j = %c0 to %n step %c1 : i32 {{\n"
    inside = head + store("%s0") + load("%s0", "%y") + store("%out", "%y") + "}\n"
    behind = head + store("%s0") + "}\n" + load("%s0", "%y") + store("%out", "%y")
    assert reasons(Source(inside, scratch=(VMEM,), prefetch=(TABLE,))) == []
    assert reasons(Source(behind, scratch=(VMEM,), prefetch=(TABLE,))) == [not_shown(SCRATCH)]


def test_same_condition_twice() -> None:
    """What is written under a condition is there wherever the same condition holds."""
    head = f"%n = memref.load %t0[%zero] : {TABLE}\n%c = arith.cmpi sgt, %n, %c1 : i32\n"
    read = load("%s0", "%y") + store("%out", "%y")
    source = Source(head + when("%c", store("%s0")) + when("%c", read), scratch=(VMEM,), prefetch=(TABLE,))
    assert reasons(source) == []
    other = "%d = arith.cmpi sgt, %n, %c2 : i32\n"
    source = Source(head + other + when("%c", store("%s0")) + when("%d", read), scratch=(VMEM,), prefetch=(TABLE,))
    assert reasons(source) == [not_shown(SCRATCH)]


def test_unknown_operation_is_refused() -> None:
    """An operation nobody listed may do anything to the buffer it is given."""
    body = store("%s0") + f'"brand.new"(%s0) : ({VMEM}) -> ()\n' + COPY
    assert reasons(Source(body, scratch=(VMEM,))) == [("brand.new does something to memory that isn't followed", False)]


def test_view_of_what_an_earlier_iteration_chose() -> None:
    """In the second iteration nobody knows which buffer is shown, whatever it was in the first one."""
    body = store("%s0") + (
        "scf.for %k = %c0 to %c2 step %c1 : i32 {\n%a = arith.cmpi eq, %k, %c0 : i32\n"
        "%b = arith.cmpi eq, %i0, %c1 : i32\n%c = arith.ori %a, %b : i1\n"
        f"%r = scf.if %c -> ({VMEM}) {{\nscf.yield %s0 : {VMEM}\n}} else {{\nscf.yield %s1 : {VMEM}\n}}\n"
        f"%v = tpu.memref_slice %r[%c0, %c0] : {VMEM} -> {VMEM}\n{load('%v', '%x')}{store('%out', '%x')}}}\n"
    )
    found = reasons(Source(body + store("%s1"), scratch=(VMEM, VMEM)))
    assert found == [("vector.load does something to memory that isn't followed", False)]


def test_written_prefetch_operand_is_state() -> None:
    """Paged attention keeps a flag in a prefetch operand; it crosses steps as scratch does."""
    body = f"""%n = memref.load %t0[%zero] : {TABLE}
      %m = arith.addi %n, %c1 : i32
      memref.store %m, %t0[%zero] : {TABLE}
      """
    told = "prefetch operand 0 is read before it is written, so its value crosses dimension 0"
    assert reasons(Source(body + COPY, prefetch=(TABLE,))) == [(told, True)]


def test_written_prefetch_operand_moves_a_window() -> None:
    """An index map that reads what the body writes makes the order of steps matter."""
    table = "%z = arith.constant 0 : index\n" + f"%b = memref.load %t0[%z] : {TABLE}\n"
    body = f"memref.store %c1, %t0[%zero] : {TABLE}\n" + COPY
    told = [reason for reason, _ in reasons(Source(body, prefetch=(TABLE,), map_prelude=table, input_map="%b, %c0"))]
    assert told == ["prefetch operand 0 is changed by the kernel and read by an index map"]


RANDOM = '%bits = "tpu.prng_random_bits"() : () -> vector<8x128xi32>\n'
RANDOM += "%float = arith.sitofp %bits : vector<8x128xi32> to vector<8x128xf32>\n" + store("%out", "%float")


def test_random_bits_need_a_seed_in_the_step() -> None:
    """The generator's state is carried unless each step, or each first inner step, sets it."""
    seed = '"tpu.prng_set_seed_32"(%i0) : (i32) -> ()\n'
    assert reasons(Source(seed + RANDOM)) == []
    assert reasons(Source(is_first(1) + when("%first1", seed) + RANDOM)) == []
    state = "the random number generator's state"
    assert reasons(Source(RANDOM)) == [
        (f"{state} is read before it is written, so its value crosses dimension 0", True)
    ]
    told = f"{state} is initialised only where grid index 0 is 0, so its value crosses dimension 0"
    assert reasons(Source(is_first(0) + when("%first0", seed) + RANDOM)) == [(told, True)]


def copy_to(slot: str, verb: str, semaphores: str = "%s1", name: str = "a") -> str:
    """Starts, or waits for, a copy of the input's first rows to a slot of a two-slot buffer %s0."""
    two = "memref<2x8x128xf32, #tpu.memory_space<vmem>>"
    one = two.replace("2x8", "1x8")
    sem_one = SEMS.replace("<2x", "<1x")
    wait = " {wait_target = true}" if verb == "tpu.wait_dma" else ""
    return f"""%copy_{name}0 = tpu.memref_slice {semaphores}[{slot}] : {SEMS} -> {sem_one}
      %copy_{name}1 = tpu.memref_squeeze %copy_{name}0 : {sem_one} -> {SEM}
      %copy_{name}2 = tpu.memref_slice %s0[{slot}, %c0, %c0] : {two} -> {one}
      %copy_{name}3 = tpu.memref_squeeze %copy_{name}2 : {one} -> {VMEM}
      {verb} source(%in : {VMEM}) target(%copy_{name}3 : {VMEM}) target_semaphore(%copy_{name}1 : {SEM}){wait}
      """


CORES = "knows of other cores or synchronises with them"
BUFFERS = ("memref<2x8x128xf32, #tpu.memory_space<vmem>>", SEMS)
START, WAIT = "tpu.enqueue_dma", "tpu.wait_dma"


def use(slot: str) -> str:
    """Copies a slot of the buffer to the output."""
    return f"""%si = arith.index_cast {slot} : i32 to index
      %v = vector.load %s0[%si, %zero, %zero] : {BUFFERS[0]}, vector<1x8x128xf32>
      %w = vector.shape_cast %v : vector<1x8x128xf32> to vector<8x128xf32>
      """ + store("%out", "%w")


def test_copy_that_ends_in_the_step_is_fine() -> None:
    """A copy is a write of its target once it is waited for."""
    body = copy_to("%c1", START) + copy_to("%c1", WAIT, name="b") + use("%c1")
    assert reasons(Source(body, scratch=BUFFERS)) == []
    too_early = copy_to("%c1", START) + use("%c1") + copy_to("%c1", WAIT, name="b")
    assert len(reasons(Source(too_early, scratch=BUFFERS))) == 1


def test_double_buffering_within_a_step() -> None:
    """Two slots, the next copy started before the last is waited for, in a loop of known length: exact."""
    body = (
        copy_to("%c0", START)
        + f"""%c3 = arith.constant 3 : i32
      scf.for %j = %c0 to %c3 step %c1 : i32 {{
        %slot = arith.remsi %j, %c2 : i32
        %other = arith.subi %c1, %slot : i32
        %next = arith.addi %j, %c1 : i32
        %more = arith.cmpi slt, %next, %c3 : i32
        scf.if %more {{ {copy_to("%other", START, name="c")} }}
        {copy_to("%slot", WAIT, name="d")} {use("%slot")}
      }}
      """
    )
    assert reasons(Source(body, scratch=BUFFERS)) == []
    leaves_one = body.replace("slt, %next, %c3", "slt, %next, %c2")
    assert reasons(Source(leaves_one, scratch=BUFFERS)) != []


def test_prefetch_for_the_next_step_is_refused() -> None:
    """A copy that one step starts and another waits for ties steps to their order."""
    body = is_first(0) + when("%first0", copy_to("%c0", START)) + copy_to("%c0", WAIT, name="b") + use("%c0")
    body += copy_to("%c0", START, name="e")
    told = "can't show that each copy or signal on scratch operand 1 (!tpu.dma_semaphore[2]) is waited for in the step "
    assert (told + "that starts it", False) in reasons(Source(body, scratch=BUFFERS))


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        ("%b = tpu.sem_barrier : memref<!tpu.semaphore, #tpu.memory_space<semaphore_mem>>", f"tpu.sem_barrier {CORES}"),
        (
            f"tpu.enqueue_dma source(%in : {VMEM}) target(%s0 : {VMEM}) source_semaphore(%s1 : {SEM})"
            f" target_semaphore(%s1 : {SEM}) device_id(%c0)",
            "tpu.enqueue_dma copies to or from another device or core",
        ),
        ('"tpu.barrier"(%zero) : (index) -> ()', f"tpu.barrier {CORES}"),
    ],
)
def test_effects_on_other_cores(op: str, reason: str) -> None:
    """Whatever talks to another core, or asks which core it is, is refused for certain."""
    assert reasons(Source(op + "\n" + COPY, scratch=(VMEM, SEM))) == [(reason, True)]


@pytest.mark.parametrize(("kind", "fine"), [(VMEM, True), (HBM, False)])
def test_buffer_of_a_step_of_its_own(kind: str, fine: bool) -> None:
    """Nothing says that each core has one in memory that the cores share."""
    told = [] if fine else [("what memref.alloca makes lies in memory that the cores share", False)]
    assert reasons(Source(f"%own = memref.alloca() : {kind}\n" + COPY)) == told


@pytest.mark.parametrize("config", [", \\22has_communication\\22: true", ", \\22collective_id\\22: 0"])
def test_launch_that_communicates(config: str) -> None:
    """A launch may say so although the kernel doesn't show it."""
    assert [o.reason for o in judged(Source(COPY), config=config).objections] == [
        "the launch says that its kernel communicates"
    ]


def test_launch_without_a_configuration_to_read() -> None:
    """Nobody knows whether such a launch communicates, which is an error at the launch."""
    program = launched(Source(COPY))
    (launch,) = program.launches
    launch.op.attributes["backend_config"] = ir.StringAttr.get("{}", program.module.context)
    with pytest.raises(ProgramError, match="backend_config has no 'custom_call_config' object") as error:
        legality.examine(launch.kernel, (0,), program.launches)
    assert error.value.op == launch.op


def test_other_core_types() -> None:
    """SparseCore kernels are not ours to share."""
    source = Source(COPY, attributes="tpu.core_type = #tpu.core_type<sc_scalar_subcore>")
    assert [certain for _, certain in reasons(source)] == [True]


@pytest.mark.parametrize(
    ("output_map", "prelude", "witness"),
    [
        ("%c0, %c0", "", "steps (0, 0) and (1, 0) write the same block (0, 0)"),
        ("%i1, %c0", "", "steps (0, 0) and (1, 0) write the same block (0, 0)"),
        ("%h, %c0", "%h = arith.divsi %i0, %c2 : i32", "steps (0, 0) and (1, 0) write the same block (0, 0)"),
        ("%s, %c0", "%s = arith.addi %i0, %i1 : i32", "steps (0, 1) and (1, 0) write the same block (1, 0)"),
        ("%r, %c0", "%r = arith.remsi %i0, %c2 : i32", "steps (0, 0) and (2, 0) write the same block (0, 0)"),
        ("%m, %c0", "%m = arith.minsi %i0, %c1 : i32", "steps (1, 0) and (2, 0) write the same block (1, 0)"),
    ],
)
def test_race_has_a_witness(output_map: str, prelude: str, witness: str) -> None:
    """Two steps of the split dimension with one output block, the first such pair."""
    told = f"parallel dimension 0 is a race: {witness} of output 0"
    assert reasons(Source(COPY, output_map=output_map, map_prelude=prelude)) == [(told, True)]


@pytest.mark.parametrize(
    ("output_map", "prelude"),
    [
        ("%i1, %i0", ""),
        ("%i0, %i1", ""),
        ("%t, %c0", "%d = arith.muli %i0, %c2 : i32\n%t = arith.addi %d, %i1 : i32"),
        ("%b, %c0", "%b = arith.subi %c1, %i0 : i32"),
        ("%q, %r", "%q = arith.divsi %i0, %c2 : i32\n%r = arith.remsi %i0, %c2 : i32"),
    ],
)
def test_maps_without_a_race(output_map: str, prelude: str) -> None:
    """Different indices of the split dimension always give different blocks."""
    assert judged(Source(COPY, output_map=output_map, map_prelude=prelude)) == legality.Judgement()


def test_dynamic_bound_races_from_two_steps_on() -> None:
    """A dynamic bound may be anything, so two steps are enough for a witness."""
    source = Source(COPY, bounds=(DYNAMIC, 2), output_map="%i1, %c0")
    told = "parallel dimension 0 is a race: steps (0, 0) and (1, 0) write the same block (0, 0) of output 0"
    assert reasons(source) == [(told, True)]
    assert reasons(Source(COPY, bounds=(DYNAMIC, 2))) == []


@pytest.mark.parametrize(
    ("prelude", "steps"),
    [
        ("%c7 = arith.constant 7 : i32\n%r = arith.minsi %i0, %c7 : i32", 8),
        ("%c8 = arith.constant 8 : i32\n%r = arith.remsi %i0, %c8 : i32", 8),
        ("%r = arith.muli %i0, %c0 : i32", 1),
    ],
)
def test_race_beyond_the_bounds_is_none(prelude: str, steps: int) -> None:
    """What is known of a dynamic bound counts: steps that no launch has don't race, and one more would."""
    program = launched(Source(COPY, bounds=(DYNAMIC, 2), output_map="%r, %c0", map_prelude=prelude))
    kernel = program.kernels["kernel"]
    assert legality.judge(kernel, (0,), program.launches, {0: steps}) == legality.Judgement()
    (objection,) = legality.judge(kernel, (0,), program.launches, {0: steps + 1}).objections
    assert objection.certain
    assert objection.name == "parallel-race"


DOUBLED = "%d = arith.muli %i0, %c2 : i32\n"
SUM = DOUBLED + "%s = arith.addi %d, %i1 : i32"


@pytest.mark.parametrize(
    ("output_map", "prelude", "inner", "witness"),
    [
        ("%s, %c0", SUM, 3, "steps (0, 2) and (1, 0) write the same block (2, 0)"),
        (
            "%r, %c0",
            "%t = arith.trunci %i0 : i32 to i2\n%r = arith.extui %t : i2 to i32",
            2,
            "steps (0, 0) and (4, 0) ",
        ),
        (
            "%r, %c0",
            "%t = arith.trunci %i0 : i32 to i2\n%r = arith.extsi %t : i2 to i32",
            2,
            "steps (0, 0) and (4, 0) ",
        ),
        ("%r, %c0", "%r = arith.ori %i0, %c1 : i32", 2, "steps (0, 0) and (1, 0) write the same block (1, 0)"),
        ("%r, %c0", "%r = arith.andi %i0, %c2 : i32", 2, "steps (0, 0) and (1, 0) write the same block (0, 0)"),
    ],
)
def test_race_of_a_dynamic_dimension(output_map: str, prelude: str, inner: int, witness: str) -> None:
    """Sums that would wrap only in enormous grids, and casts that lose bits in small ones, don't hide a race."""
    source = Source(COPY, bounds=(DYNAMIC, inner), output_map=output_map, map_prelude=prelude)
    (reason, certain), *others = reasons(source)
    assert reason.startswith(f"parallel dimension 0 is a race: {witness}")
    assert certain
    assert not others


@pytest.mark.parametrize(
    ("output_map", "prelude"),
    [
        ("%d, %c0", DOUBLED),
        ("%s, %c0", SUM),
        ("%r, %c0", "%n = tpu.iteration_bound 0 : i32\n%m = arith.subi %n, %c1 : i32\n%r = arith.subi %m, %i0 : i32"),
        ("%r, %c0", "%r = arith.xori %i0, %c1 : i32"),
        ("%q, %r", "%q = arith.ori %i0, %c1 : i32\n%r = arith.andi %c1, %i0 : i32"),
    ],
)
def test_dynamic_dimension_without_a_race(output_map: str, prelude: str) -> None:
    """Proved for every number of steps that an i32 holds, with wrapping."""
    source = Source(COPY, bounds=(DYNAMIC, 2), output_map=output_map, map_prelude=prelude)
    assert judged(source) == legality.Judgement()


@pytest.mark.parametrize(
    ("prelude", "event"),
    [
        ("%c8 = arith.constant 8 : i32\n%r = arith.muli %i0, %c8 : i32", "sum in its index map wraps around"),
        (
            "%c8 = arith.constant 8 : i64\n%w = arith.extsi %i0 : i32 to i64\n%p = arith.muli %w, %c8 : i64\n"
            "%r = arith.trunci %p : i64 to i32",
            "cast in its index map loses bits",
        ),
    ],
)
def test_wrapping_in_enormous_grids_is_taken_on_trust(prelude: str, event: str) -> None:
    """Blocks that meet only where a grid of 2**29 steps wraps around are no race; what happens there is named."""
    source = Source(COPY, bounds=(DYNAMIC, 2), output_map="%r, %c0", map_prelude=prelude)
    judgement = judged(source)
    assert judgement.objections == ()
    assert [a.claim for a in judgement.assumptions] == [f"for output 0, that no {event}"]


def test_difference_of_truth_values_is_no_sign() -> None:
    """On i1 a difference is taken modulo 2: 1 at every step but the third, the only one that writes here."""
    body = f"""%x = arith.subi %i0, %c2 : i32
      %p = arith.cmpi sgt, %x, %c0 : i32
      %q = arith.cmpi slt, %x, %c0 : i32
      %true = arith.constant true
      %d = arith.subi %p, %q : i1
      %g = arith.cmpi ne, %d, %true : i1
      scf.if %g {{ {store("%s0")} }}
      %low = arith.cmpi sle, %x, %c0 : i32
      """
    body += when("%low", load("%s0", "%y") + store("%out", "%y"))
    assert reasons(Source(body, scratch=(VMEM,))) == [not_shown(SCRATCH)]


def test_one_step_never_races() -> None:
    """A dimension of one step has no two steps to race."""
    assert reasons(Source(COPY, bounds=(1, 2), output_map="%c0, %c0")) == []


LOOKUP = f"%z = arith.index_cast %i0 : i32 to index\n%b = memref.load %t0[%z] : {TABLE}"


def test_table_is_taken_on_trust() -> None:
    """A block read from a table is the author's word where he gave it, and an objection where he didn't."""
    source = Source(COPY, prefetch=(TABLE,), map_prelude=LOOKUP, output_map="%b, %c0")
    judgement = judged(source)
    assert judgement.objections == ()
    claim = "that no two cores write the same block of output 0, whose index map depends on prefetch0[d0], "
    assert [a.claim for a in judgement.assumptions] == [claim + "which is read at run time"]
    silent = dataclasses.replace(source, semantics=("arbitrary", "arbitrary"))
    assert [o.certain for o in judged(silent).objections] == [False]


@pytest.mark.parametrize(
    ("place", "output_map", "told"),
    [
        ("%z = arith.constant 3 : index", "%b, %c0", "steps (0, 0) and (1, 0) write the same block (prefetch0[3], 0)"),
        ("%z = arith.index_cast %i1 : i32 to index", "%b, %c0", "steps (0, 0) and (1, 0) write the same block"),
        ("%z = arith.constant 3 : index", "%b, %i1", "steps (0, 0) and (1, 0) write the same block (prefetch0[3], 0)"),
        ("%z = arith.index_cast %i0 : i32 to index", "%b, %c0", None),
        ("%z = arith.constant 3 : index", "%b, %i0", None),
    ],
)
def test_table_read_at_a_place_of_its_own(place: str, output_map: str, told: str | None) -> None:
    """What a table says is no excuse where every step of the dimension reads the same entry."""
    table = f"{place}\n%b = memref.load %t0[%z] : {TABLE}\n"
    found = reasons(Source(COPY, prefetch=(TABLE,), map_prelude=table, output_map=output_map))
    if told is None:
        assert found == []
    else:
        ((reason, certain),) = found
        assert reason.startswith(f"parallel dimension 0 is a race: {told}")
        assert certain


def test_table_beside_an_index_is_proved() -> None:
    """One component that tells the steps apart is enough."""
    assert judged(Source(COPY, prefetch=(TABLE,), map_prelude=LOOKUP, output_map="%b, %i0")) == legality.Judgement()


def test_output_read_before_it_is_written() -> None:
    """An output block that may be revisited, and is read at once, hands something over, whatever was promised."""
    body = load("%out", "%old") + "%new = arith.addf %old, %f : vector<8x128xf32>\n" + store("%out", "%new")
    trusted = Source(body, prefetch=(TABLE,), map_prelude=LOOKUP, output_map="%b, %c0")
    assert [reason for reason, _ in reasons(trusted)] == [
        "output 0 is read before it is written, so its value crosses dimension 0"
    ]
    assert reasons(Source(body)) == []


@pytest.mark.parametrize(("map_", "races"), [("%e, %c0", True), ("%w, %c0", False)])
def test_element_windows_overlap(map_: str, races: bool) -> None:
    """Windows counted in elements race where their ranges overlap: 8 rows every 2, but not every 16."""
    prelude = "%c16 = arith.constant 16 : i32\n%e = arith.muli %i0, %c2 : i32\n%w = arith.muli %i0, %c16 : i32"
    window = "window_bounds = array<i64: 8, 128>, window_kind = #tpu.element_window<[0, 0], [0, 0]>"
    source = Source(COPY, output_map=map_, map_prelude=prelude, window=window)
    assert any("write overlapping blocks" in reason for reason, _ in reasons(source)) == races


def test_whole_output_in_smem() -> None:
    """Every core would copy back its own version of the whole."""
    body = f"memref.store %c1, %out[%zero] : {SMEM}\n"
    source = Source(body, output=SMEM, blocked_output=False)
    told = "every step gets the whole of output 0 and writes it, so what one core writes is lost to another's copy"
    assert reasons(source) == [(told, True)]
    assert reasons(dataclasses.replace(source, body="")) == []


ROWS = HBM.replace("64x", "8x")


def copy_out(row: str, name: str = "o") -> str:
    """Copies the input's block to eight rows of an output in HBM, from `row` on, and waits."""
    return f"""%sem_{name} = tpu.sem_alloc : {SEM}
      %{name} = tpu.memref_slice %out[{row}, %c0] : {HBM} -> {ROWS}
      tpu.enqueue_dma source(%in : {VMEM}) target(%{name} : {ROWS}) target_semaphore(%sem_{name} : {SEM})
      tpu.wait_dma source(%in : {VMEM}) target(%{name} : {ROWS}) target_semaphore(%sem_{name} : {SEM}) {{
        wait_target = true}}
      """


def copy_in(row: str) -> str:
    """Copies eight rows of an output in HBM to scratch, and waits."""
    return f"""%sem = tpu.sem_alloc : {SEM}
      %r = tpu.memref_slice %out[{row}, %c0] : {HBM} -> {ROWS}
      tpu.enqueue_dma source(%r : {ROWS}) target(%s0 : {VMEM}) target_semaphore(%sem : {SEM})
      tpu.wait_dma source(%r : {ROWS}) target(%s0 : {VMEM}) target_semaphore(%sem : {SEM}) {{wait_target = true}}
      """


OWN_ROW = "%c8 = arith.constant 8 : i32\n%own = arith.muli %i0, %c8 : i32\n"


@pytest.mark.parametrize(
    "body",
    [
        OWN_ROW + copy_out("%own"),
        OWN_ROW + copy_in("%own") + copy_out("%own"),
        is_first(0) + when("%first0", copy_out("%c0")),
    ],
)
def test_output_written_by_copies_to_rows_of_its_own(body: str) -> None:
    """An output in HBM that steps apart write apart needs nobody's word."""
    assert judged(Source(body, output=HBM, blocked_output=False, scratch=(VMEM,))) == legality.Judgement()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            f"%z = arith.index_cast %i0 : i32 to index\n%row = memref.load %t0[%z] : {TABLE}\n" + copy_out("%row"),
            "with prefetch0[0] = 0 and prefetch0[1] = 0 steps (0, 0) and (1, 0) do",
        ),
        (
            f"%n = memref.load %t0[%zero] : {TABLE}\n%b = arith.cmpi sgt, %n, %c1 : i32\n"
            + when("%b", copy_out("%c0")),
            "with prefetch0[0] = 2 steps (0, 0) and (1, 0) do",
        ),
    ],
)
def test_output_written_by_copies_is_taken_on_trust(body: str, why: str) -> None:
    """Where a copy goes may be up to a table: without a certain race that is the author's business."""
    source = Source(body, output=HBM, blocked_output=False, prefetch=(TABLE,), scratch=(VMEM,))
    trusted = judged(source)
    assert trusted.objections == ()
    claim = "that no two cores touch the same place of output 0, which the kernel writes itself"
    assert [a.claim for a in trusted.assumptions] == [claim]
    program = launched(dataclasses.replace(source, semantics=("arbitrary", "arbitrary")))
    unsaid = legality.examine(program.kernels["kernel"], (0,), program.launches)
    assert [(a.claim, a.why) for a in unsaid.assumptions] == [(claim, why)]


TWO_STEPS = "parallel dimension 0 is a race: steps (0, 0) and (1, 0) write overlapping places of output 0"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (copy_out("%c0"), TWO_STEPS),
        (copy_out("%i1"), TWO_STEPS),
        (copy_out("%i0"), TWO_STEPS),
        (is_first(1) + when("%first1", copy_out("%c0")), TWO_STEPS),
        (copy_in("%c0") + copy_out("%c0"), TWO_STEPS),
        (
            OWN_ROW + copy_in("%c0") + copy_out("%own"),
            "step (1, 0) reads a place of output 0 that step (0, 0) writes",
        ),
        (
            is_first(0) + when("%first0", copy_out("%c0")) + copy_in("%c0"),
            "step (1, 0) reads a place of output 0 that step (0, 0) writes",
        ),
    ],
)
def test_race_through_an_output_in_hbm(body: str, told: str) -> None:
    """Copies of two steps to one place, or from a place that another step writes, are a race whoever promised."""
    source = Source(body, output=HBM, blocked_output=False, scratch=(VMEM,))
    assert reasons(source) == [(told, True)]


ALIAS = """, output_operand_aliases = [#stablehlo.output_operand_alias<
  output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]"""


def test_in_place_update() -> None:
    """Reading the block one writes is fine; reading the neighbour's is not."""
    assert judged(Source(COPY), attributes=ALIAS) == legality.Judgement()
    neighbour = Source(COPY, input_map="%n, %c0", map_prelude="%n = arith.addi %i0, %c1 : i32")
    assert reasons(neighbour) == []
    told = "step (0, 0) reads a block of input 0 that step (1, 0) overwrites, as output 0 is written over it"
    assert [(o.reason, o.certain) for o in judged(neighbour, attributes=ALIAS).objections] == [(told, True)]


def test_in_place_update_over_an_outer_dimension() -> None:
    """An outer dimension that revisits a block in place changes how far apart the visits are, which is refused."""
    source = Source(COPY, semantics=("arbitrary", "parallel"), input_map="%i1, %c0", output_map="%i1, %c0")
    assert reasons(source, 1) == []
    assert [o.certain for o in judged(source, 1, attributes=ALIAS).objections] == [False]


def test_outer_dimension_and_inner_proof() -> None:
    """With a dimension outside the split one, only a proof from the inner dimensions holds."""
    body = is_first(2) + when("%first2", store("%s0")) + ACCUMULATE
    grid = Source(body, (3, 4, 2), ("arbitrary", "parallel", "arbitrary"), "%i0, %i1", "%i0, %i1", scratch=(VMEM,))
    assert reasons(grid, 1) == []
    outer = is_first(0) + when("%first0", store("%s0")) + ACCUMULATE
    told = f"{SCRATCH} is initialised only where grid index 0 is 0, so its value crosses dimension 0"
    assert reasons(dataclasses.replace(grid, body=outer), 1) == [(told, True)]


def test_two_dimensions_at_once() -> None:
    """Splitting a run of dimensions asks for more than splitting the first of them."""
    body = is_first(1) + when("%first1", store("%s0")) + ACCUMULATE
    grid = Source(body, (3, 4), ("parallel", "parallel"), "%i0, %i1", "%i0, %i1", scratch=(VMEM,))
    assert reasons(grid, 0) == []
    told = f"{SCRATCH} is initialised only where grid index 1 is 0, so its value crosses dimension 1"
    assert reasons(grid, 0, 1) == [(told, True)]


def test_bare_kernel_finds_its_outputs() -> None:
    """Without a launch the outputs are the windows from the first one that is written."""
    kernel = Program(ir.Operation.parse(Source(COPY, output_map="%c0, %c0").text).operation).kernels["kernel"]
    told = [o.reason for o in legality.objections(kernel, (0,), ())]
    assert told == ["parallel dimension 0 is a race: steps (0, 0) and (1, 0) write the same block (0, 0) of output 0"]
    assert legality.assumptions(kernel, (0,), ()) == ()
