"""Which variants are kept where no compiler can be asked: by what folds away."""

from __future__ import annotations

from jaxlib.mlir import ir

from mosaic_grid.program import Kernel
from mosaic_grid.variants.build import fold, specialize
from mosaic_grid.variants.plan import Variant
from mosaic_grid.variants.verdict import Verdict


def judged_by_folds(kernel: Kernel, variant: Variant, cores: int) -> Verdict:
    """The rule where no compiler can be asked.

    A variant is kept that the compiler shares between cores and the original isn't, or in which a branch or a trip
    count that is only known at run time has gone. A guard adds a branch.
    """
    if variant.shared is not None:
        return Verdict(True, f"it shares dimension {variant.shared.axis} between the cores")
    grid = variant.grid(kernel.grid)
    shared = [
        next((k for k, d in enumerate(g) if d.is_parallel and (d.bound or 0) > 1), None) for g in (kernel.grid, grid)
    ]
    if cores > 1 and shared[0] is None and shared[1] is not None:
        return Verdict(True, f"the compiler shares dimension {shared[1]}")
    before, after = (_undecided(kernel, each) for each in (None, variant))
    if after < before:
        return Verdict(True, f"{before - after} of {before} branches and loops are decided")
    return Verdict(False, "nothing folds away, and no core is gained")


def _undecided(kernel: Kernel, variant: Variant | None) -> int:
    """How many branches and trip counts are left to the run once all that is constant is worked out."""
    clone = kernel.module.clone(ip=False).operation
    if variant is None:
        fold(clone)
    else:
        specialize(clone, variant)
    count = 0

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal count
        bounds = op.operands[:3] if op.name == "scf.for" else ()
        static = all(isinstance(each, ir.OpResult) and each.owner.name == "arith.constant" for each in bounds)
        count += op.name == "scf.if" or not static
        return ir.WalkResult.ADVANCE

    clone.walk(visit)
    return count
