"""`idle-cores`: grids that the compiler runs on one core of a device that has two."""

from __future__ import annotations

from collections.abc import Iterator

from mosaic_grid.checks.subject import Subject
from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.summary import LaunchSummary, idle_cores_warning
from mosaic_grid.summary.cores import IDLE_CORES, axes_text, chip_name


def idle_cores(subject: Subject) -> Iterator[Diagnostic]:
    """Dynamic parallel dimensions; dimensions that could be parallel in a kernel without a parallel step to share."""
    for summary in subject.summaries:
        dynamic = idle_cores_warning(summary, subject.target, subject.ways)
        if dynamic is not None:
            yield dynamic
        elif _runs_on_one_core(summary):
            yield from _unmarked(subject, summary)


def _runs_on_one_core(summary: LaunchSummary) -> bool:
    cores = summary.cores
    return cores is not None and cores.used == 1 < cores.available and not summary.fallback


def _unmarked(subject: Subject, summary: LaunchSummary) -> Iterator[Diagnostic]:
    """The first dimension whose steps are proved independent and that nobody called parallel."""
    grid = subject.kernel.grid
    parallel = [axis for axis, dimension in enumerate(grid) if dimension.is_parallel]
    before = next((axis for axis, dimension in enumerate(grid) if dimension.bound != 1), len(grid))
    for axis in range(before, len(grid)):
        # of a bound that is read at run time nobody knows that there is anything to share
        if grid[axis].is_parallel or grid[axis].bound in (0, 1) or subject.bounds_of(axis).hi < 2:
            continue
        if subject.hands_on(axis):
            # no later one is independent either
            return
        judgement = subject.judge((axis,))
        if judgement.objections or judgement.assumptions:
            continue
        runs = f"{chip_name(subject.target)} runs this kernel on 1 of its {subject.cores} cores"
        steps = "has one step" if len(parallel) == 1 else "have one step each"
        why = f"parallel {axes_text(parallel)} {steps}" if parallel else "no dimension is parallel"
        message = f"{why}, although the steps of dimension {axis} are independent: {runs}"
        first = "" if axis == before else "make it the first and "
        infer = subject.ways.passing("infer-parallel")
        advice = f"{first}say that dimension {axis} is parallel, in dimension_semantics; or run {infer}"
        if grid[axis].bound is None:
            shares = subject.ways.passing("partition-cores")
            advice += f"; {shares} then shares it, for its bound is dynamic"
        yield Diagnostic(
            Severity.WARNING,
            message,
            subject.place,
            IDLE_CORES,
            (note(advice),),
            subject.kernel.name,
            axes_text([axis]),
        )
        return
