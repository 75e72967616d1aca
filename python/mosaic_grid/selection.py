"""Which diagnostics are reported, and as what: what the command line says of them."""

from __future__ import annotations

import dataclasses
import fnmatch
from typing import Literal

from mosaic_grid.baseline import Baseline, Recorder, is_finding
from mosaic_grid.diagnostics import Diagnostic, Severity

Level = Literal["error", "warning", "off"]


@dataclasses.dataclass(frozen=True)
class Suppression:
    """Diagnostics of this name are not reported of kernels whose name the glob pattern `kernels` matches."""

    name: str
    kernels: str


@dataclasses.dataclass(frozen=True)
class Selection:
    """What is reported of all that is found.

    `strict` asks checks for what they could not decide, too. `levels` name diagnostics, the last one of a name counts;
    for the others `werror` makes errors of warnings. Then `recorder` takes the findings for a new baseline, else those
    that `baseline` knows are left out.
    """

    strict: bool = False
    werror: bool = False
    levels: tuple[tuple[str, Level], ...] = ()
    suppressions: tuple[Suppression, ...] = ()
    baseline: Baseline | None = None
    recorder: Recorder | None = None

    def apply(self, diagnostic: Diagnostic) -> Diagnostic | None:
        """The diagnostic as it is to be reported, `None` where it isn't."""
        if any(self._suppresses(each, diagnostic) for each in self.suppressions):
            return None
        severity = self._severity(diagnostic)
        if severity is None:
            return None
        if severity is not diagnostic.severity:
            diagnostic = dataclasses.replace(diagnostic, severity=severity)
        if not is_finding(diagnostic):
            return diagnostic
        if self.recorder:
            self.recorder.findings.append(diagnostic)
            return None
        return None if self.baseline and self.baseline.takes(diagnostic) else diagnostic

    def _severity(self, diagnostic: Diagnostic) -> Severity | None:
        level = dict(self.levels).get(diagnostic.name) if diagnostic.name else None
        match level:
            case "off" if diagnostic.severity is not Severity.ERROR:
                return None
            case "error" | "warning":
                return Severity(level)
        raised = self.werror and diagnostic.severity is Severity.WARNING
        return Severity.ERROR if raised else diagnostic.severity

    @staticmethod
    def _suppresses(suppression: Suppression, diagnostic: Diagnostic) -> bool:
        matches = fnmatch.fnmatchcase(diagnostic.kernel, suppression.kernels)
        return diagnostic.name == suppression.name and bool(diagnostic.kernel) and matches
