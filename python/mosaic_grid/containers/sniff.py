"""What a dump is, from its bytes alone."""

from __future__ import annotations

import enum
import re

from mosaic_grid.containers import bytecode, exported
from mosaic_grid.errors import Place, UserError

ACCEPTED = (
    "accepted are MLIR text and bytecode, StableHLO portable artifacts, serialized jax.export artifacts, HLO text, "
    "and any of these in gzip"
)

GZIP_MAGIC = b"\x1f\x8b"

_BYTE_ORDER_MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}

_FOREIGN_MAGIC = {
    b"PK\x03\x04": "a zip archive",
    b"\x28\xb5\x2f\xfd": "zstd-compressed data",
    b"\xfd7zXZ\0": "xz-compressed data",
    b"BZh": "bzip2-compressed data",
    b"\x7fELF": "an ELF binary",
    b"\x89PNG": "a PNG image",
    b"%PDF": "a PDF document",
    b"\x93NUMPY": "a NumPy array",
    b"\x89HDF": "an HDF5 file",
    b"\x80\x04": "a Python pickle",
    b"\x80\x05": "a Python pickle",
}

_BLANK = re.compile(r"(?:\s++|//[^\n]*+)*+")
_MLIR_START = re.compile(r'module\b|builtin\.module\b|"|\{-#|[#!@%^][\w"]|[A-Za-z_]\w*\.[A-Za-z_]')


class Kind(enum.Enum):
    """What a dump was; the value is how messages name it."""

    TEXT = "MLIR text"
    BYTECODE = "MLIR bytecode"
    PORTABLE = "StableHLO portable artifact"
    EXPORTED = "serialized jax.export artifact"
    HLO = "HLO text"


class NotADumpError(UserError):
    """Input that is none of the kinds."""


def recognise(data: bytes, name: str) -> Kind:
    """The kind of `data`, which is not compressed any more.

    Raises `NotADumpError` for anything else, saying what it looks like.
    """
    if not data:
        raise NotADumpError("the input is empty", Place(name), (ACCEPTED,))
    if data.startswith(bytecode.MAGIC):
        return Kind.PORTABLE if bytecode.is_portable(data) else Kind.BYTECODE
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if data.startswith(mark):
            raise NotADumpError(f"this is {encoding} text: convert it to UTF-8", Place(name))
    for magic, what in _FOREIGN_MAGIC.items():
        if data.startswith(magic):
            raise NotADumpError(f"this looks like {what}, not like a dump of a program", Place(name), (ACCEPTED,))
    if exported.is_exported(data):
        return Kind.EXPORTED
    if b"\0" in data[:4096]:
        raise NotADumpError("this is binary data of an unknown kind, or damaged", Place(name), (ACCEPTED,))
    return _recognise_text(data, name)


def decode(data: bytes, name: str) -> str:
    """UTF-8 text without a byte order mark. Raises `UserError` at the first bad byte."""
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        message = f"byte 0x{data[error.start]:02x} is not UTF-8 text: the input is damaged, or in another encoding"
        raise NotADumpError(message, Place(name, line, column), (ACCEPTED,)) from None


def _recognise_text(data: bytes, name: str) -> Kind:
    text = decode(data, name)
    if not text.strip():
        raise NotADumpError("the input is blank", Place(name), (ACCEPTED,))
    start = _after_blank(text)
    if text.startswith("HloModule", start):
        return Kind.HLO
    if start == len(text) or _MLIR_START.match(text, start):
        return Kind.TEXT
    begins = text[start : start + 40].split("\n", 1)[0].strip()
    line = text.count("\n", 0, start) + 1
    message = f"this is text, but neither MLIR nor HLO: it begins with {begins!r}"
    raise NotADumpError(message, Place(name, line, start - text.rfind("\n", 0, start)), (ACCEPTED,))


def _after_blank(text: str) -> int:
    """Where the first thing that is no white space and no comment stands."""
    match = _BLANK.match(text)
    return match.end() if match else 0
