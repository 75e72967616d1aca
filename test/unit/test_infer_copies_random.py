"""`infer-parallel` on random copies to and from an array in HBM, against trying all pairs of steps."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Literal, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxlib.mlir import ir

from mosaic_grid.context import create_context
from mosaic_grid.grid import Semantics
from mosaic_grid.passes.infer_parallel import InferParallel
from mosaic_grid.program import Program
from mosaic_grid.session import Session

ROWS, MOST, DYNAMIC = 64, 12, -(2**63)
VMEM, HBM, SEMAPHORE = "#tpu.memory_space<vmem>", "#tpu.memory_space<hbm>", "#tpu.memory_space<semaphore_mem>"
SEM = f"memref<!tpu.dma_semaphore, {SEMAPHORE}>"
CONTEXT = create_context()

Form: TypeAlias = Literal["sum", "half", "remainder"]
Step: TypeAlias = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Copy:
    """A copy of `size` rows that begin at a sum of multiples of the indices and of the loop's, or what is made of it.

    It runs where the index `axis` is as `condition` says. It is in a loop of `turns` iterations if there are some.
    """

    writes: bool
    size: int
    factors: tuple[int, ...]
    offset: int
    form: Form = "sum"
    condition: str = ""
    axis: int = 0
    limit: int = 0
    turns: int = 0
    stride: int = 0

    def start(self, step: Step, turn: int) -> int:
        """The first row."""
        total = sum(f * i for f, i in zip(self.factors, step, strict=True)) + self.offset + self.stride * turn
        return {"sum": total, "half": total // 2, "remainder": total % 5}[self.form]

    def rows(self, step: Step) -> set[int]:
        """All rows that it touches at a step."""
        holds = {"": True, "eq": step[self.axis] == self.limit, "slt": step[self.axis] < self.limit}
        starts = [self.start(step, turn) for turn in range(max(self.turns, 1))] if holds[self.condition] else []
        return {row for start in starts for row in range(start, start + self.size)}

    def text(self, number: int) -> list[str]:
        """Its lines; values are named after its number."""
        v = f"%c{number}"
        lines = [f"{v}o = arith.constant {self.offset} : i32", f"{v}s0 = arith.addi {v}o, {v}t : i32"]
        for axis, factor in enumerate(self.factors):
            lines += [
                f"{v}f{axis} = arith.constant {factor} : i32",
                f"{v}p{axis} = arith.muli %i{axis}, {v}f{axis} : i32",
            ]
            lines += [f"{v}s{axis + 1} = arith.addi {v}s{axis}, {v}p{axis} : i32"]
        op, by = {"sum": ("divsi", 1), "half": ("divsi", 2), "remainder": ("remsi", 5)}[self.form]
        lines += [f"{v}b = arith.constant {by} : i32", f"{v}r = arith.{op} {v}s{len(self.factors)}, {v}b : i32"]
        kinds = [f"memref<{rows}x128xf32, {space}>" for rows, space in ((8, VMEM), (self.size, VMEM), (self.size, HBM))]
        array = f"memref<{ROWS}x128xf32, {HBM}>"
        lines += [f"{v}w = tpu.memref_slice %s[%zero, %zero] : {kinds[0]} -> {kinds[1]}"]
        lines += [f"{v}h = tpu.memref_slice %o[{v}r, %zero] : {array} -> {kinds[2]}", f"{v}q = tpu.sem_alloc : {SEM}"]
        ends = [f"({v}w : {kinds[1]})", f"({v}h : {kinds[2]})"]
        source, target = ends if self.writes else reversed(ends)
        operands = f"source{source} target{target} target_semaphore({v}q : {SEM})"
        lines += [f"tpu.enqueue_dma {operands}", f"tpu.wait_dma {operands} {{wait_target = true}}"]
        if self.turns:
            head = [f"{v}n = arith.constant {self.turns} : i32", f"{v}g = arith.constant {self.stride} : i32"]
            lines = [
                *head,
                f"scf.for {v}k = %zero to {v}n step %one : i32 {{",
                f"{v}t = arith.muli {v}k, {v}g : i32",
                *lines,
                "}",
            ]
        else:
            lines = [f"{v}t = arith.constant 0 : i32", *lines]
        if self.condition:
            test = f"{v}x = arith.cmpi {self.condition}, %i{self.axis}, {v}l : i32"
            lines = [f"{v}l = arith.constant {self.limit} : i32", test, f"scf.if {v}x {{", *lines, "}"]
        return lines


@dataclasses.dataclass(frozen=True)
class Sample:
    """Copies of a step; the first bound is an argument of the program if `dynamic`."""

    bounds: Step
    copies: tuple[Copy, ...]
    dynamic: bool

    @property
    def text(self) -> str:
        """The unpacked program."""
        indices = ", ".join(f"%i{axis}: i32" for axis in range(len(self.bounds)))
        bounds = ", ".join(map(str, (DYNAMIC, *self.bounds[1:]) if self.dynamic else self.bounds))
        words = ", ".join(["#tpu.dimension_semantics<arbitrary>"] * len(self.bounds))
        array = f"tensor<{ROWS}x128xf32>"
        given, kind = ("%n: tensor<i32>", "tensor<i32>") if self.dynamic else ("", "")
        lines = [
            "module {",
            f"func.func @main({given}) -> {array} {{",
            f"%r = stablehlo.custom_call @tpu_custom_call({given.partition(':')[0]})",
            r'{mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"}',
            f": ({kind}) -> {array}",
            f"return %r : {array}",
            "}",
            "module @kernel attributes {stable_mosaic.version = 18 : i64} {",
            f"func.func @kernel({indices}, %o: memref<{ROWS}x128xf32, {HBM}>, %s: memref<8x128xf32, {VMEM}>)",
            "attributes {",
            f"dimension_semantics = [{words}], iteration_bounds = array<i64: {bounds}>, scalar_prefetch = 0 : i64,",
            "scratch_operands = 1 : i64, tpu.core_type = #tpu.core_type<tc>, window_params = [{}]} {",
            "%zero = arith.constant 0 : i32",
            "%one = arith.constant 1 : i32",
            "%z = arith.constant 0 : index",
            "%f = arith.constant dense<0.0> : vector<8x128xf32>",
            f"tpu.vector_store %s[%z, %z], %f {{strides = array<i32>}} : memref<8x128xf32, {VMEM}>, vector<8x128xf32>,",
            *(line for number, copy in enumerate(self.copies) for line in copy.text(number)),
        ]
        return "\n".join([*lines, "return", "}", "}", "}"])

    def most(self) -> Step | None:
        """The largest grid of which no step is out of bounds, with `MOST` steps in a dynamic dimension at most."""
        for first in range(MOST, 0, -1) if self.dynamic else (self.bounds[0],):
            bounds = (first, *self.bounds[1:])
            steps = itertools.product(*map(range, bounds))
            if all(0 <= row < ROWS for step in steps for copy in self.copies for row in copy.rows(step)):
                return bounds
        return None

    def clashes(self, bounds: Step, axis: int) -> bool:
        """Whether two steps that differ in a dimension touch one row, and one of them writes it."""
        touched = [
            (step, copy.writes, copy.rows(step))
            for step in itertools.product(*map(range, bounds))
            for copy in self.copies
        ]
        return any(
            one[axis] != other[axis] and (writes or also) and not rows.isdisjoint(others)
            for (one, writes, rows), (other, also, others) in itertools.combinations(touched, 2)
        )


@st.composite
def copies(draw: st.DrawFn, rank: int, writes: bool) -> Copy:
    """Most stay within the array."""
    size = draw(st.sampled_from((1, 2, 4, 8)))
    turns = draw(st.sampled_from((0, 0, 3, 40)))
    scale = draw(st.sampled_from((1, size, 8, 16)))
    factors = tuple(scale * draw(st.integers(0, 3)) // (2 if axis else 1) for axis in range(rank))
    return Copy(
        writes,
        size,
        factors,
        draw(st.integers(0, 9)),
        draw(st.sampled_from(("sum", "sum", "sum", "half", "remainder"))),
        draw(st.sampled_from(("", "", "", "eq", "slt"))),
        draw(st.integers(0, rank - 1)),
        draw(st.integers(0, 2)),
        turns,
        draw(st.sampled_from((1, size))) if turns < 40 else 1,
    )


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    """A write, and one or two more copies."""
    bounds = tuple(draw(st.integers(2, 4)) for _ in range(draw(st.integers(1, 2))))
    kinds = (True, *draw(st.lists(st.booleans(), max_size=2)))
    return Sample(bounds, tuple(draw(copies(len(bounds), writes)) for writes in kinds), draw(st.booleans()))


def check(sample: Sample) -> None:
    """What is marked is what brute force finds no pair for, where the program isn't at fault."""
    with CONTEXT, ir.Location.unknown():
        program = ir.Operation.parse(sample.text).operation
        InferParallel().run(program, Session())
        grid = Program(program).kernels["kernel"].grid
    most = sample.most()
    if most is None:
        return
    for axis, dimension in enumerate(grid):
        clashes = sample.clashes(most, axis)
        # more steps than were tried may clash
        if clashes or not sample.dynamic or most[0] < MOST:
            assert (dimension.semantics is Semantics.PARALLEL) is not clashes


def test_a_read_of_what_another_step_writes() -> None:
    """The generator makes programs that are refused for a read, and ones that are marked."""
    own = Copy(True, 8, (8,), 0)
    for dynamic in (False, True):
        check(Sample((4,), (own,), dynamic))
        check(Sample((4,), (own, Copy(False, 8, (8,), 8)), dynamic))


@settings(max_examples=60)
@given(samples())
def test_random_copies(sample: Sample) -> None:
    """Exactly the dimensions whose steps copy apart are marked, in static grids and in dynamic ones."""
    check(sample)


@pytest.mark.full
@settings(max_examples=600)
@given(samples())
def test_many_random_copies(sample: Sample) -> None:
    """The same with many more."""
    check(sample)
