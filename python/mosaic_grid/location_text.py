"""The file and the name in a location, also where damaged bytecode left bytes in them that are no UTF-8.

For those the bindings' own accessors end the process: they raise where C++ does not expect it. MLIR's printer escapes
whatever isn't printable ASCII, so the text of a location is always safe to read.
"""

from __future__ import annotations

import re

from jaxlib.mlir import ir

_QUOTED = re.compile(r'loc\("((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|.)")


def file_of(location: ir.FileLineColLoc) -> str:
    """The file's name; U+FFFD stands for what is no UTF-8."""
    shown = str(location)
    return _unescaped(shown) if "\\" in shown else location.filename


def text_of_name(location: ir.NameLoc) -> str:
    """The name; U+FFFD stands for what is no UTF-8."""
    shown = str(location)
    return _unescaped(shown) if "\\" in shown else location.name_str


def _unescaped(shown: str) -> str:
    quoted = _QUOTED.match(shown)
    text = quoted[1] if quoted else ""
    return _ESCAPE.sub(_byte, text.encode()).decode("utf-8", "replace")


def _byte(escape: re.Match[bytes]) -> bytes:
    return bytes.fromhex(escape[1].decode()) if len(escape[1]) == 2 else escape[1]
