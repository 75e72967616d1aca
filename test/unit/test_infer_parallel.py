"""`infer-parallel` on kernels written as Pallas lowers them: each refusal beside a kernel that is almost the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
from jaxlib.mlir import ir
from test_legality import (
    ACCUMULATE,
    ALIAS,
    BUFFERS,
    COPY,
    DYNAMIC,
    LOOKUP,
    RANDOM,
    SCRATCH,
    SMEM,
    START,
    TABLE,
    VMEM,
    WAIT,
    Source,
    copy_to,
    is_first,
    launched,
    load,
    store,
    use,
    when,
)

from mosaic_grid.context import create_context
from mosaic_grid.diagnostics import Diagnostic
from mosaic_grid.passes.infer_parallel import InferParallel
from mosaic_grid.passes.partition_cores import PartitionCores
from mosaic_grid.program import Program
from mosaic_grid.session import Session

PLAIN = ("arbitrary", "arbitrary")
BOTH = "%i0, %i1"
EACH = Source(COPY, semantics=PLAIN, output_map=BOTH)
"""A kernel whose steps all write blocks of their own."""


@pytest.fixture(autouse=True)
def _context() -> Iterator[None]:
    with create_context():
        yield


def inferred(program: Program, kernels: tuple[str, ...] = ()) -> tuple[list[str], list[Diagnostic]]:
    """The words on the kernel's dimensions after the pass, and what it said; the bounds stay."""
    before = [dimension.bound for dimension in program.kernels["kernel"].grid]
    session = Session(kernels=kernels)
    InferParallel().run(program.module, session)
    assert program.module.verify()
    grid = Program(program.module).kernels["kernel"].grid
    assert [dimension.bound for dimension in grid] == before
    return [dimension.semantics.value for dimension in grid], session.diagnostics


def outcome(source: Source, attributes: str = "", config: str = "") -> tuple[str, list[str]]:
    """The words by their first letters, and what is said of dimensions that stay."""
    words, said = inferred(launched(source, attributes, config))
    told = [line.removesuffix(" [not-parallel]") for d in said if d.name == "not-parallel" for line in [d.message]]
    return "".join(word[0] for word in words), told


def stays(axis: int, reason: str) -> str:
    """How a refusal of one dimension reads."""
    return f"dimension {axis} of 'kernel' stays arbitrary: {reason}"


def test_independent_steps_are_marked_and_said() -> None:
    """Every dimension of a copy is marked, at the launch, with what to write in the source."""
    words, said = inferred(launched(EACH))
    assert words == ["parallel", "parallel"]
    (remark,) = said
    assert (remark.name, remark.about, remark.kernel) == ("marked-parallel", "dimensions 0 and 1", "kernel")
    assert [note.message for note in remark.notes] == [
        'to say so in the source: dimension_semantics=("parallel", "parallel")'
    ]
    assert remark.place is not None
    assert remark.place.file == "kernel.mlir"


def test_reduction_stays() -> None:
    """Over the dimension that the output's block doesn't follow, the order is the result."""
    told = stays(1, "steps (0, 0) and (0, 1) write the same block (0, 0) of output 0")
    assert outcome(dataclasses.replace(EACH, output_map="%i0, %c0")) == ("pa", [told])


def test_parallel_behind_arbitrary() -> None:
    """An inner dimension is marked although the outer one isn't: libtpu shares it all the same."""
    told = stays(0, "steps (0, 0) and (1, 0) write the same block (0, 0) of output 0")
    assert outcome(dataclasses.replace(EACH, output_map="%i1, %c0")) == ("ap", [told])


@pytest.mark.parametrize(
    ("axis", "words", "told"),
    [
        (1, "pa", [stays(1, f"{SCRATCH} is initialised only where grid index 1 is 0, so its value crosses dimension 1"
                            ": step (0, 1) finds what step (0, 0) left")]),
        (0, "aa", [
            stays(0, f"{SCRATCH} is initialised only where grid index 0 is 0, so its value crosses dimension 0"
                     ": step (1, 0) finds what step (0, 1) left"),
            # of the first step of all it was true that the first inner step initialises
            stays(1, f"{SCRATCH} is initialised only where grid index 0 is 0, so its value crosses dimension 0"
                     ": step (0, 1) finds what step (0, 0) left"),
        ]),
    ],
)  # fmt: skip
def test_accumulator(axis: int, words: str, told: list[str]) -> None:
    """A sum in scratch binds the dimensions from the one on at whose first step it is set to zero."""
    body = is_first(axis) + when(f"%first{axis}", store("%s0")) + ACCUMULATE
    assert outcome(dataclasses.replace(EACH, body=body, scratch=(VMEM,))) == (words, told)


