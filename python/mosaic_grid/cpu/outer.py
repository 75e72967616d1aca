"""What the outer program asks of a TPU beside launches, and the CPU's way to do it."""

from __future__ import annotations

from jaxlib.mlir import ir

from mosaic_grid.cpu.fill import uninitialized
from mosaic_grid.cpu.options import Options
from mosaic_grid.ir_types import Value
from mosaic_grid.program import allocates, is_kernel


def replace_buffers(program: ir.Operation, options: Options) -> None:
    """Gives arrays that nobody fills (`AllocateBuffer`, what `jax.lax.empty` becomes) the contents of such memory."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.parent is not None and is_kernel(op):
            return ir.WalkResult.SKIP
        if allocates(op):
            found.append(op)
        return ir.WalkResult.ADVANCE

    program.walk(visit, ir.WalkOrder.PRE_ORDER)
    for op in found:
        kind = ir.RankedTensorType(op.results[0].type)
        with op.location, ir.InsertionPoint(op):
            op.results[0].replace_all_uses_with(uninitialized(kind.shape, kind.element_type, options))
        op.erase()


def is_blank(value: Value) -> bool:
    """Whether a value of the outer program is an array that nobody fills."""
    owner = value.owner
    return not isinstance(owner, ir.Block) and allocates(owner.operation)
