"""What a pass is: one frozen dataclass in one file, whose fields are its command-line options."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, ClassVar, Literal

from jaxlib.mlir import ir

from mosaic_grid.session import Session

Kind = Literal["form", "rewrite", "check", "conversion"]


def option(default: Any, help: str) -> Any:
    """A pass option: a dataclass field with its default and the line that `--help` and docs/passes.md print for it.

    The field `min_share` is the option `min-share`. Types: `bool`, `int`, `str`, `int | None`, `tuple[int, ...]`,
    `tuple[str, ...]` and `Literal` of strings.
    """
    return dataclasses.field(default=default, metadata={"help": help})


@dataclasses.dataclass(frozen=True)
class Pass(abc.ABC):
    """A pass over an unpacked program.

    The class docstring is its documentation: a summary line, then what it does with a before/after example. A check
    emits diagnostics and never changes the program; a rewrite either does all of a change or leaves the program as it
    was and says why.
    """

    name: ClassVar[str]
    kind: ClassVar[Kind]

    @abc.abstractmethod
    def run(self, program: ir.Operation, session: Session) -> None:
        """Works on `program`, a `builtin.module`, in place; its context is current."""
