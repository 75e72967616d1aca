"""What an internal failure leaves behind: the program before the failing pass and the passes left to run.

The file is MLIR text that ends with MLIR's own record of a reproducer, the external resource `mlir_reproducer`, and one
of ours for the command-line flags. MLIR's parser skips both.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

from jaxlib.mlir import ir

from mosaic_grid.errors import UserError

_PREFIX = "mosaic-opt-reproducer-"
_STRING = r'"(?:[^"\\\n]|\\.)*"'
_RECORD = re.compile(
    rf"""\{{-\#\s*external_resources:\s*\{{\s*
         mlir_reproducer:\s*\{{\s*
           pipeline:\s*(?P<pipeline>{_STRING}),\s*
           disable_threading:\s*(?:true|false),\s*
           verify_each:\s*(?P<verify>true|false)\s*\}}
         (?:,\s*mosaic_opt:\s*\{{\s*flags:\s*(?P<flags>{_STRING})\s*\}})?
         \s*\}}\s*\#-\}}\s*\Z""",
    re.VERBOSE,
)


class InternalError(Exception):
    """A pass of ours, or another part of the tool, failed in a way that is not the user's doing.

    `reproducer` is the file that reruns it, `None` where none could be written, in which case `unwritten` says why.
    """

    def __init__(self, pass_name: str, reproducer: Path | None, cause: BaseException, unwritten: str = "") -> None:
        """The exception's arguments are its fields."""
        super().__init__(pass_name, reproducer, cause, unwritten)
        self.pass_name = pass_name
        self.reproducer = reproducer
        self.cause = cause
        self.unwritten = unwritten

    @property
    def where(self) -> str:
        """What failed."""
        return f"the pass '{self.pass_name}'"

    def __str__(self) -> str:
        """The error and what to do with the reproducer, a line each."""
        lines = [f"error: internal failure in {self.where}: {summary(self.cause)}"]
        if self.reproducer:
            rerun = f"mosaic-opt --run-reproducer {shlex.quote(str(self.reproducer))}"
            lines.append(f"note: this is a bug in mosaic-opt; '{rerun}' reproduces it, please report it with that file")
        else:
            lines.append(f"note: this is a bug in mosaic-opt; its reproducer could not be written: {self.unwritten}")
        return "\n".join(lines)


@dataclasses.dataclass(frozen=True)
class Reproducer:
    """A failing run: MLIR text (a header and records included), the pipeline left to run, and flags of the tool."""

    program: str
    pipeline: str
    flags: tuple[str, ...] = ()
    verify: bool = True


def summary(cause: BaseException) -> str:
    """The exception in one line: its type and the first line of what it says."""
    first = next((line.strip() for line in str(cause).splitlines() if line.strip()), "")
    return f"{type(cause).__name__}: {first}" if first else type(cause).__name__


def format_reproducer(reproducer: Reproducer, failure: str) -> str:
    """The text of a reproducer file; `failure` is a line about what went wrong, for the reader."""
    header = " ".join(failure.split())
    return f"""\
// {header}
// rerun with: mosaic-opt --run-reproducer FILE
{reproducer.program.rstrip()}

{{-#
  external_resources: {{
    mlir_reproducer: {{
      pipeline: {_quote(reproducer.pipeline)},
      disable_threading: false,
      verify_each: {"true" if reproducer.verify else "false"}
    }},
    mosaic_opt: {{
      flags: {_quote(shlex.join(reproducer.flags))}
    }}
  }}
#-}}
"""


def read_reproducer(text: str, source_name: str) -> Reproducer:
    """What a reproducer file says; one that `mlir-opt` wrote has no flags.

    Raises `UserError` when the text does not end with the record of a reproducer.
    """
    record = _RECORD.search(text, max(text.rfind("{-#"), 0))
    if not record:
        raise UserError(
            f"{source_name} is not a reproducer: it does not end with an 'mlir_reproducer' record",
            notes=["give the file that an internal failure has written"],
        )
    flags = shlex.split(_unquote(record["flags"])) if record["flags"] else []
    return Reproducer(text[: record.start()], _unquote(record["pipeline"]), tuple(flags), record["verify"] == "true")


def write_reproducer(reproducer: Reproducer, failure: str, directory: Path) -> Path:
    """Writes the reproducer to a new file `mosaic-opt-reproducer-*.mlir` in `directory` and returns its path.

    The file appears with its whole content, under a name that nothing else had. Raises `OSError`.
    """
    text = format_reproducer(reproducer, failure)
    # mkstemp makes the file, which reserves the name; replacing it is the atomic step.
    handle, name = tempfile.mkstemp(".mlir", _PREFIX, directory)
    os.close(handle)
    written = Path(name + ".tmp")
    try:
        written.write_text(text, encoding="utf-8")
        written.replace(name)
    except OSError:
        written.unlink(missing_ok=True)
        Path(name).unlink()
        raise
    return Path(name)


def flags_of(target: object | None, kernels: Sequence[str], contracts: Sequence[str] = ()) -> tuple[str, ...]:
    """The command-line flags that make a session of this target, these kernel patterns and contracts."""
    chosen = [f"--kernel={kernel}" for kernel in kernels]
    return (*([f"--target={target}"] if target else []), *chosen, *(f"--contracts={text}" for text in contracts))


def _quote(text: str) -> str:
    with ir.Context():
        return str(ir.StringAttr.get(text))


def _unquote(text: str) -> str:
    with ir.Context():
        return ir.StringAttr(ir.Attribute.parse(text)).value
