"""Diagnostics as a SARIF 2.1.0 log, the format that code scanning services and editors read.

The standard is OASIS's "Static Analysis Results Interchange Format (SARIF) Version 2.1.0"; section numbers are its.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mosaic_grid.baseline import fingerprint
from mosaic_grid.catalogue import CATALOGUE, Entry
from mosaic_grid.diagnostics import Diagnostic, Severity
from mosaic_grid.errors import Place
from mosaic_grid.reports import Report

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
VERSION = "2.1.0"
FINGERPRINT = "mosaicGrid/v1"

# 3.27.10: a remark is neither a warning nor a note of one
_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.REMARK: "note",
    Severity.NOTE: "note",
}


def sarif_log(reports: Iterable[Report], failures: Iterable[Diagnostic], version: str, status: int) -> dict[str, Any]:
    """The log of one run of the tool.

    `failures` are what kept it from its work, such as an input that can't be read, and `status` is its exit code.
    """
    seen: collections.Counter[str] = collections.Counter()
    notifications = [_notification(each) for each in failures]
    invocation: dict[str, Any] = {"executionSuccessful": not notifications, "exitCode": status}
    if notifications:
        invocation["toolExecutionNotifications"] = notifications
    driver = {
        "name": "mosaic-opt",
        "version": version,
        "rules": [_rule(entry) for entry in CATALOGUE.values()],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "columnKind": "unicodeCodePoints",
        "results": [_result(report, seen) for report in reports],
    }
    return {"$schema": SCHEMA, "version": VERSION, "runs": [run]}


def _rule(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.name,
        "shortDescription": {"text": entry.summary},
        "fullDescription": {"text": entry.explanation},
        "help": {"text": entry.text()},
        "defaultConfiguration": {"level": _LEVELS[entry.severity]},
    }


def _result(report: Report, seen: collections.Counter[str]) -> dict[str, Any]:
    diagnostic = report.diagnostic
    result: dict[str, Any] = {
        "level": _LEVELS[diagnostic.severity],
        "message": {"text": _message(diagnostic)},
    }
    if diagnostic.name:
        result["ruleId"] = diagnostic.name
        result["ruleIndex"] = list(CATALOGUE).index(diagnostic.name)
        mark = fingerprint(diagnostic)
        seen[mark] += 1
        result["partialFingerprints"] = {FINGERPRINT: f"{mark}:{seen[mark]}"}
    location = _location(diagnostic.place or Place(report.program))
    if diagnostic.kernel:
        location["logicalLocations"] = [{"name": diagnostic.kernel, "kind": "function"}]
    result["locations"] = [location]
    placed = [note for note in diagnostic.notes if note.place]
    if placed:
        related = (
            {"id": k, **_location(note.place), "message": {"text": note.message}} for k, note in enumerate(placed, 1)
        )
        result["relatedLocations"] = list(related)
    result["properties"] = {"program": report.program}
    return result


def _message(diagnostic: Diagnostic) -> str:
    """The message and those notes that have no place to go to, as sentences."""
    parts = [diagnostic.message, *(note.message for note in diagnostic.notes if not note.place)]
    return ". ".join(part[:1].upper() + part[1:] for part in parts) + "."


def _location(place: Place | None) -> dict[str, Any]:
    if place is None:
        return {}
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(place.file)}}
    if place.line:
        region = {"startLine": place.line}
        if place.column:
            region["startColumn"] = place.column
        physical["region"] = region
    return {"physicalLocation": physical}


def _uri(file: str) -> str:
    """3.4.3: a URI, absolute for an absolute path, else a relative reference."""
    path = Path(file)
    if path.is_absolute():
        return path.as_uri()
    from urllib.parse import quote

    return quote(path.as_posix())


def _notification(failure: Diagnostic) -> dict[str, Any]:
    told: dict[str, Any] = {"level": "error", "message": {"text": _message(failure)}}
    if failure.place:
        told["locations"] = [_location(failure.place)]
    return told
