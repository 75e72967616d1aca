"""How diagnostics leave the tool: as text while it works, or as one document when it is done."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Literal, TextIO

from mosaic_grid.baseline import fingerprint
from mosaic_grid.diagnostics import Diagnostic, Severity

Format = Literal["text", "json", "sarif"]

_JSON_VERSION = 1


@dataclasses.dataclass(frozen=True)
class Report:
    """A diagnostic and the input that it is about; empty for one that is about none."""

    diagnostic: Diagnostic
    program: str = ""


class Reporter:
    """Text goes to `err` at once. Documents (JSON, SARIF) go to `out` in the end, and failures to `err` as well."""

    def __init__(self, form: Format, out: TextIO, err: TextIO) -> None:
        """Nothing is written yet."""
        self.form = form
        self._out = out
        self._err = err
        self._reports: list[Report] = []
        self._failures: list[Diagnostic] = []

    @property
    def takes_stdout(self) -> bool:
        """Whether standard output is for the document."""
        return self.form != "text"

    def say(self, diagnostic: Diagnostic, program: str = "") -> None:
        """Reports a diagnostic about an input."""
        if self.form == "text":
            self._err.write("\n".join(diagnostic.lines()) + "\n")
        else:
            self._reports.append(Report(diagnostic, program))

    def fail(self, failure: Diagnostic) -> None:
        """Keeps, for the document, what kept the tool from its work; printing it is the caller's business."""
        self._failures.append(failure)

    def finish(self, version: str, status: int) -> None:
        """Writes the document, if that is the form."""
        if self.form == "text":
            return
        document = self._json(status) if self.form == "json" else self._sarif(version, status)
        self._out.write(json.dumps(document, indent=2) + "\n")

    def _json(self, status: int) -> dict[str, Any]:
        return {
            "version": _JSON_VERSION,
            "exit_code": status,
            "diagnostics": [_facts(each) for each in self._reports],
            "failures": [_said(each) for each in self._failures],
        }

    def _sarif(self, version: str, status: int) -> dict[str, Any]:
        from mosaic_grid.sarif import sarif_log

        return sarif_log(self._reports, self._failures, version, status)


def _facts(report: Report) -> dict[str, Any]:
    diagnostic = report.diagnostic
    return {
        "program": report.program,
        "name": diagnostic.name,
        "severity": diagnostic.severity.value,
        "kernel": diagnostic.kernel,
        **_said(diagnostic),
        "fingerprint": fingerprint(diagnostic) if diagnostic.name else None,
    }


def _said(diagnostic: Diagnostic) -> dict[str, Any]:
    """The message, its place (`None` where there is none), and its notes."""
    place = diagnostic.place
    said: dict[str, Any] = {
        "message": diagnostic.message,
        "file": place.file if place else None,
        "line": place.line or None if place else None,
        "column": place.column or None if place else None,
    }
    return said | (
        {} if diagnostic.severity is Severity.NOTE else {"notes": [_said(note) for note in diagnostic.notes]}
    )
