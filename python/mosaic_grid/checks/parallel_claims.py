"""`parallel-race`, `carried-scratch`: dimensions that are called parallel and are not."""

from __future__ import annotations

from collections.abc import Iterator

from mosaic_grid.checks.subject import Subject
from mosaic_grid.diagnostics import Diagnostic, Severity, note

RACE, CARRIED = "parallel-race", "carried-scratch"

_INSTEAD = {
    RACE: "make dimension {axis} arbitrary, or give each of its steps a place of its own to write to",
    CARRIED: "make dimension {axis} arbitrary, or write it in each step of the dimension before it is read",
}


def parallel_claims(subject: Subject) -> Iterator[Diagnostic]:
    """What contradicts the word "parallel", dimension by dimension; with `strict` also what isn't proved of it."""
    if not subject.kernel.on_tensor_core:
        return
    # on one core the steps run in order, whatever they are called
    severity = Severity.WARNING if subject.target and subject.cores == 1 else Severity.ERROR
    for axis, dimension in enumerate(subject.kernel.grid):
        if not dimension.is_parallel or dimension.bound in (0, 1):
            continue
        judgement = subject.judge((axis,))
        about = f"dimension {axis}"
        for objection in judgement.objections:
            advice = [note(_INSTEAD[objection.name].format(axis=axis))] if objection.name in _INSTEAD else []
            if objection.certain and advice:
                told = (
                    objection.reason
                    if objection.name == RACE
                    else f"dimension {axis} isn't parallel: {objection.reason}"
                )
                yield subject.say(objection.name, severity, told, about, at=objection.location, notes=advice)
            elif advice and subject.strict:
                told = f"dimension {axis} may not be parallel: {objection.reason}"
                yield subject.say(objection.name, Severity.WARNING, told, about, at=objection.location, notes=advice)
        for trusted in judgement.assumptions if subject.strict else ():
            told = f"dimension {axis} is parallel only by its author's word: it isn't proved {trusted.claim}"
            yield subject.say(trusted.name, Severity.WARNING, told, about, at=trusted.location)
