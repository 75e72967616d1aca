"""Findings that are known already: a file of fingerprints, so that only what is new is reported."""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.errors import UserError

_VERSION = 1
_LENGTH = 16


def is_finding(diagnostic: Diagnostic) -> bool:
    """Whether a diagnostic is about the program: a warning or an error that has a name."""
    return bool(diagnostic.name) and diagnostic.severity in (Severity.WARNING, Severity.ERROR)


def fingerprint(diagnostic: Diagnostic) -> str:
    """What tells a finding from others, and stays when lines move and numbers change.

    Its name, the kernel, what it is about in it, and the name of the Python file it is in; 16 hexadecimal digits.
    """
    file = os.path.basename(diagnostic.place.file) if diagnostic.place else ""
    parts = (diagnostic.name, diagnostic.kernel, diagnostic.about, file if file.endswith(".py") else "")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_LENGTH]


@dataclasses.dataclass
class Baseline:
    """Known findings: how many there are `left` of each fingerprint. A third one where two are known is new."""

    left: collections.Counter[str]

    @classmethod
    def read(cls, path: str) -> Baseline:
        """Raises `UserError` for a file that can't be read, or that is no baseline."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise UserError(f"can't read the baseline '{path}': {(error.strerror or str(error)).lower()}") from None
        except ValueError:
            content = None
        try:
            if content["version"] != _VERSION:
                raise UserError(f"'{path}' is a baseline of version {content['version']}, and this reads {_VERSION}")
            return cls(
                collections.Counter({str(each["fingerprint"]): int(each["count"]) for each in content["findings"]})
            )
        except (TypeError, KeyError, ValueError):
            raise UserError(f"'{path}' is no baseline", notes=["--write-baseline writes one"]) from None

    def takes(self, diagnostic: Diagnostic) -> bool:
        """Whether a finding is a known one, each counted once."""
        mark = fingerprint(diagnostic)
        known = self.left[mark] > 0
        self.left[mark] -= known
        return known


@dataclasses.dataclass
class Recorder:
    """Collects the findings of a run for a new baseline, the file `path`."""

    path: str
    findings: list[Diagnostic] = dataclasses.field(default_factory=list[Diagnostic])

    def write(self) -> Diagnostic:
        """Writes the file, its findings in order, and says so. Raises `UserError` where it can't be written."""
        marks = collections.Counter(map(fingerprint, self.findings))
        told = {fingerprint(each): each for each in reversed(self.findings)}
        findings = [_fields(told[mark], mark, marks[mark]) for mark in sorted(marks, key=lambda m: _order(told[m]))]
        text = json.dumps({"version": _VERSION, "findings": findings}, indent=1)
        try:
            Path(self.path).write_text(f"{text}\n", encoding="utf-8")
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UserError(f"can't write the baseline '{self.path}': {reason}") from None
        count = len(self.findings)
        return note(f"{count} finding{'' if count == 1 else 's'} written to {self.path}, which --baseline reads")


def _order(finding: Diagnostic) -> tuple[str, ...]:
    return finding.name, finding.kernel, finding.about, fingerprint(finding)


def _fields(finding: Diagnostic, mark: str, count: int) -> dict[str, Any]:
    """The message is for people who read the file; only the fingerprint and the count matter."""
    return {
        "fingerprint": mark,
        "count": count,
        "name": finding.name,
        "kernel": finding.kernel,
        "message": finding.message,
    }
