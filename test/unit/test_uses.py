"""Who uses what a load gives, and which buffers a body reads: told from its text, without a walk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jaxlib.mlir import ir

from mosaic_grid.checks.returns import may_read
from mosaic_grid.containers.text import parse
from mosaic_grid.context import create_context, unknown_location
from mosaic_grid.dataflow.uses import Uses, is_dead
from mosaic_grid.program import Kernel, Program

VMEM = "memref<8x128xf32, #tpu.memory_space<vmem>>"
VECTOR = "vector<8x128xf32>"
LINE = f"tpu.memref_slice %x[%z, %z] : {VMEM} -> {VMEM}"

Line: TypeAlias = tuple[str, int, int]
"""What becomes of two values, by their numbers: `add` and `choose` make another one, `store` keeps the first."""

LINES = st.lists(
    st.tuples(st.sampled_from(["add", "choose", "store"]), st.integers(0, 9), st.integers(0, 9)), max_size=7
).filter(lambda lines: sum(kind != "store" for kind, *_ in lines) < 5)
"""Few enough that no value has too many users to look at."""


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    """A context for the programs of a test."""
    with create_context(), unknown_location():
        yield


def kernel(body: str) -> Kernel:
    """A kernel of three buffers, `%x`, `%y` and `%o`, with this body."""
    windows = ", ".join("{transform_indices = @at, window_bounds = array<i64: 8, 128>}" for _ in range(3))
    text = f"""
      module @kernel attributes {{stable_mosaic.version = 18 : i64}} {{
        func.func @kernel(%i: i32, %x: {VMEM}, %y: {VMEM}, %o: {VMEM}) attributes {{
            iteration_bounds = array<i64: 8>, dimension_semantics = [#tpu.dimension_semantics<arbitrary>],
            window_params = [{windows}]}} {{
          %c0 = arith.constant 0 : index
          %z = arith.constant 0 : i32
          %f = arith.cmpi eq, %i, %z : i32
          {body}
          return
        }}
        func.func @at(%i: i32) -> (i32, i32) {{
          %zero = arith.constant 0 : i32
          return %i, %zero : i32, i32
        }}
      }}"""
    context = ir.Context.current
    assert context is not None
    (found,) = Program(parse(text, "program", context)).kernels.values()
    return found


def written(lines: list[Line]) -> str:
    """The lines as operations; `%v0` is a load and what comes after it is made of values before."""
    text, made = [f"%v0 = vector.load %x[%c0, %c0] : {VMEM}, {VECTOR}"], 1
    for kind, one, other in lines:
        a, b = f"%v{one % made}", f"%v{other % made}"
        if kind == "store":
            text.append(f"vector.store {a}, %o[%c0, %c0] : {VMEM}, {VECTOR}")
            continue
        rule = f"arith.addf {a}, {b} : {VECTOR}" if kind == "add" else f"arith.select %f, {a}, {b} : {VECTOR}"
        text.append(f"%v{made} = {rule}")
        made += 1
    return "\n".join(text)


def reached(lines: list[Line], through: set[str]) -> list[bool]:
    """For each value, whether a store keeps what is made of it by these kinds of lines."""
    users: list[list[int]] = [[]]
    kept = set[int]()
    for kind, one, other in lines:
        given = {one % len(users), other % len(users)}
        if kind == "store":
            kept.add(one % len(users))
            continue
        if kind in through:
            for value in given:
                users[value].append(len(users))
        users.append([])
    found = [False] * len(users)
    for value in reversed(range(len(users))):
        found[value] = value in kept or any(found[user] for user in users[value])
    return found


@given(LINES)
def test_is_dead_whatever_is_what_a_search_of_all_users_finds(lines: list[Line]) -> None:
    """Each value is dead if no store keeps it, up to selections if only they lead to one, whatever was asked before."""
    with create_context(), unknown_location():
        one = kernel(written(lines))
        block = one.body.regions[0].blocks[0]
        ops = [
            op.operation
            for op in block.operations
            if op.operation.name in ("vector.load", "arith.addf", "arith.select")
        ]
        ops = [op for op in ops if isinstance(op.results[0].type, ir.VectorType)]
        plainly, somehow = reached(lines, {"add"}), reached(lines, {"add", "choose"})
        expected = [False if plain else None if other else True for plain, other in zip(plainly, somehow, strict=True)]
        uses = Uses()
        assert [uses.is_dead_whatever(op) for op in ops] == expected
        # what is told whatever is known is told for each thing that may be known
        (flag,) = (op.operation.results[0] for op in block.operations if op.operation.name == "arith.cmpi")
        for known in (None, 0, 1):
            told = [is_dead(op, {flag: known}.get) for op in ops]
            assert all(dead == each for dead, each in zip(told, expected, strict=True) if each is not None)


@pytest.mark.parametrize(
    ("body", "read"),
    [
        ("", []),
        (f"%v = vector.load %x[%c0, %c0] : {VMEM}, {VECTOR}", []),
        (f"%v = vector.load %x[%c0, %c0] : {VMEM}, {VECTOR}\nvector.store %v, %o[%c0, %c0] : {VMEM}, {VECTOR}", [1]),
        (
            f"%s = {LINE}\n%v = vector.load %s[%c0, %c0] : {VMEM}, {VECTOR}\n"
            f"vector.store %v, %o[%c0, %c0] : {VMEM}, {VECTOR}",
            [1],
        ),
        (
            f"%v = arith.constant dense<0.0> : {VECTOR}\n"
            f"tpu.vector_store %o[%c0, %c0], %v {{add = true, strides = array<i32>}} : {VMEM}, {VECTOR},",
            [3],
        ),
        (
            f"%s = scf.if %f -> ({VMEM}) {{\nscf.yield %x : {VMEM}\n}} else {{\nscf.yield %y : {VMEM}\n}}\n"
            f"%v = vector.load %s[%c0, %c0] : {VMEM}, {VECTOR}\n"
            f"vector.store %v, %o[%c0, %c0] : {VMEM}, {VECTOR}",
            [1, 2, 3],
        ),
    ],
)
def test_a_buffer_may_be_read_where_a_load_or_an_added_store_uses_it(body: str, read: list[int]) -> None:
    """Dead loads read nothing, views are looked through, and where a buffer can't be told any may be read."""
    one = kernel(body)
    assert [argument for argument in (1, 2, 3) if may_read(one, argument)] == read
