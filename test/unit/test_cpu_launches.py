"""`lower-to-cpu` on launches of every form: element types, scalars, whole operands, aliases, and outer regions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pallas_programs
import pytest
from cpu_programs import compiled
from grid_kernels import Dim, GridKernel, Term, Window
from jaxlib.mlir import ir
from launch_text import ANY, SMEM, VMEM, LaunchText, window

from mosaic_grid.context import create_context, unknown_location
from mosaic_grid.cpu.arrays import Array
from mosaic_grid.cpu.convert import UnsupportedKernelError, lower_to_cpu
from mosaic_grid.cpu.options import Options
from mosaic_grid.unpack import unpack

CONTEXT = create_context()
LEAST = -(2**31)


def run(text: str, *arrays: Any, options: Options | None = None) -> list[Array]:
    """Runs a program on the CPU."""
    with CONTEXT, unknown_location():
        module = ir.Module.parse(text).operation
        unpack(module)
        return compiled(module, options)(*(np.asarray(array) for array in arrays))


def numbers(*values: int) -> Array:
    """An array of i32."""
    return np.array(values, np.int32)


SAME = "func.func @same(%i: i32) -> i32 { return %i : i32 }"


def copy(kind: str, outer: str, size: int) -> LaunchText:
    """Copies an array in blocks of 8; `kind` is the element type in the kernel, `outer` that of the arrays."""
    memref, vector, tensor = f"memref<8x{kind}, {VMEM}>", f"vector<8x{kind}>", f"tensor<{size}x{outer}>"
    return LaunchText(
        [tensor],
        [tensor],
        [f"%x: {memref}", f"%o: {memref}"],
        [window("same", 8)] * 2,
        f"""%c0 = arith.constant 0 : index
        %v = vector.load %x[%c0] : {memref}, {vector}
        tpu.vector_store %o[%c0], %v {{strides = array<i32>}} : {memref}, {vector},""",
        grid=[2],
        functions=SAME,
    )


@pytest.mark.parametrize("size", [16, 13])
@pytest.mark.parametrize(
    ("kind", "outer", "dtype"),
    [
        *(("i1", "i1", np.bool_), ("i2", "i2", ml_dtypes.int2), ("i4", "i4", ml_dtypes.int4)),
        *(("i4", "ui4", ml_dtypes.uint4), ("i8", "i8", np.int8), ("i8", "ui8", np.uint8), ("i16", "ui16", np.uint16)),
        *(("i32", "ui32", np.uint32), ("f16", "f16", np.float16), ("bf16", "bf16", ml_dtypes.bfloat16)),
        *(("f8E4M3FN", "f8E4M3FN", ml_dtypes.float8_e4m3fn), ("f8E5M2", "f8E5M2", ml_dtypes.float8_e5m2)),
        *(
            ("f8E4M3B11FNUZ", "f8E4M3B11FNUZ", ml_dtypes.float8_e4m3b11fnuz),
            ("f4E2M1FN", "f4E2M1FN", ml_dtypes.float4_e2m1fn),
        ),
    ],
)
def test_arrays_of_every_element_type(kind: str, outer: str, dtype: Any, size: int) -> None:
    """Windows of every element type come in and go out unchanged, also where the last block is cut."""
    most = {"i1": 2, "i2": 2}.get(kind, 6)
    array = (np.arange(size) % most).astype(dtype)
    (found,) = run(copy(kind, outer, size).text(), array)
    assert found.dtype == array.dtype
    assert found.tobytes() == array.tobytes()


def test_scalars() -> None:
    """Arrays without dimensions can be prefetched, read and written."""
    scalar = f"memref<i32, {SMEM}>"
    text = LaunchText(
        ["tensor<i32>", "tensor<i32>"],
        ["tensor<i32>"],
        [f"%t: {scalar}", f"%x: {scalar}", f"%o: {scalar}"],
        ["", ""],
        f"""%a = memref.load %t[] : {scalar}
        %b = memref.load %x[] : {scalar}
        %c = arith.subi %a, %b : i32
        memref.store %c, %o[] : {scalar}""",
        grid=[2],
        prefetch=1,
    ).text()
    assert run(text, np.int32(7), np.int32(3))[0] == 4


def test_arrays_without_elements() -> None:
    """A window of an array that has no element takes no part in a grid without steps."""
    term = Term("index", 0)
    for grid, bounds in (((Dim(0),), []), ((Dim(2, dynamic=True),), [0])):
        empty = Window((2, 3), (term, Term("constant", number=0)), (0, 3))
        text = GridKernel(grid, (empty,), (empty,)).text()
        (found,) = run(text, *map(np.int32, bounds), np.zeros((0, 3), np.int32))
        assert found.shape == (0, 3)


def test_huge_and_negative_bounds() -> None:
    """A grid that is empty in some dimension does nothing, however large it is in another."""
    unmoved = Window((6,), (Term("constant", number=0),), (6,))
    with CONTEXT, unknown_location():
        text = GridKernel((Dim(1, dynamic=True), Dim(1, dynamic=True)), (), (unmoved,)).text()
        executable = compiled(ir.Module.parse(text).operation)
    for pair in itertools.product((0, -1, LEAST, 2**31 - 1), repeat=2):
        if min(pair) <= 0:
            (found,) = executable(*(np.asarray(n, np.int32) for n in pair))
            assert (found == LEAST).all(), pair


# Prefetch operands, and operands that stay where they are.

TABLE = f"memref<2xi32, {SMEM}>"
PAIR = f"memref<2xi32, {SMEM}>"
ENTRY = f"func.func @entry(%i: i32, %t: {TABLE}) -> i32 {{ return %i : i32 }}"


def test_a_result_in_the_place_of_a_prefetch_operand() -> None:
    """What isn't written of it is what the operand was; the kernel reads the operand as it was at the start."""
    text = LaunchText(
        ["tensor<4xi32>"],
        ["tensor<4xi32>"],
        [f"%t: memref<4xi32, {SMEM}>", f"%o: {PAIR}"],
        [window("first", 2)],
        f"""%c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %a = memref.load %t[%c0] : memref<4xi32, {SMEM}>
        %b = memref.load %t[%c1] : memref<4xi32, {SMEM}>
        memref.store %b, %o[%c0] : {PAIR}
        memref.store %a, %o[%c1] : {PAIR}""",
        grid=[1],
        prefetch=1,
        functions=f"func.func @first(%i: i32, %t: memref<4xi32, {SMEM}>) -> i32 {{ return %i : i32 }}",
        aliases={0: 0},
    ).text()
    assert run(text, numbers(5, 6, 7, 8))[0].tolist() == [6, 5, 7, 8]


