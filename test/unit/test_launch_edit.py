"""Launches with other operands: whatever counts operands still means the same ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from mosaic_grid.context import create_context
from mosaic_grid.launch_edit import BOUNDS, Kept, replace_kernel
from mosaic_grid.program import Launch, Program

CONTEXT = create_context()

INPUTS = 5


def program(config: dict[str, Any], attributes: str) -> str:
    """A launch whose operand `i`, of rank `i`, has a layout of its own; `%new` may become an operand."""
    kinds = [f"tensor<{'2x' * rank}f32>" for rank in range(INPUTS)]
    layouts = [f"dense<[{', '.join(map(str, range(rank)))}]> : tensor<{rank}xindex>" for rank in range(INPUTS)]
    layouts[0] = "dense<> : tensor<0xindex>"
    escaped = json.dumps(config).replace('"', r"\22")
    arguments = [*(f"%x{i}: {kind}" for i, kind in enumerate(kinds)), "%new: tensor<3x3xi32>"]
    result = f"({kinds[3]}, {kinds[4]})"
    return f"""
      module {{
        func.func public @main({", ".join(arguments)}) -> {result} {{
          %r:2 = stablehlo.custom_call @tpu_custom_call({", ".join(f"%x{i}" for i in range(INPUTS))}) {{
            mosaic.kernel = @kernel, mosaic.bounds = ["x"], has_side_effect = true, kernel_name = "k",
            backend_config = "{escaped}", operand_layouts = [{", ".join(layouts)}], {attributes}
            result_layouts = [dense<[0, 1, 2]> : tensor<3xindex>, dense<[0, 1, 2, 3]> : tensor<4xindex>]
          }} : ({", ".join(kinds)}) -> {result}
          return %r#0, %r#1 : {", ".join((kinds[3], kinds[4]))}
        }}
        module @kernel attributes {{stable_mosaic.version = 15 : i64}} {{
          func.func @kernel() {{
            return
          }}
        }}
      }}"""


def alias(output: int, operand: int) -> str:
    """An output that is an operand."""
    inner = f"output_tuple_indices = [{output}], operand_index = {operand}, operand_tuple_indices = []"
    return f"#stablehlo.output_operand_alias<{inner}>"


def launch_of(module: ir.Operation) -> Launch:
    """The only launch."""
    return Program(module).launches[0]


def config_with(colors: list[int], fusion: list[bool] | None) -> dict[str, Any]:
    """A backend_config that counts operands."""
    section: dict[str, Any] = {"body": "", "vmem_limit_bytes": 7}
    section["input_memory_space_colors"] = [{"operand_index": i, "color": 10 + i} for i in colors]
    if fusion is not None:
        section["allow_input_fusion"] = fusion
    return {"custom_call_config": section, "other": [1]}


@given(data=st.data())
def test_everything_that_counts_operands_follows(data: st.DataObject) -> None:
    """Operands reordered, dropped and inserted: aliases, layouts, colours and fusion stay with theirs."""
    colors = data.draw(st.lists(st.integers(0, INPUTS - 1), unique=True))
    fusion = data.draw(st.none() | st.lists(st.booleans(), min_size=INPUTS, max_size=INPUTS))
    # the aliased operands stay
    kept = data.draw(st.permutations([3, 4, *data.draw(st.sets(st.integers(0, 2)))]))
    fresh = data.draw(st.lists(st.integers(0, len(kept)), max_size=2))
    text = program(config_with(colors, fusion), f"output_operand_aliases = [{alias(0, 3)}, {alias(1, 4)}],")
    with CONTEXT, ir.Location.unknown():
        module = ir.Operation.parse(text).operation
        launch = launch_of(module)
        value = next(op for op in module.regions[0].blocks[0].operations).operation.regions[0].blocks[0].arguments[-1]
        operands: list[Any] = [Kept(index) for index in kept]
        for place in fresh:
            operands.insert(place, value)
        new = replace_kernel(launch, "other", operands)
        ranks = [ir.RankedTensorType(operand.type).rank for operand in new.operands]
        old_index = [None if isinstance(operand, ir.Value) else operand.index for operand in operands]
        assert ranks == [2 if index is None else index for index in old_index]

        aliases = [stablehlo.OutputOperandAlias(a) for a in ir.ArrayAttr(new.attributes["output_operand_aliases"])]
        assert [(list(a.output_tuple_indices), ranks[a.operand_index]) for a in aliases] == [([0], 3), ([1], 4)]

        layouts = [str(layout) for layout in ir.ArrayAttr(new.attributes["operand_layouts"])]
        before = [str(layout) for layout in ir.ArrayAttr(launch.op.attributes["operand_layouts"])]
        row_major = "dense<[1, 0]> : tensor<2xindex>"
        assert layouts == [row_major if index is None else before[index] for index in old_index]

        config = json.loads(ir.StringAttr(new.attributes["backend_config"]).value)
        section = config["custom_call_config"]
        found = {
            color["color"] - 10: old_index[color["operand_index"]] for color in section["input_memory_space_colors"]
        }
        assert found == {index: index for index in colors if index in kept}
        if fusion is not None:
            wanted = [False if index is None else fusion[index] for index in old_index]
            assert section["allow_input_fusion"] == wanted
        assert (config["other"], section["vmem_limit_bytes"]) == ([1], 7)


def test_a_scalar_operand_has_the_layout_of_a_scalar() -> None:
    """A new scalar gets a layout without dimensions; all other attributes but the bounds in words are kept."""
    with CONTEXT, ir.Location.unknown():
        module = ir.Operation.parse(program(config_with([], None), "")).operation
        launch = launch_of(module)
        new = replace_kernel(launch, "other", [launch.op.operands[0], *(Kept(i) for i in range(INPUTS))])
        layouts = ir.ArrayAttr(new.attributes["operand_layouts"])
        assert str(layouts[0]) == str(layouts[1]) == "dense<> : tensor<0xindex>"
        assert str(new.attributes["mosaic.kernel"]) == "@other"
        assert set(launch.op.attributes) - set(new.attributes) == {BOUNDS}
        module.verify()


def test_the_new_launch_stands_before_the_old_one() -> None:
    """The old launch stays, with its uses, until the caller has replaced them; `ip` puts the new one elsewhere."""
    with CONTEXT, ir.Location.file("k.py", 3, 4):
        module = ir.Operation.parse(program(config_with([], None), "")).operation
        launch = launch_of(module)
        block = launch.op.block
        operands = [Kept(i) for i in range(INPUTS)]
        first = replace_kernel(launch, "first", operands)
        last = replace_kernel(launch, "last", operands, ir.InsertionPoint.at_block_terminator(block))
        assert [op.operation for op in block.operations][:3] == [first, launch.op, last]
        assert first.location == launch.op.location
        assert [result.type for result in first.results] == [result.type for result in launch.op.results]


@pytest.mark.parametrize("kept", [[1, 3, 4], [4, 3, 1, 0]])
def test_shape_operands_follow(kept: list[int]) -> None:
    """`indices_of_shape_operands` names the same operands as before."""
    text = program(config_with([], None), "indices_of_shape_operands = array<i64: 1, 3>,")
    with CONTEXT, ir.Location.unknown():
        module = ir.Operation.parse(text).operation
        new = replace_kernel(launch_of(module), "other", [Kept(index) for index in kept])
        named = ir.DenseI64ArrayAttr(new.attributes["indices_of_shape_operands"])
        assert [kept[index] for index in named] == [1, 3]
