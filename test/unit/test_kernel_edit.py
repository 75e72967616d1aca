"""Functions with other arguments: each argument keeps its uses, its location and its attributes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from jaxlib.mlir import ir

from mosaic_grid.context import create_context
from mosaic_grid.grid import Dimension, Semantics
from mosaic_grid.kernel_edit import (
    drop_arguments,
    insert_argument,
    iteration_bounds,
    replace_leading_arguments,
    set_grid,
)
from mosaic_grid.program import Kernel

CONTEXT = create_context()

TEXT = """
module @k attributes {stable_mosaic.version = 15 : i64} {
  func.func @k(%i: i32 ATTR0 loc("i"), %j: i32 ATTR1 loc("j"),
      %m: memref<4xi32, #tpu.memory_space<smem>> ATTR2 loc("m"))
      attributes {iteration_bounds = array<i64: 4, 5>, scalar_prefetch = 1 : i64, scratch_operands = 0 : i64,
      dimension_semantics = [#tpu.dimension_semantics<parallel>, #tpu.dimension_semantics<arbitrary>]} {
    %c0 = arith.constant 0 : index
    %sum = arith.subi %i, %j : i32
    memref.store %sum, %m[%c0] : memref<4xi32, #tpu.memory_space<smem>>
    return
  }
}
"""


def kernel(*, attributes: bool) -> ir.Operation:
    """The module, its arguments with or without attributes."""
    text = TEXT
    for number in range(3):
        text = text.replace(f"ATTR{number}", f"{{mosaic.number = {number} : i32}}" if attributes else "")
    return ir.Operation.parse(text).operation


def described(function: ir.Operation) -> list[tuple[str, str, str]]:
    """Each argument's type, location and attributes."""
    arguments = list(function.regions[0].blocks[0].arguments)
    given = function.attributes.get("arg_attrs")
    attributes = [str(a) for a in ir.ArrayAttr(given)] if given is not None else ["{}"] * len(arguments)
    return [(str(a.type), str(a.location), d) for a, d in zip(arguments, attributes, strict=True)]


@given(count=st.integers(0, 4), attributes=st.booleans())
def test_new_indices_stand_for_the_old_ones(count: int, attributes: bool) -> None:
    """New arguments in front, the old ones used up and dropped: what is left is what it was."""
    with CONTEXT, ir.Location.unknown():
        module = kernel(attributes=attributes)
        function = Kernel(module).body
        before = described(function)
        i64 = ir.IntegerType.get_signless(64)
        fresh = replace_leading_arguments(function, 2, [i64] * count)
        assert [argument.arg_number for argument in fresh] == list(range(count))
        assert described(function)[count:] == before
        module.verify()
        subtraction = function.regions[0].blocks[0].operations[1].operation
        assert [operand.arg_number for operand in subtraction.operands] == [count, count + 1]
        subtraction.results[0].replace_all_uses_with(
            ir.Operation.create(
                "arith.constant",
                results=[ir.IntegerType.get_signless(32)],
                attributes={"value": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1)},
                ip=ir.InsertionPoint(subtraction),
            ).result
        )
        subtraction.erase()
        drop_arguments(function, count, 2)
        assert described(function)[count:] == before[2:]
        module.verify()


@given(index=st.integers(0, 3), attributes=st.booleans())
def test_an_inserted_argument_moves_only_those_behind_it(index: int, attributes: bool) -> None:
    """Each argument keeps its uses, location and attributes; the new one has no attributes."""
    with CONTEXT, ir.Location.unknown():
        module = kernel(attributes=attributes)
        function = Kernel(module).body
        before = described(function)
        f32 = ir.F32Type.get()
        argument = insert_argument(function, index, f32, ir.Location.name("table"))
        assert argument.arg_number == index
        after = described(function)
        assert after.pop(index) == ("f32", 'loc("table")', "{}")
        assert after == before
        subtraction = function.regions[0].blocks[0].operations[1].operation
        names = [str(ir.BlockArgument(operand).location) for operand in subtraction.operands]
        assert names == ['loc("i")', 'loc("j")']
        module.verify()


def test_set_grid_writes_what_a_kernel_reads() -> None:
    """Static and dynamic bounds with all semantics come back as they were written."""
    grid = tuple(Dimension(bound, word) for bound, word in zip((None, 0, 7, None), Semantics, strict=True))
    with CONTEXT, ir.Location.unknown():
        module = kernel(attributes=False)
        set_grid(Kernel(module).body, grid)
        assert Kernel(module).grid == grid


def test_every_question_for_a_bound_is_found() -> None:
    """`tpu.iteration_bound` is found at any depth and in every function, with its dimension."""
    text = """
      module @k {
        func.func @body(%c: i1) {
          %0 = tpu.iteration_bound 1 : i32
          scf.if %c {
            %1 = tpu.iteration_bound 0 : i32
          }
          return
        }
        func.func @map() -> i32 {
          %0 = tpu.iteration_bound 2 : i32
          return %0 : i32
        }
      }"""
    with CONTEXT, ir.Location.unknown():
        module = ir.Operation.parse(text).operation
        assert sorted(axis for _, axis in iteration_bounds(module)) == [0, 1, 2]
