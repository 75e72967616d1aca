"""The branches that launches are in, as a person tells them apart."""

from __future__ import annotations

import pytest
from jaxlib.mlir import ir

from mosaic_grid.branches import branches_text
from mosaic_grid.context import create_context

PROGRAM = """func.func @main(%n: tensor<i32>, %b: tensor<i1>) -> tensor<i32> {
  %none = stablehlo.add %n, %n : tensor<i32>
  %0 = "stablehlo.case"(%n) ({
    stablehlo.return %n : tensor<i32>
  }, {
    %case = stablehlo.add %n, %n : tensor<i32>
    stablehlo.return %case : tensor<i32>
  }, {
    %1 = "stablehlo.if"(%b) ({
      %true = stablehlo.multiply %n, %n : tensor<i32>
      stablehlo.return %true : tensor<i32>
    }, {
      %false = stablehlo.subtract %n, %n : tensor<i32>
      stablehlo.return %false : tensor<i32>
    }) : (tensor<i1>) -> tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }) : (tensor<i32>) -> tensor<i32>
  return %0 : tensor<i32>
}"""


@pytest.mark.parametrize(
    ("name", "number", "text"),
    [
        ("add", 0, ""),
        ("add", 1, "branch 1 of 3"),
        ("multiply", 0, "true branch in branch 2 of 3"),
        ("subtract", 0, "false branch in branch 2 of 3"),
    ],
)
def test_branches(name: str, number: int, text: str) -> None:
    """Every branch around an operation is named, from the inside out; those of an if by what they are for."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == f"stablehlo.{name}":
            found.append(op)
        return ir.WalkResult.ADVANCE

    with create_context():
        module = ir.Module.parse(PROGRAM)
        module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
        assert branches_text(found[number]) == text