def test_scratch_of_a_step() -> None:
    """Scratch that each step writes before it reads it carries nothing; read first, it does."""
    fresh = store("%s0") + load("%s0", "%y") + store("%out", "%y")
    assert outcome(dataclasses.replace(EACH, body=fresh, scratch=(VMEM,))) == ("pp", [])
    stale = load("%s0", "%y") + store("%out", "%y") + store("%s0")
    words, told = outcome(dataclasses.replace(EACH, body=stale, scratch=(VMEM,)))
    assert words == "aa"
    assert told[0] == stays(
        0,
        f"{SCRATCH} is read before it is written, so its value crosses dimension 0: "
        "step (1, 0) finds what step (0, 1) left",
    )


def test_output_block_that_comes_back() -> None:
    """Added to before it is written, a block that comes back after others would stay where a core has no others."""
    adds = load("%out", "%old") + "%new = arith.addf %old, %f : vector<8x128xf32>\n" + store("%out", "%new")
    source = dataclasses.replace(EACH, body=adds, output_map="%i1, %c0")
    words, told = outcome(source)
    assert words == "aa"
    why = "its block (0, 0) is that of steps (0, 0) and (1, 0), and fewer steps would lie between the two"
    assert told[1] == stays(1, f"output 0 is read before it is written, {why}")
    half = dataclasses.replace(source, body=is_first(0) + when("%first0", COPY))
    words, told = outcome(half)
    assert words == "aa"
    assert told[1] == stays(1, f"output 0 may stay unwritten in a step, {why}")
    # nothing is read, no block comes back, or it is brought in again
    assert outcome(dataclasses.replace(source, body=COPY))[0] == "ap"
    assert outcome(dataclasses.replace(source, output_map=BOTH))[0] == "pp"
    again = f"{source.window}, revisit_mode = #tpu.revisit_mode<any>"
    assert outcome(dataclasses.replace(source, window=again))[0] == "ap"


def test_scratch_that_nobody_writes() -> None:
    """What is only read can't be handed over."""
    body = load("%s0", "%y") + store("%out", "%y")
    assert outcome(dataclasses.replace(EACH, body=body, scratch=(VMEM,))) == ("pp", [])


def counter(memory: str) -> str:
    """A running count in SMEM."""
    return f"""%n = memref.load {memory}[%zero] : KIND
      %m = arith.addi %n, %c1 : i32
      memref.store %m, {memory}[%zero] : KIND
      """


@pytest.mark.parametrize(
    ("source", "memory", "name"),
    [
        (dataclasses.replace(EACH, scratch=(SMEM,)), "%s0", "scratch operand 0 (i32[1])"),
        (dataclasses.replace(EACH, prefetch=(TABLE,)), "%t0", "prefetch operand 0"),
    ],
)
def test_counter_in_smem(source: Source, memory: str, name: str) -> None:
    """A count over all steps, in scratch or in a prefetch operand, binds both dimensions; only read, it binds none."""
    text = counter(memory).replace("KIND", SMEM if memory == "%s0" else TABLE)
    words, told = outcome(dataclasses.replace(source, body=text + COPY))
    assert words == "aa"
    assert told[0] == stays(
        0,
        f"{name} is read before it is written, so its value crosses dimension 0: "
        "step (1, 0) finds what step (0, 1) left",
    )
    only_read = text.splitlines()[0] + "\n"
    assert outcome(dataclasses.replace(source, body=only_read + COPY)) == ("pp", [])


def test_block_from_a_table() -> None:
    """A table may hold a number twice; beside the index itself that makes no difference."""
    source = dataclasses.replace(EACH, prefetch=(TABLE,), map_prelude=LOOKUP, output_map="%b, %i1")
    told = stays(
        0,
        "it isn't proved that no two cores write the same block of output 0, whose index map depends on prefetch0[d0], "
        "which is read at run time: with prefetch0[0] = 0 and prefetch0[1] = 0 steps (0, 0) and (1, 0) do",
    )
    words, said = outcome(source)
    assert (words, said[0]) == ("ap", told)
    three = "%b, %i0"
    assert outcome(dataclasses.replace(source, bounds=(4, 1), output_map=three)) == ("pa", [])


