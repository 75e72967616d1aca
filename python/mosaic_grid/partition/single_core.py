"""A `core_parallel` dimension with fewer steps than there are cores, which no compiler takes, becomes an ordinary loop.

Established with libtpu: the bound of a `core_parallel` dimension has to be the number of cores, no more and no less.
"""

from __future__ import annotations

from mosaic_grid.grid import Dimension, Semantics
from mosaic_grid.kernel_edit import set_grid
from mosaic_grid.partition.planner import Planner
from mosaic_grid.program import Kernel


def run_on_one_core(planner: Planner, kernel: Kernel) -> None:
    """Makes such a dimension an arbitrary one, in place, where its steps hand nothing on.

    What one core's scratch held would otherwise reach the steps that another core was to run. The planner collects the
    remark of a refusal. Views of the kernel made before are stale afterwards.
    """
    axes = [axis for axis, dimension in enumerate(kernel.grid) if _has_too_few_steps(dimension, planner.cores)]
    if len(axes) != 1 or not kernel.on_tensor_core or planner.refuses(kernel, tuple(axes)):
        return
    grid = [Dimension(d.bound, Semantics.ARBITRARY) if axis in axes else d for axis, d in enumerate(kernel.grid)]
    set_grid(kernel.body, grid)


def _has_too_few_steps(dimension: Dimension, cores: int) -> bool:
    if dimension.semantics is not Semantics.CORE_PARALLEL:
        return False
    return dimension.bound != 1 if cores == 1 else dimension.bound is not None and dimension.bound < cores
