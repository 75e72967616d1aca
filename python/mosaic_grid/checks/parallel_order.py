"""`parallel-not-prefix`: a parallel dimension after one that is not.

JAX's TPU interpreter refuses it: "Dimensions with parallel semantics must form a prefix of the grid".
"""

from __future__ import annotations

from collections.abc import Iterator

from mosaic_grid.checks.subject import Subject
from mosaic_grid.diagnostics import Diagnostic, Severity, note

NAME = "parallel-not-prefix"


def parallel_order(subject: Subject) -> Iterator[Diagnostic]:
    """One warning, at the first dimension that is out of order."""
    grid = subject.kernel.grid
    if not subject.kernel.on_tensor_core:
        return
    before = next((axis for axis, dimension in enumerate(grid) if not dimension.is_parallel), len(grid))
    late = next((axis for axis in range(before, len(grid)) if grid[axis].is_parallel), None)
    if late is None:
        return
    words = [f"{grid[axis].semantics.value} dimension {axis}" for axis in (late, before)]
    message = (
        f"{words[0]} comes after {words[1]}: JAX's TPU interpreter takes parallel dimensions only before all others"
    )
    steps = "" if grid[before].bound is None else f"{grid[before].bound} "
    cost = f"where it is shared, each core goes through all {steps}steps of dimension {before} with its part of {late}"
    advice = f"let dimension {late} come first: in grid, dimension_semantics, index maps and pl.program_id"
    yield subject.say(NAME, Severity.WARNING, message, f"dimension {late}", notes=[note(cost), note(advice)])
