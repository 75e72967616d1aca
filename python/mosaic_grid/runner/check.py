"""The sanitizer: runs a program whose kernels are watched, and says what they do wrong.

Reading what nobody wrote is an error only if it matters, which `dependence.py` finds out: kernels load whole tiles and
mask them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from mosaic_grid.cpu.arrays import Array
from mosaic_grid.cpu.faults import What
from mosaic_grid.diagnostics import Diagnostic, Severity, place_of
from mosaic_grid.runner.dependence import Codes, Dependences, codes_of
from mosaic_grid.runner.findings import diagnostics_of
from mosaic_grid.runner.progress import Tell, silent
from mosaic_grid.runner.recorded import Recorded

_UNWRITTEN = (What.UNWRITTEN, What.OUTPUT)


@dataclasses.dataclass(frozen=True)
class Checked:
    """What the program returned, and what its kernels did wrong, errors first."""

    results: list[Array]
    diagnostics: list[Diagnostic]

    @property
    def failed(self) -> bool:
        """Whether there is an error among them."""
        return any(each.severity is Severity.ERROR for each in self.diagnostics)


def check(program: Recorded, arrays: Sequence[Array], tell: Tell = silent) -> Checked:
    """Runs a program that records everything, as often as it takes; `tell` is told of each run."""
    tell("check: running")
    observed = program.observe(arrays)
    suspects = [(record, fault.site.root) for record, fault in observed.faults if fault.site.what in _UNWRITTEN]
    every: Codes = frozenset().union(*(codes_of(*suspect) for suspect in suspects))
    dependences = Dependences(program, arrays, every, tell)
    told = diagnostics_of(observed.faults, lambda record, root: dependences.on(codes_of(record, root)))
    unseen = "what is launched here isn't checked: no record of it can be handed on"
    lost = [Diagnostic(Severity.WARNING, unseen, place_of(each), "not-checked") for each in program.recording.lost]
    return Checked(observed.results, [*told, *lost])


def facts(diagnostic: Diagnostic) -> dict[str, Any]:
    """A diagnostic for scripts; the place is `None` where the program doesn't say it."""
    place = diagnostic.place
    return {
        "name": diagnostic.name,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "notes": [each.message for each in diagnostic.notes],
    }
