"""A program for one device without what it says of how it is shared between several."""

from __future__ import annotations

from jaxlib.mlir import ir

from mosaic_grid.program import block_of

_ATTRIBUTES = ("sdy.sharding", "mhlo.sharding", "arg_attrs", "res_attrs")
_PASSING_ON = ("sdy.sharding_constraint", "sdy.reshard", "sdy.propagation_barrier")
_MESH = "sdy.mesh"


def without_shardings(program: ir.Operation) -> ir.Operation:
    """A copy whose only symbols are functions; JAX decides on layouts and donation of their arguments anew."""
    copy = program.clone(ip=False).operation
    passing: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        for name in _ATTRIBUTES:
            if name in op.attributes:
                del op.attributes[name]
        if op.name in _PASSING_ON:
            passing.append(op)
        return ir.WalkResult.ADVANCE

    copy.walk(visit, ir.WalkOrder.PRE_ORDER)
    for op in passing:
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()
    for op in [op.operation for op in block_of(copy) if op.operation.name == _MESH]:
        op.erase()
    return copy