def test_copy_under_way_between_steps() -> None:
    """A copy that one step starts and the next waits for; started and awaited in each step it binds nothing."""
    within = copy_to("%c1", START) + copy_to("%c1", WAIT, name="b") + use("%c1")
    assert outcome(dataclasses.replace(EACH, body=within, scratch=BUFFERS)) == ("pp", [])
    ahead = is_first(0) + when("%first0", copy_to("%c0", START)) + copy_to("%c0", WAIT, name="b") + use("%c0")
    crossing = dataclasses.replace(EACH, body=ahead + copy_to("%c0", START, name="e"), scratch=BUFFERS)
    words, said = inferred(launched(crossing))
    assert words == ["arbitrary", "arbitrary"]
    assert said[0].message.endswith("step (1, 0) finds what step (0, 1) left")
    semaphore = "and can't show that each copy or signal on scratch operand 1 (!tpu.dma_semaphore[2]) is waited for in "
    told = semaphore + "the step that starts it: step (1, 0) finds what step (0, 1) left"
    assert told in [note.message for note in said[0].notes]


def test_random_numbers() -> None:
    """Without a seed of its own a step's numbers depend on the steps before."""
    seed = '"tpu.prng_set_seed_32"(%i0) : (i32) -> ()\n'
    assert outcome(dataclasses.replace(EACH, body=seed + RANDOM)) == ("pp", [])
    words, told = outcome(dataclasses.replace(EACH, body=RANDOM))
    assert words == "aa"
    assert "the random number generator's state is read before it is written" in told[0]


def test_prints() -> None:
    """What is printed comes in the order of the steps; a trace is for profilers."""
    log = '"tpu.log"(%i0) <{formatted = false, tag = "step"}> : (i32) -> ()\n'
    told = "dimensions 0 and 1 of 'kernel' stay arbitrary: tpu.log prints, in the order of the steps"
    assert outcome(dataclasses.replace(EACH, body=log + COPY)) == ("aa", [told])
    trace = '"tpu.trace_start"() <{level = 10 : i32, message = "step"}> : () -> ()\n"tpu.trace_stop"() : () -> ()\n'
    assert outcome(dataclasses.replace(EACH, body=trace + COPY)) == ("pp", [])


def test_other_cores() -> None:
    """What speaks against all dimensions alike is said once."""
    barrier = '"tpu.barrier"(%zero) : (index) -> ()\n'
    told = "dimensions 0 and 1 of 'kernel' stay arbitrary: tpu.barrier knows of other cores or synchronises with them"
    assert outcome(dataclasses.replace(EACH, body=barrier + COPY)) == ("aa", [told])
    config = ", \\22has_communication\\22: true"
    told = "dimensions 0 and 1 of 'kernel' stay arbitrary: the launch says that its kernel communicates"
    assert outcome(EACH, config=config) == ("aa", [told])


def test_written_over_an_input() -> None:
    """An input that the output is written over may be read at the same block only."""
    same = dataclasses.replace(EACH, input_map=BOTH)
    assert outcome(same, ALIAS) == ("pp", [])
    other = dataclasses.replace(EACH, input_map="%n, %i1", map_prelude="%n = arith.addi %i0, %c1 : i32")
    assert outcome(other) == ("pp", [])
    told = "step (0, 0) reads a block of input 0 that step (1, 0) overwrites, as output 0 is written over it"
    # shared along dimension 1 alone, the block would be fetched again before it has been written back
    assert outcome(other, ALIAS) == (
        "aa",
        [stays(0, told), stays(1, f"{told}, and fewer steps would lie between the two")],
    )


def test_whole_output() -> None:
    """An output that every step gets whole and writes is refused with two steps; unwritten it binds nothing."""
    body = f"memref.store %c1, %out[%zero] : {SMEM}\n"
    source = dataclasses.replace(EACH, body=body, output=SMEM, blocked_output=False)
    words, told = outcome(source)
    assert words == "aa"
    assert told[0].endswith("is lost to another's copy; take steps (0, 0) and (1, 0)")
    assert outcome(dataclasses.replace(source, body="")) == ("pp", [])


def test_every_launch_counts() -> None:
    """A kernel that is launched twice is marked only if both launches allow it."""
    other = dataclasses.replace(EACH, input_map="%n, %i1", map_prelude="%n = arith.addi %i0, %c1 : i32")
    text = str(launched(other).module)
    call = next(line for line in text.splitlines() if "custom_call" in line)
    second = call.replace("%0 =", "%1 =").replace("mosaic.kernel", f"{ALIAS.removeprefix(', ')}, mosaic.kernel")
    twice = Program(ir.Operation.parse(text.replace(call, f"{call}\n{second}")).operation)
    assert len(twice.launches) == 2
    assert inferred(twice)[0][0] == "arbitrary"
    assert inferred(launched(other))[0] == ["parallel", "parallel"]


