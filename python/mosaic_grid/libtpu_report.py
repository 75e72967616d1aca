"""What the real compiler said of a program: a report per launch, as a line and as JSON."""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Iterable
from typing import Any

from mosaic_grid.diagnostics import Diagnostic
from mosaic_grid.targets import Target

SCHEMA_VERSION = 1


class Status(enum.Enum):
    """How a launch fared; the value is what JSON says.

    `REMOVED`: XLA dropped the launch before it came to it. `SKIPPED`: the compiler stopped at another launch.
    """

    COMPILES = "compiles"
    FAILS = "fails"
    REMOVED = "removed"
    SKIPPED = "skipped"


@dataclasses.dataclass(frozen=True)
class LaunchReport:
    """One launch on one target, or a program that launches nothing (`kernel` is empty then).

    `launch` is the index of the launch in the program, in textual order. A launch in a function that is called twice
    is two instructions and has two reports. `cores_used` is None where it was not compiled, runs on the SparseCores,
    or the dump doesn't say; so is `bundles`, the length of the schedule in VLIW bundles, and `step_bundles`, what of it
    is one step of the grid (see `llo_step`). `diagnostic` says why it doesn't compile; `remark` is what else there is
    to say. `branch` is the branch of the program that it is in, in words, as `branch 0 of 2`: one that is chosen at run
    time, by a `stablehlo.case` or `stablehlo.if`.
    """

    target: Target
    status: Status
    kernel: str = ""
    launch: int = 0
    instruction: str = ""
    cores_used: int | None = None
    bundles: int | None = None
    step_bundles: int | None = None
    diagnostic: Diagnostic | None = None
    remark: str = ""
    branch: str = ""

    @property
    def failed(self) -> bool:
        """Whether this launch is a reason why the program doesn't compile."""
        return self.status is Status.FAILS


@dataclasses.dataclass(frozen=True)
class ProgramReport:
    """A program on one target. `hlo` is the optimized HLO text, empty where it doesn't compile.

    `code_bytes` is the size of all code of the program; the dump gives no size for a single launch. `log` is the end of
    what libtpu printed.
    """

    target: Target
    launches: tuple[LaunchReport, ...]
    hlo: str = ""
    code_bytes: int | None = None
    log: str = ""

    @property
    def failed(self) -> bool:
        """Whether the program doesn't compile."""
        return any(launch.failed for launch in self.launches)


def report_line(report: LaunchReport) -> str:
    """`double: v5p: compiles, cores used: 2 of 2, 121 bundles`, or why not.

    A launch in a branch that is chosen at run time says at the end which one it is: `(branch 0 of 2)`.
    """
    if not report.kernel:
        return _programs_line(report)
    branch = f" ({report.branch})" if report.branch else ""
    return f"{report.kernel}: {report.target}: {_verdict(report)}{branch}"


def report_json(reports: Iterable[ProgramReport]) -> str:
    """A JSON document, the same text for the same reports.

    `{"version": 1, "programs": [...]}`, a program per target with `target`, `compiles`, `code_bytes`, `error` (the
    first one) and `launches`. A launch has `kernel`, `launch`, `branch` (in words, null outside of branches that are
    chosen at run time), `instruction`, `status` (see `Status`), `cores_used`, `cores`, `bundles`, `step_bundles`,
    `remark` and `error`. An error is `message`, `file`, `line`, `column` and `notes`. What is not known or not there is
    null.
    """
    document = {"version": SCHEMA_VERSION, "programs": [_program(report) for report in reports]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _programs_line(report: LaunchReport) -> str:
    verdict = _verdict(report) if report.failed else "compiles, launches no kernel"
    return f"{report.target}: {verdict}"


def _verdict(report: LaunchReport) -> str:
    match report.status:
        case Status.FAILS:
            reason = report.diagnostic.message if report.diagnostic else "no reason given"
            return f"does not compile: {reason}"
        case Status.REMOVED | Status.SKIPPED:
            return f"not compiled: {report.remark}"
        case Status.COMPILES:
            return ", ".join(["compiles", *_measures(report)])


def _measures(report: LaunchReport) -> Iterable[str]:
    if report.cores_used is not None:
        yield f"cores used: {report.cores_used} of {report.target.cores}"
    elif report.remark:
        yield report.remark
    if report.bundles is not None:
        yield f"{report.bundles} bundles"


def _program(report: ProgramReport) -> dict[str, Any]:
    return {
        "target": report.target.name,
        "compiles": not report.failed,
        "code_bytes": report.code_bytes,
        "launches": [_launch(launch) for launch in report.launches if launch.kernel],
        "error": next((_error(launch.diagnostic) for launch in report.launches if launch.failed), None),
    }


def _launch(report: LaunchReport) -> dict[str, Any]:
    return {
        "kernel": report.kernel,
        "launch": report.launch,
        "branch": report.branch or None,
        "instruction": report.instruction or None,
        "status": report.status.value,
        "cores_used": report.cores_used,
        "cores": report.target.cores,
        "bundles": report.bundles,
        "step_bundles": report.step_bundles,
        "remark": report.remark or None,
        "error": _error(report.diagnostic),
    }


def _error(diagnostic: Diagnostic | None) -> dict[str, Any] | None:
    if diagnostic is None:
        return None
    place = diagnostic.place
    return {
        "message": diagnostic.message,
        "file": place.file if place else None,
        "line": place.line or None if place else None,
        "column": place.column or None if place else None,
        "notes": [note.message for note in diagnostic.notes],
    }
