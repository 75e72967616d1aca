"""`idle-cores`: a dimension with a step for each core, of which some do nothing.

That is what becomes of an `emit_pipeline` that splits a dimension of size 1 between the cores: one core gets it.
"""

from __future__ import annotations

from collections.abc import Iterator

from mosaic_grid.checks.subject import Subject
from mosaic_grid.dataflow.freshness import does_nothing
from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.summary.cores import IDLE_CORES, chip_name


def idle_steps(subject: Subject) -> Iterator[Diagnostic]:
    """A warning where a step of such a dimension writes and copies nothing, whatever the inputs are."""
    kernel = subject.kernel
    if not kernel.on_tensor_core or subject.cores < 2 or len(kernel.body.regions[0].blocks) != 1:
        return
    for axis, dimension in enumerate(kernel.grid):
        if not dimension.is_parallel or dimension.bound != subject.cores:
            continue
        idle = [index for index in range(subject.cores) if does_nothing(kernel, {axis: index})]
        if not idle or len(idle) == subject.cores:
            continue
        listed = " and ".join(map(str, idle))
        runs = f"{chip_name(subject.target)} works on it with {subject.cores - len(idle)} of its {subject.cores} cores"
        message = f"where index {axis} of the grid is {listed} the kernel does nothing, whatever its inputs: {runs}"
        advice = "an emit_pipeline that splits a dimension of size 1 is like that: make a larger dimension parallel"
        yield subject.say(IDLE_CORES, Severity.WARNING, message, f"index {axis}", notes=[note(advice)])
