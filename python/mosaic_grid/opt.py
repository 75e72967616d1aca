"""`mosaic-opt`: an opt-style tool over dumps of lowered JAX programs.

Start-up is what a user of a command-line tool feels: MLIR is imported only where there is a program to open, and JAX,
isl, rich and libtpu only by what needs them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from mosaic_grid.errors import UserError
from mosaic_grid.process import run_tool


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the tool and returns its exit code.

    0; 1 if an error was diagnosed in a program; 2 for bad input or usage; 70 for an internal failure; 130 if it was
    interrupted.
    """
    return run_tool(argv, lambda arguments: _run(arguments))


def _run(arguments: Sequence[str]) -> int:
    if "--version" in arguments or "-version" in arguments:
        from mosaic_grid.versions import versions

        print(versions())
        return 0
    from mosaic_grid import command_line, flags

    if command_line.wants_help(arguments):
        raise UserError("there is nothing to open", notes=["give a dump, or --help"])
    command = command_line.parse_command_line(arguments)
    if command.help or command.list_passes:
        sys.stdout.write(flags.parser().format_help() if command.help else flags.list_passes())
        return 0
    if command.explain is not None:
        from mosaic_grid.explain import explain

        sys.stdout.write(explain(command.explain))
        return 0
    from mosaic_grid import context, driver, rerun

    with context.create_context() as mlir, context.unknown_location():
        if command.run_reproducer:
            command = rerun.run_reproducer(command)
        command = command_line.with_default_task(command, sys.stdout.isatty())
        return driver.Driver(command, mlir, sys.stdout, sys.stderr).run()


if __name__ == "__main__":
    sys.exit(main())