@pytest.mark.parametrize("options", [Options(), Options(interleave=3)])
def test_a_kernel_that_writes_its_prefetch_operand(options: Options) -> None:
    """The index map sees what earlier steps of the same core wrote: each core has a copy of its own."""
    text = LaunchText(
        ["tensor<2xi32>"],
        ["tensor<6xi32>"],
        [f"%t: {TABLE}", f"%o: memref<1xi32, {SMEM}>"],
        [window("place", 1)],
        f"""%c0 = arith.constant 0 : index
        %one = arith.constant 1 : i32
        %t0 = memref.load %t[%c0] : {TABLE}
        memref.store %i1, %o[%c0] : memref<1xi32, {SMEM}>
        %next = arith.addi %t0, %one : i32
        memref.store %next, %t[%c0] : {TABLE}""",
        grid=[2, 2],
        semantics=["core_parallel", "arbitrary"],
        prefetch=1,
        functions=f"""func.func @place(%i: i32, %j: i32, %t: {TABLE}) -> i32 {{
          %c0 = arith.constant 0 : index
          %three = arith.constant 3 : i32
          %start = arith.muli %i, %three : i32
          %t0 = memref.load %t[%c0] : {TABLE}
          %place = arith.addi %start, %t0 : i32
          return %place : i32
        }}""",
    ).text()
    assert run(text, numbers(0, 0), options=options)[0].tolist() == [0, 1, LEAST, 0, 1, LEAST]


