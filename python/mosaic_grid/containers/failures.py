"""MLIR's complaints about a user's dump, as `UserError`s that point into the dump."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from jaxlib.mlir import ir

from mosaic_grid.diagnostics import place_of
from mosaic_grid.errors import Place, UserError

CLOSED_DIALECTS = frozenset({"llo", "mlo", "mosaic_sc", "mosaic_tc", "sc_tpu"})
"""Dialects inside libtpu whose ops are printed in a syntax of their own: no parser for it is public."""

_NO_DIALECT = re.compile(r"Dialect `(\w+)' not found for custom op '([\w.$]+)'")
_CLOSED_OP = re.compile(rf'(?<![#!\w.])"?({"|".join(sorted(CLOSED_DIALECTS))})\.\w+')
_NOT_UTF8 = ("nanobind::str(): conversion error", "str_from_cstr_and_size(): conversion error")
_NO_FILE = ("-", "")
_LINES = 8
_TRUNCATED = "the input may be truncated: nothing follows"


class ClosedDialectError(UserError):
    """A dump that nobody outside libtpu can parse."""


@contextlib.contextmanager
def readable_strings(name: str) -> Iterator[None]:
    """Around anything that reads names and strings of a stranger's program: turns MLIR's bindings' failure into ours.

    MLIR's strings are bytes, and damaged bytecode may hold any; the bindings raise a bare `RuntimeError` for what is no
    UTF-8, as they do, with the first in its text, for one that escapes a walk.
    """
    try:
        yield
    except RuntimeError as error:
        if not any(words in str(error) for words in _NOT_UTF8):
            raise
        raise UserError(
            "a name or string in this program is not UTF-8 text: the dump is damaged", Place(name)
        ) from None


def place(location: ir.Location, name: str) -> Place:
    """Where `location` points; MLIR's stand-ins for an unnamed buffer become `name`."""
    with location.context:
        found = place_of(location)
    if found is None:
        return Place(name)
    return found if found.file not in _NO_FILE else Place(name, found.line, found.column)


def of_dump(error: UserError, name: str) -> UserError:
    """The error, in the dump `name`: of what is wrong with a dump, the source it names is not to blame."""
    if error.place is None or error.place.file == name:
        return error
    return UserError(error.message, Place(name), (f"the op came from {error.place}", *error.notes))


def user_error(error: ir.MLIRError, name: str, prefix: str = "", text: str = "") -> UserError:
    """The first thing MLIR said, located in the dump `name`, whose text is `text`; `prefix` says what failed."""
    if not error.error_diagnostics:
        return UserError(": ".join(filter(None, [prefix, str(error).strip()])), Place(name))
    first = error.error_diagnostics[0]
    where = place(first.location, name)
    if where.file != name and not text:
        where = Place(name)  # damaged bytecode may name anything
    message, *rest = first.message.strip().splitlines()
    if unknown := _NO_DIALECT.match(message):
        return _closed(unknown[1], where) if unknown[1] in CLOSED_DIALECTS else _unknown(unknown[2], unknown[1], where)
    if closed := _CLOSED_OP.search(text):
        # Printed in generic form it parses, but the rules for ops that hold it can't be met.
        return _closed(closed[1], where)
    # A message or a note may print the whole op it is about: the first lines tell which it is.
    notes = [_beginning(rest)] if rest else []
    notes += [_beginning(note.message.strip().splitlines()) for note in first.notes if not rest]
    notes += [_TRUNCATED] if _is_at_the_end(where, name, text) else []
    return of_dump(UserError(": ".join(filter(None, [prefix, message])), where, notes), name)


def _is_at_the_end(where: Place, name: str, text: str) -> bool:
    """Whether nothing follows a place in `text`, or only the rest of a last line that is not ended."""
    if where.file != name or not where.line:
        return False
    lines = text.rstrip().split("\n")
    rest = "\n".join(lines[where.line - 1 :])[max(where.column - 1, 0) :]
    return "\n" not in rest and (not rest or text[-1:] not in ("\n", "}"))


def _beginning(lines: list[str]) -> str:
    return "\n".join([*lines[:_LINES], *(["..."] if len(lines) > _LINES else [])])


def _closed(dialect: str, where: Place) -> UserError:
    message = (
        f"this is a libtpu stage dump in the dialect '{dialect}', which is not open: "
        "take one of an earlier stage, before 'relayout' and 'lower-to'"
    )
    return ClosedDialectError(message, where)


def _unknown(op: str, dialect: str, where: Place) -> UserError:
    message = (
        f"'{op}' is of the dialect '{dialect}', which is not known here, and is printed in its own syntax: "
        "print the dump with --mlir-print-op-generic"
    )
    return UserError(message, where)
