"""A target with one core: a `core_parallel` dimension, which no compiler takes there, becomes an ordinary loop."""

from __future__ import annotations

from mosaic_grid.grid import Dimension, Semantics
from mosaic_grid.kernel_edit import set_grid
from mosaic_grid.partition.planner import Planner
from mosaic_grid.program import Kernel


def run_on_one_core(planner: Planner, kernel: Kernel) -> None:
    """Makes the kernel's `core_parallel` dimension an arbitrary one, in place, where its steps hand nothing on.

    What one core's scratch held would otherwise reach the steps that another core was to run. The planner collects the
    remark of a refusal.
    """
    axes = [axis for axis, d in enumerate(kernel.grid) if d.semantics is Semantics.CORE_PARALLEL and d.bound != 1]
    if len(axes) != 1 or not kernel.on_tensor_core or planner.judge(kernel, tuple(axes)).objections:
        return
    grid = [Dimension(d.bound, Semantics.ARBITRARY) if axis in axes else d for axis, d in enumerate(kernel.grid)]
    set_grid(kernel.body, grid)
