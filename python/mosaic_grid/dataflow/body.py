"""The operations of a kernel's body that do more than compute values, found once for all who ask."""

from __future__ import annotations

from typing import cast

from jaxlib.mlir import ir

from mosaic_grid.dataflow.effects import Effect, effect_of
from mosaic_grid.program import Kernel


def effects_in(kernel: Kernel) -> tuple[tuple[ir.Operation, Effect], ...]:
    """Every operation of the body, in regions too, that isn't pure, with its effect, in the order of the text."""
    if effects_in not in kernel.memo:
        found: list[tuple[ir.Operation, Effect]] = []

        def visit(op: ir.Operation) -> ir.WalkResult:
            effect = effect_of(op)
            if effect is not Effect.PURE:
                found.append((op, effect))
            return ir.WalkResult.ADVANCE

        for region in kernel.body.regions:
            for block in region.blocks:
                for op in block.operations:
                    op.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
        kernel.memo[effects_in] = tuple(found)
    return cast("tuple[tuple[ir.Operation, Effect], ...]", kernel.memo[effects_in])
