"""What can go wrong in the tool outside of a pass: it is said where, and the program is left in a reproducer."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator
from pathlib import Path

from jaxlib.mlir import ir

from mosaic_grid.errors import UserError
from mosaic_grid.reproducer import InternalError, Reproducer, summary, write_reproducer


class StageError(InternalError):
    """An internal failure outside of any pass; `pass_name` is the stage in words."""

    @property
    def where(self) -> str:
        """The stage that failed."""
        return self.pass_name


@contextlib.contextmanager
def stage(
    name: str, program: ir.Operation | None = None, pipeline: str = "builtin.module()", flags: tuple[str, ...] = ()
) -> Iterator[None]:
    """Around a part of the tool's work: whatever escapes it that is not the user's doing becomes a `StageError`.

    The program, as the failure leaves it, goes into a reproducer in the current directory; `pipeline` and `flags` make
    the tool do again what failed.
    """
    try:
        yield
    except (UserError, InternalError, OSError):  # an OSError is the machine's doing
        raise
    except Exception as cause:
        if program is None:
            raise StageError(name, None, cause, "there is no program yet, the input itself will do") from cause
        try:
            text = str(program.get_asm(enable_debug_info=True))
            reproducer = Reproducer(text, pipeline, flags)
            path = write_reproducer(reproducer, f"{name} failed: {summary(cause)}", Path())
        except Exception as problem:
            raise StageError(name, None, cause, summary(problem)) from cause
        raise StageError(name, path, cause) from cause


def raised_at(cause: BaseException) -> str:
    """Where in our sources an exception comes from, for whoever reads the report."""
    frames = traceback.extract_tb(cause.__traceback__)
    return f"raised in {frames[-1].name}, {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
