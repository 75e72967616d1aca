"""What the rewrite can't handle, whatever the kernel computes: launches and kernels of an unusual form."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir

from mosaic_grid.kernel_edit import iteration_bounds
from mosaic_grid.launch_edit import pinned_operands
from mosaic_grid.objections import Objection
from mosaic_grid.program import Kernel, Launch

NAME = "unusual-form"


def unfit_launch(launches: Sequence[Launch]) -> Objection | None:
    """The first launch whose bounds aren't i32 scalars of their own, or whose results aren't tensors."""
    for launch in launches:
        if reason := _unfit_bounds(launch) or _unfit_results(launch):
            return Objection(reason, launch.op.location, False, NAME)
    return None


def unfit_kernel(kernel: Kernel) -> Objection | None:
    """Why the kernel's functions can't be given another grid; `None` where they can."""
    maps = [window.affine_map for window in kernel.windows]
    if not all(isinstance(result, ir.AffineConstantExpr) for each in maps if each for result in each.results):
        reason = "an index map is an affine map over the grid, which isn't rewritten"
        return Objection(reason, kernel.body.location, False, NAME)
    rewritten = {window.transform for window in kernel.windows} | {kernel.name}
    for symbol, function in kernel.functions.items():
        if symbol not in rewritten and iteration_bounds(function):
            reason = f"the function @{symbol} asks for a bound of the grid, and only index maps are rewritten"
            return Objection(reason, function.location, False, NAME)
    return None


def _unfit_bounds(launch: Launch) -> str | None:
    scalar = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))
    for number, (axis, bound) in enumerate(launch.bounds.items()):
        if bound.type != scalar:
            return f"the bound of dimension {axis} is a {bound.type}, not a {scalar}"
        if number in pinned_operands(launch):
            return f"the bound of dimension {axis} is aliased by an output"
    return None


def _unfit_results(launch: Launch) -> str | None:
    others = [result.type for result in launch.op.results if not isinstance(result.type, ir.RankedTensorType)]
    return f"its result is a {others[0]}, not a tensor" if others else None
