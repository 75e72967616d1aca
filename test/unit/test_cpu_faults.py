"""The record of faults: what is noted of indices that are out of range, and two records as one."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_harness import context
from cpu_watched import watched
from jaxlib.mlir import ir

from mosaic_grid.context import unknown_location
from mosaic_grid.cpu.execute import compile_program
from mosaic_grid.cpu.faults import What, joined

MEMORY = "memref<5x16xf32, #tpu.memory_space<vmem>>"
V, F, K = "vector<16xi32>", "vector<16xf32>", "vector<16xi1>"
LOAD = f"%a = tpu.vector_load_idx %m[%i, %j] masked %k : {MEMORY}[{V}, {V}], {F}, {K}"
STORE = f"tpu.vector_store_idx %m[%i, %j], %v masked %k : {MEMORY}[{V}, {V}], {F}, {K}"


@pytest.mark.parametrize(("operation", "writes"), [(LOAD, False), (STORE, True)])
@pytest.mark.parametrize(("row", "column", "outside"), [(4, 15, False), (5, 0, True), (-1, 0, True), (0, 16, True)])
def test_elements_that_are_not_there(operation: str, writes: bool, row: int, column: int, outside: bool) -> None:
    """An index out of range is a fault where the mask holds, and nothing where it doesn't."""
    text = f"func.func @f(%m: {MEMORY}, %i: {V}, %j: {V}, %v: {F}, %k: {K}) {{\n{operation}\nreturn }}"
    memory, i, j, v = (
        np.zeros((5, 16), np.float32),
        np.zeros(16, np.int32),
        np.zeros(16, np.int32),
        np.ones(16, np.float32),
    )
    mask = np.arange(16) != 3
    i[3] = j[3] = 1000
    assert watched(text, memory, i, j, v, mask)[1] == []
    i[7], j[7] = row, column
    _, found = watched(text, memory, i, j, v, mask)
    assert [(each.site.what, each.site.writes, each.count) for each in found] == [(What.OUTSIDE, writes, 1)] * outside
    where = (0, row, 1, 5, 0) if 0 <= column < 16 else (1, column, 1, 16, 0)
    assert [each.details[:5] for each in found] == [where] * outside


def test_where_a_box_sticks_out() -> None:
    """The dimension, the first element, how many there are, and the size, of a box that isn't all there."""
    text = f"""func.func @f(%m: {MEMORY}, %i: index, %j: index) -> vector<2x8xf32> {{
      %a = vector.load %m[%i, %j] : {MEMORY}, vector<2x8xf32>
      return %a : vector<2x8xf32> }}"""
    memory = np.zeros((5, 16), np.float32)
    for i, j, details in ((4, 3, (0, 4, 2, 5, 0)), (0, 9, (1, 9, 8, 16, 0)), (-1, 8, (0, -1, 2, 5, 0))):
        _, (found,) = watched(text, memory, np.int32(i), np.int32(j))
        assert found.details[:5] == details
    assert watched(text, memory, np.int32(3), np.int32(8))[1] == []


def test_where_a_box_of_a_view_sticks_out() -> None:
    """Behind a change of shape it is the view's dimension that is told."""
    square, flat = MEMORY.replace("5x16", "1x16"), MEMORY.replace("5x16", "16")
    text = f"""func.func @f(%m: {MEMORY}, %i: i32, %j: index) -> vector<8xf32> {{
      %k0 = arith.constant 0 : i32
      %p = tpu.memref_slice %m[%i, %k0] : {MEMORY} -> {square}
      %q = tpu.memref_squeeze %p : {square} -> {flat}
      %a = vector.load %q[%j] : {flat}, vector<8xf32>
      return %a : vector<8xf32> }}"""
    memory = np.zeros((5, 16), np.float32)
    for i, j, details in ((5, 0, (0, 5, 1, 5, 0)), (0, 9, (0, 9, 8, 16, 1)), (0, -1, (0, -1, 8, 16, 1))):
        _, (found,) = watched(text, memory, np.int32(i), np.int32(j))
        assert found.details[:5] == details
    assert watched(text, memory, np.int32(4), np.int32(8))[1] == []


def test_two_records_are_one() -> None:
    """Counts are added, and of each fault the first record's numbers are kept, if there are any."""
    with context(), unknown_location():
        module = ir.Module.create()
        kind = ir.RankedTensorType.get([3, 4], ir.IntegerType.get_signless(32))
        with ir.InsertionPoint(module.body):
            main = ir.Operation.create("func.func", regions=1, attributes={
                "sym_name": ir.StringAttr.get("main"),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get([kind, kind], [kind])),
            })  # fmt: skip
        block = main.regions[0].blocks.append(kind, kind, arg_locs=[ir.Location.unknown()] * 2)
        with ir.InsertionPoint(block):
            ir.Operation.create("func.return", operands=[joined(*block.arguments)])
        program = compile_program(module.operation)
    left = np.array([[2, 7, 8, 9], [0, 0, 0, 0], [0, 0, 0, 0]], np.int32)
    right = np.array([[3, 1, 1, 1], [4, 5, 6, 7], [0, 0, 0, 0]], np.int32)
    np.testing.assert_array_equal(program(left, right)[0], [[5, 7, 8, 9], [4, 5, 6, 7], [0, 0, 0, 0]])
