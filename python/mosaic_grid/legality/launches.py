"""What the launches of one kernel have in common."""

from __future__ import annotations

from collections.abc import Sequence

from mosaic_grid.dataflow.outer import OuterScalars
from mosaic_grid.program import Kernel, Launch, Program


def launches_of(program: Program, kernel: Kernel) -> list[Launch]:
    """All launches of a kernel, in walk order."""
    return [launch for launch in program.launches if launch.kernel.symbol == kernel.symbol]


def most_steps(launches: Sequence[Launch], scalars: OuterScalars) -> dict[int, int]:
    """How many steps the dynamic dimensions have at most, in any of these launches, as far as contracts say it too."""
    most: dict[int, int] = {}
    for launch in launches:
        for axis, bound in launch.bounds.items():
            most[axis] = max(most.get(axis, 0), scalars.range_of(scalars.evaluate(bound)).hi)
    return most
