"""Whether a command line's chips have as many cores as its passes share grids between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.passes.partition_cores import PartitionCores
from mosaic_grid.pipeline import Pipeline
from mosaic_grid.targets import Target


def told_of_cores(pipeline: Pipeline, target: Target | None, compiled: Sequence[Target]) -> Iterator[Diagnostic]:
    """A warning where a pass contradicts `target`; a note for each other chip that the program is `compiled` for."""
    for cores in dict.fromkeys(step.cores_for(target) for step in pipeline.steps if isinstance(step, PartitionCores)):
        shared = f"partition-cores shares grids between {cores} core{'s' if cores > 1 else ''}"
        if target and target.cores != cores:
            yield Diagnostic(Severity.WARNING, f"{shared}, but {target} has {target.cores}")
        for other in dict.fromkeys(compiled):
            if other.cores != cores and other != target:
                yield note(f"{shared}, but {other} has {other.cores}: --compile={other} alone suits it")