def test_bare_kernel_is_left() -> None:
    """Without a launch nobody knows which operands share memory."""
    program = Program(ir.Operation.parse(EACH.text).operation)
    words, (remark,) = inferred(program)
    assert words == ["arbitrary", "arbitrary"]
    why = "nothing launches it, so which operands share memory isn't known ('kernel')"
    assert (remark.name, remark.message) == ("nothing-to-mark", f"infer-parallel looked at nothing: {why}")


@pytest.mark.parametrize(
    ("bounds", "semantics", "words", "why"),
    [
        ((4, 2), ("parallel", "parallel"), "pp", "all dimensions are parallel"),
        ((2, 4), ("core_parallel", "arbitrary"), "ca", "its grid has a dimension for the cores already"),
        ((4, 1), ("parallel", "arbitrary"), "pa", "no arbitrary dimension has two steps"),
        ((1, 1), PLAIN, "aa", "no arbitrary dimension has two steps"),
    ],
)
def test_nothing_to_mark(bounds: tuple[int, int], semantics: tuple[str, str], words: str, why: str) -> None:
    """A kernel with no open question is left alone, and why is said."""
    found, (remark,) = inferred(launched(dataclasses.replace(EACH, bounds=bounds, semantics=semantics)))
    assert "".join(word[0] for word in found) == words
    assert remark.message == f"infer-parallel looked at nothing: {why} ('kernel')"


@pytest.mark.parametrize(
    ("bounds", "output_map", "words"),
    [((1, 4), "%i1, %c0", "pp"), ((4, 1), "%i0, %c0", "pa"), ((1, 4), "%c0, %c0", "aa")],
)
def test_dimension_of_one_step(bounds: tuple[int, int], output_map: str, words: str) -> None:
    """It is marked where it stands in front of one that is, and changes nothing by itself."""
    assert outcome(dataclasses.replace(EACH, bounds=bounds, output_map=output_map))[0] == words


def test_word_of_the_author_is_kept() -> None:
    """A dimension that is called parallel isn't judged, be it wrong; the others are."""
    source = dataclasses.replace(EACH, semantics=("parallel", "arbitrary"), output_map="%i1, %c0")
    assert outcome(source) == ("pp", [])


def test_dynamic_dimensions() -> None:
    """They are marked like others, for `partition-cores`; steps are named by the bounds."""
    dynamic = dataclasses.replace(EACH, bounds=(DYNAMIC, DYNAMIC))
    assert outcome(dynamic) == ("pp", [])
    body = is_first(1) + when("%first1", store("%s0")) + ACCUMULATE
    assert outcome(dataclasses.replace(dynamic, body=body, scratch=(VMEM,)))[0] == "pa"
    count = counter("%s0").replace("KIND", SMEM)
    told = outcome(dataclasses.replace(dynamic, body=count + COPY, scratch=(SMEM,)))[1]
    assert told[0].endswith("step (1, 0) finds what step (0, n1 - 1) left")


def test_contract_settles_a_bound() -> None:
    """Two steps of a dynamic dimension that write one block are none where a contract keeps the bound below them."""
    prelude = "%c7 = arith.constant 7 : i32\n%m = arith.andi %i0, %c7 : i32"
    source = dataclasses.replace(EACH, bounds=(DYNAMIC, 2), output_map="%m, %i1", map_prelude=prelude)
    assert inferred(launched(source))[0] == ["arbitrary", "parallel"]
    for most, word in ((8, "parallel"), (9, "arbitrary")):
        program = launched(source)
        InferParallel().run(program.module, Session(contracts=(f"%arg0 <= {most}",)))
        assert Program(program.module).kernels["kernel"].grid[0].semantics.value == word


def test_only_selected_kernels() -> None:
    """`--kernel` keeps others out."""
    words, (remark,) = inferred(launched(EACH), ("other*",))
    assert words == ["arbitrary", "arbitrary"]
    assert remark.message == "infer-parallel looked at nothing: there is no kernel to work on"


def test_another_dimension_to_share() -> None:
    """Where `partition-cores` refuses the dimension that is called parallel it names one that is."""
    source = Source(COPY, (DYNAMIC, 4), ("parallel", "arbitrary"), "%i1, %c0", "%i1, %c0")
    session = Session()
    with ir.Location.unknown():
        PartitionCores(cores=2).run(launched(source).module, session)
    (refusal,) = session.diagnostics
    assert refusal.message.endswith("steps (0, 0) and (1, 0) write the same block (0, 0) of output 0")
    assert [each.message for each in refusal.notes] == [
        "the kernel is left as it was",
        "dimension 1 can be shared instead: the steps are proved independent, so call it parallel, or run "
        "infer-parallel first",
    ]
