"""What `check-grid` looks for, a file for each check: a function from one kernel to what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mosaic_grid.checks.alignment import alignment
from mosaic_grid.checks.batched_loop import batched_loop
from mosaic_grid.checks.blocks import blocks
from mosaic_grid.checks.core_parallel import core_parallel
from mosaic_grid.checks.grid_overflow import grid_overflow
from mosaic_grid.checks.idle_cores import idle_cores
from mosaic_grid.checks.idle_steps import idle_steps
from mosaic_grid.checks.index_in_elements import index_in_elements
from mosaic_grid.checks.memory_overflow import memory_overflow
from mosaic_grid.checks.parallel_claims import parallel_claims
from mosaic_grid.checks.parallel_order import parallel_order
from mosaic_grid.checks.prefetch_written import prefetch_written
from mosaic_grid.checks.stale_bound import stale_bound
from mosaic_grid.checks.subject import Subject, subjects_of
from mosaic_grid.checks.unbalanced_cores import unbalanced_cores
from mosaic_grid.checks.zero_trip import zero_trip
from mosaic_grid.diagnostics import Diagnostic

__all__ = ["CHECKS", "Subject", "subjects_of"]

CHECKS: tuple[Callable[[Subject], Iterable[Diagnostic]], ...] = (
    zero_trip,
    grid_overflow,
    core_parallel,
    index_in_elements,
    blocks,
    stale_bound,
    memory_overflow,
    alignment,
    parallel_claims,
    prefetch_written,
    parallel_order,
    idle_cores,
    idle_steps,
    unbalanced_cores,
    batched_loop,
)
"""In the order in which their findings are reported of a kernel."""
