"""`--split-input-file`: several small inputs in one text, apart by a line of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mosaic_grid.errors import UserError

SEPARATOR = "// -----"
"""MLIR's split marker."""


def split_input(text: str, separator: str = SEPARATOR) -> list[str]:
    """The chunks between the lines that hold the separator and nothing else but white space.

    Each chunk begins with as many empty lines as precede it, so that places in it are places in the whole text. Raises
    `UserError` for an empty separator.
    """
    marker = separator.strip()
    if not marker:
        raise UserError("the separator of --split-input-file is empty", notes=[f"leave it out for '{SEPARATOR}'"])
    chunks, end = [], 0
    for line in re.finditer(rf"^[^\S\n]*{re.escape(marker)}[^\S\n]*(?:\n|\Z)", text, re.MULTILINE):
        chunks.append(_padded(text, end, line.start()))
        end = line.end()
    return [*chunks, _padded(text, end, len(text))]


def join_output(outputs: Sequence[str], separator: str = SEPARATOR) -> str:
    """The outputs of the chunks, in their order, apart by separator lines."""
    ended = (output if output.endswith("\n") or not output else f"{output}\n" for output in outputs)
    return f"{separator}\n".join(ended)


def _padded(text: str, start: int, end: int) -> str:
    return "\n" * text.count("\n", 0, start) + text[start:end]
