"""Which reads are fenced, and that loops of a kernel then work on memory in place."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from cpu_harness import context, lower
from cpu_in_place import whole_tensors_made
from jaxlib.mlir import ir

from mosaic_grid.context import unknown_location
from mosaic_grid.cpu.execute import Executable, compile_program
from mosaic_grid.cpu.fences import feeds_next_write
from mosaic_grid.cpu.lowering import Lowered, Lowering
from mosaic_grid.cpu.rules import RULES
from mosaic_grid.cpu.touches import nested
from mosaic_grid.cpu.views import View

M, V = "memref<2048x512xf32, #tpu.memory_space<vmem>>", "vector<8x512xf32>"
LOAD = f"%x = vector.load %m[%ix, %c0] : {M}, {V}\n"
SUM = f"%y = arith.addf %x, %x : {V}\n"


def load(name: str, memory: str = "%m") -> str:
    """Loads the row `%ix`."""
    return f"%{name} = vector.load {memory}[%ix, %c0] : {M}, {V}\n"


def store(value: str, memory: str = "%m", row: str = "%ix") -> str:
    """Stores a row."""
    return f"tpu.vector_store {memory}[{row}, %c0], {value} {{strides = array<i32>}} : {M}, {V},\n"


def kernel(body: str) -> str:
    """A loop whose rounds do `body` with the row `%ix` of the memrefs `%m` and `%o`."""
    return f"""func.func @f(%m: {M}, %o: {M}, %n: i32, %p: i1) {{
        %c0 = arith.constant 0 : index
        %c9 = arith.constant 9 : index
        %k0 = arith.constant 0 : i32
        %k1 = arith.constant 1 : i32
        scf.for %i = %k0 to %n step %k1 : i32 {{
          %ix = arith.index_cast %i : i32 to index
          {body}
        }}
        return }}"""


def first_load_is_joined(body: str) -> bool:
    """Whether what the first vector that the kernel loads is used for is the next write of its memory."""
    with context(), unknown_location():
        module = ir.Module.parse(kernel(body))
        op = next(op for op in nested(module.operation) if op.name == "vector.load")
        return feeds_next_write(op, op.operands[0])


@pytest.mark.parametrize(
    ("body", "joined"),
    [
        (LOAD + SUM + store("%y"), True),
        (LOAD + store("%x"), True),
        (LOAD + SUM + store("%y", row="%c9"), True),
        (LOAD + load("z", "%o") + f"%y = arith.addf %x, %z : {V}\n" + store("%y"), True),
        (LOAD + SUM + load("z") + store("%y") + store("%z", "%o"), True),
        (LOAD + load("z", "%o") + store("%z"), True),
        (LOAD + SUM + store("%y", "%o"), False),
        (LOAD + SUM + store("%y") + store("%y", "%o"), False),
        (LOAD + SUM + store("%y") + f"%z = arith.addf %x, %x : {V}\n" + store("%z", "%o"), False),
        (LOAD + SUM + store("%y") + store("%x"), False),
        (LOAD + SUM + load("z", "%o") + store("%z") + store("%y"), False),
        (LOAD + SUM + "scf.if %p {\n" + load("z", "%o") + store("%z") + "}\n" + store("%y"), False),
        (LOAD + SUM + "scf.if %p {\n" + store("%y") + "}\n", False),
        (LOAD + SUM + "scf.if %p {\n" + load("z") + store("%z", "%o") + "}\n" + store("%y"), True),
    ],
)
def test_a_read_that_only_goes_into_the_next_write_is_known(body: str, joined: bool) -> None:
    """It must all end in one store to the same memory, in the same block, that nothing writes before; if it is used."""
    assert first_load_is_joined(body) == joined


def test_views_of_one_memory_count_as_it() -> None:
    """A store by way of another view of the memory that was read is a store to it, in whatever order."""
    part = "memref<8x512xf32, #tpu.memory_space<vmem>>"
    view = f"%{{0}} = tpu.memref_slice %m[%i, %k0] : {M} -> {part}\n"
    put = "tpu.vector_store %{0}[%c0, %c0], %{1} {{strides = array<i32>}} : " + part + f", {V},\n"
    body = view.format("a") + view.format("b") + f"%x = vector.load %a[%c0, %c0] : {part}, {V}\n"
    assert first_load_is_joined(body + put.format("b", "x"))
    assert not first_load_is_joined(body + load("z", "%o") + put.format("b", "z") + put.format("b", "x"))


def compiled(text: str, *, rewritten: bool = True) -> Executable:
    """The kernel's program; `rewritten` says that it is known which memory it writes."""

    def start(low: Lowering, _: ir.Operation, arguments: Sequence[Lowered]) -> None:
        if rewritten:
            low.memory.rewritten = {each.root for each in arguments if isinstance(each, View)}

    with context(), unknown_location():
        module, unsupported = lower(text, RULES, None, start)
        assert not unsupported
        return compile_program(module.operation)


@pytest.mark.parametrize(
    "body",
    [
        LOAD + SUM + store("%y"),
        LOAD + load("z", "%o") + store("%z") + store("%x", "%o"),
        load("z", "%o") + LOAD + store("%z") + SUM + store("%y", row="%c9") + store("%y", "%o"),
        LOAD + "scf.if %p {\n" + load("z") + store("%z", "%o") + "}\n" + store("%x", row="%c9") + store("%x", "%o"),
        f"%x = scf.if %p -> {V} {{\n{load('z')}scf.yield %z : {V} }} else {{\n{load('z', '%o')}scf.yield %z : {V} }}\n"
        + load("w", "%o")
        + store("%w")
        + store("%x", "%o"),
        f"%a = arith.constant dense<0.0> : {V}\n"
        + f"%x = scf.for %j = %k0 to %n step %k1 iter_args(%s = %a) -> ({V}) : i32 {{\n"
        + f"{load('z')}%t = arith.addf %s, %z : {V}\nscf.yield %t : {V} }}\n"
        + load("w", "%o")
        + store("%w")
        + store("%x", "%o"),
    ],
)
def test_loops_are_in_place(body: str) -> None:
    """However reads and writes follow on each other, in branches and loops too, no memory is copied as a whole."""
    assert whole_tensors_made(compiled(kernel(body)), 2048 * 512) == []


def test_without_fences_there_would_be_a_copy() -> None:
    """The test above can fail: with a value that is read before a write and used after it, XLA copies the memory."""
    body = LOAD + load("z", "%o") + store("%z") + store("%x", "%o")
    assert whole_tensors_made(compiled(kernel(body), rewritten=False), 2048 * 512)


def test_large_memory_seen_in_another_shape_is_written_in_place() -> None:
    """Rows of a reshaped or bit-cast memory are read and written at no more than their own cost."""
    r, b = "memref<8192x128xf32, #tpu.memory_space<vmem>>", "memref<4096x512xbf16, #tpu.memory_space<vmem>>"
    body = f"""%r = tpu.memref_reshape %m : {M} -> {r}
        %x = vector.load %r[%ix, %c0] : {r}, vector<5x128xf32>
        vector.store %x, %r[%c9, %c0] : {r}, vector<5x128xf32>
        %b = tpu.memref_bitcast %o : {M} -> {b}
        %y = vector.load %b[%ix, %c0] : {b}, vector<5x512xbf16>
        vector.store %y, %b[%c9, %c0] : {b}, vector<5x512xbf16>
        """
    assert whole_tensors_made(compiled(kernel(body)), 2048 * 512) == []
