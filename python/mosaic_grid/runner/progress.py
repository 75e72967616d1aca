"""What a long run is at: one line on a terminal, and nothing anywhere else."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TextIO, TypeAlias

_CLEAR = "\r\x1b[K"

Tell: TypeAlias = Callable[[str], None]
"""Is called with what begins now, in a few words."""


def silent(_: str) -> None:
    """Tells nobody."""


@contextlib.contextmanager
def shown(err: TextIO) -> Iterator[Tell]:
    """Shows what it is told as a line of `err` if that is a terminal; nothing of it is left in the end."""
    if not err.isatty():
        yield silent
        return
    try:
        yield lambda text: print(f"{_CLEAR}{text} ...", end="", file=err, flush=True)
    finally:
        print(_CLEAR, end="", file=err, flush=True)
