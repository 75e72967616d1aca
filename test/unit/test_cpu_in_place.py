"""What XLA makes of loops over memory: how much of it is copied or made anew in each round."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from cpu_harness import context, lower, run
from cpu_in_place import whole_tensors_made
from jaxlib.mlir import ir

from mosaic_grid.context import unknown_location
from mosaic_grid.cpu.execute import Executable, compile_program
from mosaic_grid.cpu.lowering import Lowered, Lowering
from mosaic_grid.cpu.rules import RULES
from mosaic_grid.cpu.views import View

ROWS, COLUMNS = 1024, 128
M = f"memref<{ROWS}x{COLUMNS}xf32, #tpu.memory_space<vmem>>"
V = f"vector<64x{COLUMNS}xf32>"
W = f"vector<{ROWS}x{COLUMNS}xf32>"


def compiled(body: str) -> Executable:
    """A loop of `%n` rounds over two memories `%m` and `%o`, with a vector `%v` and a number `%half`."""
    text = f"""func.func @f(%m: {M}, %o: {M}, %v: {V}, %n: i32, %half: i32) {{
        %c0 = arith.constant 0 : index
        %k0 = arith.constant 0 : i32
        %k1 = arith.constant 1 : i32
        scf.for %i = %k0 to %n step %k1 : i32 {{
        %p = arith.cmpi slt, %i, %half : i32
        {body}
        }}
        return
    }}"""

    def start(low: Lowering, _: ir.Operation, arguments: Sequence[Lowered]) -> None:
        low.memory.rewritten = {each.root for each in arguments if isinstance(each, View)}

    with context(), unknown_location():
        module, unsupported = lower(text, RULES, None, start)
        assert not unsupported
        return compile_program(module.operation)


def test_parts_updated_one_after_the_other_stay_in_place() -> None:
    """A part that is read after others were written is no reason for XLA to keep what was there before."""
    parts = []
    for row in range(0, ROWS, 64):
        parts.append(f"""
            %r{row} = arith.constant {row} : index
            %x{row} = vector.load %m[%r{row}, %c0] : {M}, {V}
            %s{row} = arith.mulf %x{row}, %v : {V}
            %a{row} = arith.constant dense<0.0> : vector<64xf32>
            %t{row} = vector.multi_reduction <add>, %s{row}, %a{row} [1] : {V} to vector<64xf32>
            %u{row} = vector.shape_cast %t{row} : vector<64xf32> to vector<64x1xf32>
            %w{row} = vector.broadcast %u{row} : vector<64x1xf32> to {V}
            vector.store %w{row}, %m[%r{row}, %c0] : {M}, {V}
        """)
    assert whole_tensors_made(compiled("".join(parts)), ROWS * COLUMNS) == []


def test_memory_that_a_branch_replaces_is_not_copied_by_the_other() -> None:
    """Only the branch that is taken costs something: an accumulator is cleared at times, and added to always."""
    body = f"""
        scf.if %p {{
          %z = arith.constant dense<0.0> : {W}
          vector.store %z, %m[%c0, %c0] : {M}, {W}
        }}
        %x = vector.load %m[%c0, %c0] : {M}, {W}
        %y = arith.addf %x, %x : {W}
        vector.store %y, %m[%c0, %c0] : {M}, {W}
        scf.if %p {{
          %w = vector.load %m[%c0, %c0] : {M}, {W}
          vector.store %w, %o[%c0, %c0] : {M}, {W}
        }}
    """
    made = [each.split(" = ")[1] for each in whole_tensors_made(compiled(body), ROWS * COLUMNS)]
    assert sum(each.split("} ")[1].startswith("copy") for each in made) <= 1, made


@pytest.mark.parametrize("start", [0, 3, 7])
def test_one_row_of_each_round_is_read_alone(start: int) -> None:
    """A strided load or store that goes all through the memory is one of the rows that are meant."""
    rows = f"vector<{ROWS // 8}x{COLUMNS}xf32>"
    steps = "{strides = array<i32: 8, 1>}"
    text = f"""func.func @f(%m: {M}, %i: index) -> {rows} {{
        %c0 = arith.constant 0 : index
        %x = tpu.strided_load %m[%i, %c0] {steps} : {M}, {rows}
        %y = arith.addf %x, %x : {rows}
        tpu.strided_store %m[%i, %c0], %y {steps} : {M}, {rows}
        return %x : {rows}
    }}"""
    source = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
    read, after = run(text, source, np.int32(start))
    expected = source.copy()
    expected[start::8] *= 2
    np.testing.assert_array_equal(read, source[start::8])
    np.testing.assert_array_equal(after, expected)
    body = f"""
        %i0 = arith.index_cast %half : i32 to index
        %x = tpu.strided_load %m[%i0, %c0] {steps} : {M}, {rows}
        %y = arith.addf %x, %x : {rows}
        tpu.strided_store %o[%i0, %c0], %y {steps} : {M}, {rows}
    """
    assert whole_tensors_made(compiled(body), 2 * ROWS * COLUMNS // 8) == []
