"""The two ways in which the tool can fail: the user's input is bad, or we are.

A `UserError` is one clear message with a place to look at; the command line prints it and exits with 2. Everything else
that escapes a pass is an internal failure: the pipeline writes a reproducer and says where it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Place:
    """A position in a text that a person wrote: `line` and `column` count from 1; 0 means unknown."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        parts = [self.file, *(str(n) for n in (self.line, self.column) if n)]
        return ":".join(parts)


class UserError(Exception):
    """Bad input or usage: one message in lower case without a full stop, where it is, and what to do next."""

    def __init__(self, message: str, place: Place | None = None, notes: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.notes = tuple(notes)

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        return "\n".join([f"{where}error: {self.message}", *(f"note: {note}" for note in self.notes)])
