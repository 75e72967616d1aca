"""`mosaic-opt`: an opt-style tool over dumps of lowered JAX programs.

Start-up is what a user of a command-line tool feels: MLIR is imported only where there is a program to open, and JAX,
isl, rich and libtpu only by what needs them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from mosaic_grid.errors import UserError


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the tool and returns its exit code: 0, 1 if an error was diagnosed, 2 for bad input or usage."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(arguments)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:
        # the reader has seen enough: leave nothing for the interpreter to complain about at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


def _run(arguments: Sequence[str]) -> int:
    if "--version" in arguments:
        from mosaic_grid.versions import versions

        print(versions())
        return 0
    from mosaic_grid import command_line
    from mosaic_grid.reproducer import InternalError

    if command_line.wants_help(arguments):
        raise UserError("there is nothing to open", notes=["give a dump, or --help"])
    command = command_line.parse_command_line(arguments)
    if command.list_passes:
        print(list_passes())
        return 0
    from mosaic_grid import context, driver

    try:
        with context.create_context() as mlir, context.unknown_location():
            if command.run_reproducer:
                command = driver.run_reproducer(command)
            command = command_line.with_default_task(command, sys.stdout.isatty())
            return driver.Driver(command, mlir, sys.stdout, sys.stderr).run()
    except InternalError as error:
        print(error, file=sys.stderr)
        return 70


def list_passes() -> str:
    """Every pass with its summary; MLIR's own by name."""
    from mosaic_grid.native_passes import NATIVE_PASSES
    from mosaic_grid.passes import PASSES

    ours = [f"{name:20}{(cls.__doc__ or '').splitlines()[0]}" for name, cls in PASSES.items()]
    return "\n".join([*ours, "", "MLIR's own:", *(f"  {name}" for name in NATIVE_PASSES)])


if __name__ == "__main__":
    sys.exit(main())
