"""The body of a private function in the place of a call of it."""

from __future__ import annotations

from jaxlib.mlir import ir

from mosaic_grid.dataflow.control import functions_of
from mosaic_grid.ir_types import Value


def inline_call(call: ir.Operation, program: ir.Operation) -> list[Value] | None:
    """Puts the callee's operations before the call, which goes; returns what stands for its results.

    `None`, with nothing done, for a callee without a body of one block.
    """
    callee = functions_of(program)[ir.FlatSymbolRefAttr(call.attributes["callee"]).value].op
    if len(callee.regions[0].blocks) != 1:
        return None
    copy = callee.clone(ip=ir.InsertionPoint(program.regions[0].blocks[0])).operation
    block = copy.regions[0].blocks[0]
    for argument, operand in zip(block.arguments, call.operands, strict=True):
        argument.replace_all_uses_with(operand)
    *operations, end = [op.operation for op in block.operations]
    for op in operations:
        op.move_before(call)
    results: list[Value] = list(end.operands)
    for old, new in zip(call.results, results, strict=True):
        old.replace_all_uses_with(new)
    copy.erase()
    call.erase()
    return results