def test_a_whole_operand_in_the_place_of_a_cut_output() -> None:
    """An operand that stays in HBM is the very array that an output's blocks go to, without what is beyond its end."""
    whole = f"memref<5xi32, {ANY}>"
    text = LaunchText(
        ["tensor<5xi32>"],
        ["tensor<5xi32>"],
        [f"%x: {whole}", f"%o: {PAIR}"],
        ["", window("same", 2)],
        f"""%c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c4 = arith.constant 4 : index
        %a = memref.load %x[%c4] : {whole}
        %b = memref.load %x[%c0] : {whole}
        memref.store %a, %o[%c0] : {PAIR}
        memref.store %b, %o[%c1] : {PAIR}
        memref.store %i0, %x[%c4] : {whole}""",
        grid=[2],
        functions=SAME,
        aliases={0: 0},
    ).text()
    # the first step reads 9 and 1; its block is written before the second, which reads 0 and 9
    assert run(text, numbers(1, 2, 3, 4, 9))[0].tolist() == [9, 1, 0, 9, 1]


# Where launches stand.

X = np.arange(32 * 256, dtype=np.float32).reshape(32, 256)
STEPS = np.arange(4).repeat(8)[:, None]
"""Which step of the first dimension a row belongs to."""

MEANING: dict[Callable[[Any, Any], Any], Callable[[int], Array]] = {
    pallas_programs.one: lambda n: np.where(n > STEPS, X * 2, np.nan),
    pallas_programs.identical: lambda n: np.where(n > STEPS, X * 8, np.nan),
    pallas_programs.same_name: lambda n: np.where(n > STEPS, X * 24, np.nan),
    pallas_programs.named_like_a_function: lambda n: np.where(n > STEPS, X * 2, np.nan),
    pallas_programs.in_regions: lambda n: np.where(n > STEPS, X * 2.0**n * (3 if n > 2 else 5) * 49, np.nan),
    pallas_programs.with_regions: lambda n: np.where(n > STEPS, np.where(STEPS > 1, X * 2.0**STEPS, X), np.nan),
    pallas_programs.with_prefetch_and_alias: lambda n: X,
}
"""What each program of `pallas_programs` makes of `n` and `X`."""


@pytest.mark.parametrize("program", pallas_programs.PROGRAMS)
def test_launches_wherever_they_stand(program: Callable[[Any, Any], Any]) -> None:
    """In loops, in branches, in functions called twice, of one kernel or of several of one name: each does its work."""
    with CONTEXT, unknown_location():
        module = ir.Module.parse(pallas_programs.text_of(program)).operation
        unpack(module)
        executable = compiled(module)
        for n in range(5):
            (found,) = executable(np.asarray(n, np.int32), X)
            np.testing.assert_array_equal(found, MEANING[program](n).astype(np.float32), err_msg=f"n = {n}")


def test_identical_launches_share_a_function() -> None:
    """A function is made for each kernel and form of launch, not for each launch."""
    with CONTEXT, unknown_location():
        module = ir.Module.parse(pallas_programs.text_of(pallas_programs.identical)).operation
        unpack(module)
        assert lower_to_cpu(module, Options()) == 3
        names = [str(op.operation.attributes["sym_name"]) for op in module.regions[0].blocks[0].operations]
        assert len(names) == 2


def test_a_program_that_cannot_be_lowered_stays_as_it_is() -> None:
    """Also where another of its kernels could be."""
    text = pallas_programs.text_of(pallas_programs.same_name)
    with CONTEXT, unknown_location():
        module = ir.Module.parse(text).operation
        unpack(module)
        *_, last = [op.operation for op in module.regions[0].blocks[0].operations]
        body = last.regions[0].blocks[0].operations[0].operation.regions[0].blocks[0]
        with ir.InsertionPoint.at_block_begin(body):
            ir.Operation.create("my.op")
        before = str(module)
        with pytest.raises(UnsupportedKernelError, match=r"the kernel 'scale' can't be lowered") as caught:
            lower_to_cpu(module, Options())
        assert [each.op for each in caught.value.unsupported] == ["my.op"]
        assert str(module) == before


def test_a_launch_without_operands() -> None:
    """A kernel that only writes, and one that does nothing at all."""
    text = LaunchText(
        [],
        ["tensor<2xi32>"],
        [f"%o: {PAIR}"],
        [""],
        f"""%c1 = arith.constant 1 : index
        %seven = arith.constant 7 : i32
        memref.store %seven, %o[%c1] : {PAIR}""",
    ).text()
    assert run(text)[0].tolist() == [LEAST, 7]
    nothing = """
      func.func public @main() { stablehlo.custom_call @tpu_custom_call() {mosaic.kernel = @k} : () -> () return }
      module @k attributes {stable_mosaic.version = 15 : i64} { func.func @k() { return } }"""
    assert run(nothing) == []
