"""What a program's kernels are, said to a person: grids, windows, memory, and what a chip's cores do with them.

print(render_plain(summarize(Program(module), parse_target("v5p"))))
"""

from __future__ import annotations

import dataclasses
from typing import Protocol, TextIO

from jaxlib.mlir import ir

from mosaic_grid.dataflow.outer import OuterScalars
from mosaic_grid.program import Program
from mosaic_grid.session import Session
from mosaic_grid.summary.cores import idle_cores_warning
from mosaic_grid.summary.facts import LaunchSummary, Summary
from mosaic_grid.summary.plain import render_plain
from mosaic_grid.summary.read import summarize
from mosaic_grid.summary.terminal import render_rich
from mosaic_grid.targets import Target, parse_target

__all__ = [
    "LaunchSummary",
    "Summary",
    "idle_cores_warning",
    "print_summary",
    "render_plain",
    "render_rich",
    "summarize",
]


ASSUMED_TARGET = "v5p"
"""The chip a summary is for where none is named: the one whose cores can idle."""


class Request(Protocol):
    """What a command line says of a summary."""

    @property
    def target(self) -> Target | None:
        """The chip, `None` where nobody named one."""

    @property
    def kernels(self) -> tuple[str, ...]:
        """Glob patterns of kernel names; none means every kernel."""

    @property
    def contracts(self) -> tuple[str, ...]:
        """What is promised of the program's arguments."""


def print_summary(program: ir.Operation, request: Request, name: str, out: TextIO, err: TextIO | None = None) -> None:
    """Writes the summary of an unpacked program that came from `name`, in colours on a terminal.

    Its warnings go to `err`, or after it to `out` where there is none.

    Raises `ProgramError` for a program whose parts don't fit together.
    """
    target = request.target or parse_target(ASSUMED_TARGET)
    scalars = OuterScalars(program, request.contracts)
    summary = summarize(Program(program), target, Session(target, request.kernels).selects, scalars)
    summary = dataclasses.replace(summary, assumed=request.target is None)
    if out.isatty():
        from rich.console import Console

        render_rich(summary, Console(file=out), name)
    else:
        out.write(render_plain(summary, name))
    warnings = [w for launch in summary.launches if (w := idle_cores_warning(launch, target))]
    out.flush()
    for warning in warnings:
        text = "".join(f"{line}\n" for line in warning.lines())
        if err:
            err.write(text)
        else:
            out.write(f"\n{text}")
