"""`mosaic-opt`: an opt-style tool over dumps of lowered JAX programs.

Start-up is what a user of a command-line tool feels: MLIR is imported only where there is a program to open, and JAX,
isl, rich and libtpu only by what needs them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import TextIO

from mosaic_grid.errors import UserError

INTERRUPTED = 130
"""What a shell says of a command that an interrupt ended."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the tool and returns its exit code.

    0; 1 if an error was diagnosed in a program; 2 for bad input or usage; 70 for an internal failure; 130 if it was
    interrupted.
    """
    if argv is None and "jaxlib" not in sys.modules:
        return _supervised()
    try:
        status = _reported(list(sys.argv[1:] if argv is None else argv))
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except BrokenPipeError:
        # the reader has seen enough, which is no failure
        return 0
    except OSError as error:
        print(f"error: can't write the output: {(error.strerror or str(error)).lower()}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one, from the supervisor, is the same one
        return INTERRUPTED
    finally:
        for stream in (sys.stdout, sys.stderr):
            _drop_unwritable(stream)


def _supervised() -> int:
    """The tool in a child process: damaged bytecode may abort MLIR, and that has to become a message.

    The fork comes before anything heavy is imported, and before there is a thread.
    """
    from mosaic_grid.supervisor import supervise

    try:
        return supervise(lambda: main(sys.argv[1:]))
    except UserError as error:
        print(error, file=sys.stderr)
        return 2


def _reported(arguments: Sequence[str]) -> int:
    """The exit code, with whatever goes wrong said on standard error."""
    try:
        if sys.stdin is None or sys.stdout is None:
            raise UserError("standard input or output is closed", notes=["use /dev/null"])
        return _run(arguments)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError:
        raise
    except Exception as cause:
        from mosaic_grid.reproducer import InternalError
        from mosaic_grid.stages import StageError, raised_at

        failure = cause if isinstance(cause, InternalError) else StageError("the command line", None, cause)
        print(failure, f"note: {raised_at(failure.cause)}", sep="\n", file=sys.stderr)
        return 70


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
    from mosaic_grid import context, driver, rerun

    with context.create_context() as mlir, context.unknown_location():
        if command.run_reproducer:
            command = rerun.run_reproducer(command)
        command = command_line.with_default_task(command, sys.stdout.isatty())
        return driver.Driver(command, mlir, sys.stdout, sys.stderr).run()


def _drop_unwritable(stream: TextIO | None) -> None:
    """Sends what a stream still holds nowhere if it can't be written: the interpreter would complain at exit."""
    if stream is None:
        return
    try:
        stream.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
