"""`infer-parallel` on kernels that copy by hand: what is proved runs in any order, and on both cores."""

from __future__ import annotations

import pytest
from copying_kernels import KERNELS
from cpu_programs import assert_same, compiled
from jaxlib.mlir import ir

from mosaic_grid.context import create_context
from mosaic_grid.cpu.options import Options
from mosaic_grid.grid import Dimension, Semantics
from mosaic_grid.kernel_edit import set_grid
from mosaic_grid.libtpu import compile_program
from mosaic_grid.passes.infer_parallel import InferParallel
from mosaic_grid.passes.partition_cores import PartitionCores
from mosaic_grid.program import Program
from mosaic_grid.session import Session
from mosaic_grid.targets import parse_target
from mosaic_grid.unpack import pack, unpack
from mosaic_grid.write import write_bytecode


def lowered(name: str) -> ir.Operation:
    """The unpacked program; the context must be current."""
    program = ir.Module.parse(KERNELS[name].lowered()).operation
    unpack(program)
    return program


@pytest.mark.parametrize("name", KERNELS)
def test_copies_by_hand(name: str) -> None:
    """Dimensions whose steps copy to places of their own are marked, and give the same bits in random turns."""
    with create_context(), ir.Location.unknown():
        program = lowered(name)
        plain = compiled(program)
        InferParallel().run(program, Session())
        assert program.verify()
        (kernel,) = Program(program).kernels.values()
        assert "".join(dimension.semantics.value[0] for dimension in kernel.grid) == KERNELS[name].words
        if "p" not in KERNELS[name].words:
            return
        cores = [Dimension(d.bound, Semantics.CORE_PARALLEL) if d.is_parallel else d for d in kernel.grid]
        set_grid(kernel.body, cores)
        if KERNELS[name].dynamic:
            # cores can't take turns where nobody knows how many there are
            PartitionCores(cores=2).run(program, Session())
        arguments = KERNELS[name].arguments()
        expected = plain(*arguments)
        for seed in (1, 2):
            assert_same(compiled(program, Options(interleave=seed))(*arguments), expected, name)


@pytest.mark.libtpu
@pytest.mark.parametrize("name", [name for name, kernel in KERNELS.items() if "p" in kernel.words])
def test_both_cores_are_used(name: str) -> None:
    """By libtpu's word the kernel runs on one core, and on both when its dimensions are marked and shared."""
    with create_context(), ir.Location.unknown():
        before, after = lowered(name), lowered(name)
        session = Session(parse_target("v5p"))
        InferParallel().run(after, session)
        PartitionCores().run(after, session)
        cores = []
        for program in (before, after):
            pack(program)
            (report,) = compile_program(write_bytecode(program), [parse_target("v5p")])
            cores.append(max(launch.cores_used or 0 for launch in report.launches))
    assert cores == [1, 2]


def test_steps_that_show_it() -> None:
    """A refusal names two steps of which one waits for what the other has started, and a way out."""
    session = Session()
    with create_context(), ir.Location.unknown():
        InferParallel().run(lowered("ahead across"), session)
    notes = [each.message for diagnostic in session.diagnostics for each in diagnostic.notes]
    (first, *_) = session.diagnostics
    assert "scratch operand 0 (f32[2,8,128])" in first.message
    assert first.message.endswith("within one step of dimension 0: step (1, 0) finds what step (0, 3) left")
    semaphore = (
        "each copy or signal on scratch operand 1 (!tpu.dma_semaphore[2]) is waited for in the step that starts it"
    )
    assert f"and can't show that {semaphore}: step (1, 0) finds what step (0, 3) left" in notes
    ways = [note for note in notes if note.startswith("to share dimension")]
    assert ways == [
        "to share dimension 0, let copies run ahead within one index of it only: start the first one where "
        "program_id(1) is 0, and none for the step after the last",
        "to share dimension 1, wait in each step for the copies it starts; or write it as two dimensions, the first "
        "one parallel with a step for each core: start the first copy where the second index is 0, and none for the "
        "step after its last",
    ]


def test_copies_ahead_in_a_loop() -> None:
    """Of a loop of nobody knows how many iterations it is said what can be followed, and no two steps are named."""
    session = Session()
    with create_context(), ir.Location.unknown():
        InferParallel().run(lowered("doubled as told"), session)
    (refusal,) = session.diagnostics
    assert refusal.message.endswith("is written before it is read within one step of dimension 0")
    assert refusal.notes[-1].message == (
        "copies under way from one iteration of a loop to the next are followed if it has 32 iterations at most, and a "
        "constant number of them"
    )


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("overlapping", "steps (0) and (1) write overlapping places of output 0"),
        ("halo in place", "step (0) reads a place of output 0 that step (1) writes"),
        ("moved", "which the kernel writes itself: with table[0] = 0 and table[1] = 0 steps (0) and (1) do"),
    ],
)
def test_steps_that_meet(name: str, steps: str) -> None:
    """A refusal for a race names two steps that meet, and what tables hold where they do."""
    session = Session()
    with create_context(), ir.Location.unknown():
        InferParallel().run(lowered(name), session)
    assert session.diagnostics[0].message.endswith(steps)
