"""Where the programs of a run go: standard output, one file, or a directory with a file for each."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

from mosaic_grid.dump import STDIN_NAME
from mosaic_grid.errors import Place, UserError
from mosaic_grid.split_input import join_output
from mosaic_grid.write import STDOUT, write_atomically


@dataclasses.dataclass(frozen=True)
class Written:
    """A program as it is written, text or bytecode, or its summary. `name` is its input's."""

    name: str
    data: str | bytes
    summary: bool = False

    @property
    def suffix(self) -> str:
        """How the name of its file ends."""
        return ".txt" if self.summary else ".mlir" if isinstance(self.data, str) else ".mlirbc"


def is_folder(output: str) -> bool:
    """Whether a file for each program is wanted: in a directory that is there, or that a slash at the end asks for."""
    return os.path.isdir(output) or output.endswith(os.sep)


def check_output(output: str) -> None:
    """Raises `UserError` for a place where nothing can be written, before any work is done for it."""
    if not output:
        raise UserError("can't write the output '': its name is empty", notes=["give a file, a directory or '-' to -o"])
    if output == STDOUT or is_folder(output):
        return
    folder = os.path.dirname(output) or os.curdir
    if not os.path.isdir(folder):
        raise UserError(f"can't write the output: there is no directory '{folder}'", Place(output), ["make it first"])


def deliver(programs: Sequence[Written], output: str, separator: str) -> None:
    """Writes the programs: each to a file of its own in a directory, else together, separated by `separator` lines.

    A directory that is not there yet is made, and those above it.
    Raises `UserError` where that fails, or for several programs as bytecode that aren't for a directory.
    """
    if is_folder(output):
        _make(output)
        for program, name in zip(programs, file_names(programs), strict=True):
            write_atomically(os.path.join(output, name), program.data)
        return
    texts = [program.data for program in programs if isinstance(program.data, str)]
    if len(programs) > 1 and len(texts) < len(programs):
        raise UserError(
            f"{len(programs)} programs can't be written as one file of bytecode", notes=["give a directory to -o"]
        )
    if programs:
        write_atomically(output, programs[0].data if len(programs) == 1 else join_output(texts, separator))


def _make(folder: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise UserError(f"can't make the directory: {(error.strerror or str(error)).lower()}", Place(folder)) from None


def file_names(programs: Sequence[Written]) -> list[str]:
    """A file name for each program, after its input's; of equal ones all but the first are numbered."""
    names: list[str] = []
    taken: set[str] = set()
    for program in programs:
        base = "stdin" if program.name == STDIN_NAME else os.path.basename(program.name).removesuffix(".gz")
        stem = os.path.splitext(base)[0] or base
        name, count = stem + program.suffix, 0
        while name in taken:
            count += 1
            name = f"{stem}.{count}{program.suffix}"
        taken.add(name)
        names.append(name)
    return names
