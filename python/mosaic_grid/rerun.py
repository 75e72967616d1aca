"""`--run-reproducer`: the run that a reproducer file records, again."""

from __future__ import annotations

import dataclasses

from mosaic_grid.command_line import CommandLine, parse_command_line
from mosaic_grid.driver import text_of
from mosaic_grid.dump import name_of
from mosaic_grid.errors import UserError
from mosaic_grid.reproducer import read_reproducer


def run_reproducer(command: CommandLine) -> CommandLine:
    """The command line that a reproducer file records, its pipeline and flags in the place of the given ones.

    Raises `UserError` for a file that is no reproducer.
    """
    if len(command.inputs) != 1:
        raise UserError("--run-reproducer takes one file", notes=["the one that an internal failure has written"])
    if command.pipeline is not None:
        raise UserError("--run-reproducer runs the passes that the file records", notes=["leave out -p"])
    (path,) = command.inputs
    found = read_reproducer(text_of(path), name_of(path))
    verify = f"--verify-each={'true' if found.verify else 'false'}"
    recorded = parse_command_line([f"--pass-pipeline={found.pipeline}", verify, *found.flags])
    # what the program holds was allowed when it failed
    return dataclasses.replace(
        command,
        pipeline=recorded.pipeline,
        target=recorded.target,
        kernels=recorded.kernels,
        contracts=recorded.contracts,
        summary=command.summary or recorded.summary,
        verify_each=recorded.verify_each,
        allow_unregistered=True,
    )
