"""`mosaic-run`: runs a dump of a lowered JAX program on the CPU."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from mosaic_grid.process import run_tool


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the tool and returns its exit code.

    0; 1 if results differ or an error was diagnosed in a program; 2 for bad input or usage; 70 for an internal failure;
    130 if it was interrupted.
    """
    return run_tool(argv, lambda arguments: _run(arguments))


def _run(arguments: Sequence[str]) -> int:
    if "--version" in arguments or "-version" in arguments:
        from mosaic_grid.versions import versions

        print(versions())
        return 0
    from mosaic_grid.runner import command_line, flags

    command = command_line.parse_command_line(arguments)
    if command.help:
        sys.stdout.write(flags.parser().format_help())
        return 0
    from mosaic_grid import context
    from mosaic_grid.runner import job

    with context.create_context() as mlir, context.unknown_location():
        return job.Job(command, mlir, sys.stdout, sys.stderr).run()


if __name__ == "__main__":
    sys.exit(main())
