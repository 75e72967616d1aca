"""What a kernel does that a person sees, and in which order."""

from __future__ import annotations

from jaxlib.mlir import ir

from mosaic_grid.objections import Objection
from mosaic_grid.program import Kernel

_PRINTS = frozenset({"tpu.log", "tpu.log_buffer"})
NAME = "prints"


def printing(kernel: Kernel) -> tuple[Objection, ...]:
    """The first operation that prints: lines of several cores would come in any order."""
    found: list[Objection] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name not in _PRINTS:
            return ir.WalkResult.ADVANCE
        found.append(Objection(f"{op.name} prints, in the order of the steps", op.location, True, NAME))
        return ir.WalkResult.INTERRUPT

    kernel.body.walk(visit, ir.WalkOrder.PRE_ORDER)
    return tuple(found)
