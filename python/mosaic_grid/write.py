"""Writing a program out, as text or bytecode, to a file that holds the old program or the new one, never half of it."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import stat
import sys
import tempfile
from typing import Any, BinaryIO

from jaxlib.mlir import ir

from mosaic_grid.errors import Place, UserError

STDOUT = "-"


def write_text(op: ir.Operation, debuginfo: bool = False, generic: bool = False) -> str:
    """MLIR text with a line break at its end; with `debuginfo` the locations too, `generic` in MLIR's own form."""
    text: Any = op.get_asm(enable_debug_info=debuginfo, print_generic_op_form=generic)
    return f"{text.rstrip()}\n"


def write_bytecode(op: ir.Operation) -> bytes:
    """MLIR bytecode of the newest version that jaxlib writes; locations are always in it."""
    buffer = io.BytesIO()
    op.write_bytecode(buffer)
    return buffer.getvalue()


def write_atomically(path: str, data: str | bytes, stdout: BinaryIO | None = None) -> None:
    """Writes `data` (text as UTF-8) to `path`; `-` is standard output.

    A regular file is replaced at once, through a temporary file beside it, and keeps its mode; a symbolic link keeps
    pointing where it did. What is no regular file (a device, a pipe) is written to directly. A name in .gz gets its
    content compressed. Raises `UserError`.
    """
    content = data.encode("utf-8") if isinstance(data, str) else data
    if path.endswith(".gz"):
        content = gzip.compress(content, mtime=0)
    try:
        if path == STDOUT:
            stream = stdout or sys.stdout.buffer
            stream.write(content)
            stream.flush()
            return
        target = os.path.realpath(path)
        mode = _mode(target)
        if mode is not None and not stat.S_ISREG(mode):
            with open(target, "wb") as file:
                file.write(content)
        else:
            _replace(target, content, mode)
    except BrokenPipeError:
        # The reader has what it wanted (`| head`); the command line ends quietly on this.
        raise
    except OSError as error:
        place = Place("<stdout>" if path == STDOUT else path)
        raise UserError(f"can't write the output: {(error.strerror or str(error)).lower()}", place) from None


def _mode(path: str) -> int | None:
    """The mode bits of what is there; `None` for nothing."""
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _replace(path: str, content: bytes, mode: int | None) -> None:
    handle, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)[:100]}.", dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, _default_mode() if mode is None else stat.S_IMODE(mode))
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _default_mode() -> int:
    """What `open` would have given a new file; the mask can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
