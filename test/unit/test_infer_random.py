"""`infer-parallel` on random kernels: what it marks may run in any order, and it misses nothing that is affine."""

from __future__ import annotations

import pytest
from cpu_programs import assert_same, compiled
from hypothesis import given, settings
from hypothesis import strategies as st
from infer_samples import Action, Index, Sample, copies, samples
from jaxlib.mlir import ir

from mosaic_grid.context import create_context
from mosaic_grid.cpu.options import Options
from mosaic_grid.grid import Semantics
from mosaic_grid.legality import examine
from mosaic_grid.objections import Judgement
from mosaic_grid.passes.infer_parallel import InferParallel
from mosaic_grid.program import Program
from mosaic_grid.session import Session

CONTEXT = create_context()


def marked(sample: Sample, dynamic: tuple[int, ...] = ()) -> list[int]:
    """The dimensions of two or more steps that the pass marks; the context must be current."""
    program = ir.Operation.parse(sample.text(["arbitrary"] * len(sample.bounds), dynamic)).operation
    before = Program(program.clone().operation)
    InferParallel().run(program, Session())
    assert program.verify()
    grid = Program(program).kernels["kernel"].grid
    parallel = [axis for axis, dimension in enumerate(grid) if dimension.semantics is Semantics.PARALLEL]
    # judged one by one, and legal together
    together = tuple(axis for axis in parallel if grid[axis].bound != 1)
    assert not together or examine(before.kernels["kernel"], together, before.launches) == Judgement()
    return [axis for axis in parallel if sample.bounds[axis] > 1]


def check_any_order(sample: Sample, axes: list[int], seed: int) -> None:
    """Runs the kernel with a core of its own for each index of the dimensions, taking turns, and compares the bits."""
    plain = ["arbitrary"] * len(sample.bounds)
    cores = ["core_parallel" if axis in axes else "arbitrary" for axis in range(len(plain))]
    one, many = (ir.Operation.parse(sample.text(words)).operation for words in (plain, cores))
    arguments = sample.arguments(seed)
    expected = compiled(one)(*arguments)
    for options in (Options(), Options(interleave=seed), Options(interleave=seed + 1)):
        assert_same(compiled(many, options)(*arguments), expected, f"dimensions {axes}, {options}")


def check_random(sample: Sample, data: st.DataObject, seed: int) -> list[int]:
    """Marks a kernel, some of its bounds dynamic, and runs it as it was and shared."""
    dynamic = tuple(data.draw(st.lists(st.integers(0, len(sample.bounds) - 1), max_size=1, unique=True)))
    with CONTEXT, ir.Location.unknown():
        axes = marked(sample, dynamic)
        if axes:
            check_any_order(sample, axes, seed)
    return axes


def test_block_that_comes_back() -> None:
    """A failure that random search found: an output is added to, and its block comes back after another one."""
    last = (Index("same", 2),)
    acts = (Action("store"), Action("accumulate", output=1))
    every = tuple(Index("same", axis) for axis in range(3))
    with CONTEXT, ir.Location.unknown():
        assert marked(Sample((1, 2, 2), (every, last), every, acts)) == []
        assert marked(Sample((1, 2, 2), (every, every), every, acts)) == [1, 2]


@settings(max_examples=40)
@given(sample=samples(), data=st.data(), seed=st.integers(0, 2**20))
def test_marked_dimensions_run_in_any_order(sample: Sample, data: st.DataObject, seed: int) -> None:
    """A kernel computes the same bits with a core for each step of all marked dimensions, in random turns."""
    check_random(sample, data, seed)


@pytest.mark.full
@settings(max_examples=500)
@given(sample=samples(), data=st.data(), seed=st.integers(0, 2**20))
def test_many_marked_dimensions(sample: Sample, data: st.DataObject, seed: int) -> None:
    """The same with many more."""
    check_random(sample, data, seed)


@settings(max_examples=150)
@given(sample=copies())
def test_all_of_an_affine_copy_is_found(sample: Sample) -> None:
    """Where steps meet in outputs only, the marked dimensions are those in which brute force finds no pair."""
    expected = [axis for axis, bound in enumerate(sample.bounds) if bound > 1 and not sample.clashing(axis)]
    with CONTEXT, ir.Location.unknown():
        assert marked(sample) == expected
