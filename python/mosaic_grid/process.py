"""A command-line tool as a process: what goes wrong becomes a message and an exit code, and never a traceback."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TextIO, TypeAlias

from mosaic_grid.errors import UserError

INTERRUPTED = 130
"""What a shell says of a command that an interrupt ended."""

Tool: TypeAlias = Callable[[Sequence[str]], int]
"""What a tool does with its arguments; it returns the exit code."""


def run_tool(argv: Sequence[str] | None, tool: Tool) -> int:
    """Runs a tool, by default on the arguments of this process, and returns its exit code.

    0; 1 if the tool found something wrong with a program; 2 for bad input or usage; 70 for an internal failure; 130 if
    it was interrupted.
    """
    if argv is None and "jaxlib" not in sys.modules:
        return _supervised(tool)
    try:
        status = _reported(list(sys.argv[1:] if argv is None else argv), tool)
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


def _supervised(tool: Tool) -> int:
    """The tool in a child process: damaged bytecode may abort MLIR, and that has to become a message.

    The fork comes before anything heavy is imported, and before there is a thread.
    """
    from mosaic_grid.supervisor import supervise

    try:
        return supervise(lambda: run_tool(sys.argv[1:], tool))
    except UserError as error:
        print(error, file=sys.stderr)
        return 2


def _reported(arguments: Sequence[str], tool: Tool) -> int:
    """The exit code, with whatever goes wrong said on standard error."""
    try:
        if sys.stdin is None or sys.stdout is None:
            raise UserError("standard input or output is closed", notes=["use /dev/null"])
        return tool(arguments)
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
