"""A pass as text and back: `name{option=value flag list=1,2,3}`, MLIR's syntax over the fields of a frozen dataclass.

A value that holds spaces, commas, quotes or braces stands between double quotes, in which a backslash keeps the next
character as it is. Between single quotes everything is kept as it is.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import typing
from collections.abc import Callable, Iterable
from typing import Any, Literal

from mosaic_grid.errors import Place, UserError
from mosaic_grid.passbase import Pass

Locate = Callable[[int], Place]

_OPTION = re.compile(r"""([^\s="']+)(=((?:"(?:\\.|[^"\\])*"|'[^']*'|[^\s"'])*))?(?=\s|$)""", re.DOTALL)
_ELEMENT = re.compile(r"""(?:"(?:\\.|[^"\\])*"|'[^']*'|[^,"'])*""", re.DOTALL)
_QUOTED_OR_BARE = re.compile(r"""("(?:\\.|[^"\\])*")|('[^']*')|([^"']+)""", re.DOTALL)
_NEEDS_NO_QUOTES = re.compile(r"[\w./:+*?@%#!^~|<>\[\]-]+", re.ASCII)
_INTEGER = re.compile(r"[+-]?[0-9]+")
_BOOLS = {"true": True, "1": True, "false": False, "0": False}


@dataclasses.dataclass(frozen=True)
class _Codec:
    """One option type: what it expects in words, text to value (`ValueError` on a bad one), and value to text."""

    expects: str
    read: Callable[[str], Any]
    write: Callable[[Any], str]


def pass_to_text(p: Pass) -> str:
    """The pass with the options that differ from their defaults; parsing the result gives an equal pass."""
    options = options_to_text(p)
    return f"{p.name}{{{options}}}" if options else p.name


def options_to_text(p: Pass) -> str:
    """The options that differ from their defaults, in the order of declaration: `cores=2 names=a,b`."""
    hints = typing.get_type_hints(type(p))
    return " ".join(
        f"{_option_name(field.name)}={_codec(hints[field.name]).write(value)}"
        for field in dataclasses.fields(p)
        if (value := getattr(p, field.name)) != field.default
    )


def parse_options(kind: type[Pass], text: str, locate: Locate) -> Pass:
    """The pass of this kind with the options in `text`, the part between the braces.

    `locate` gives the place of an offset in `text`. A bare name sets a `bool` option. Raises `UserError` on an unknown
    or repeated option, on a value that is not of the option's type, and on what the pass itself refuses: a pass may
    check its options in `__post_init__` and raise `ValueError(message)`.
    """
    fields = {_option_name(field.name): field for field in dataclasses.fields(kind)}
    hints = typing.get_type_hints(kind)
    values: dict[str, Any] = {}
    for start, name, value in _options(kind, text, locate):
        if name not in fields:
            raise UserError(
                f"pass '{kind.name}' has no option '{name}'{nearest(name, fields)}",
                locate(start),
                [f"its options are {', '.join(fields)}" if fields else "it has no options"],
            )
        field = fields[name]
        if field.name in values:
            raise UserError(f"option '{name}' of pass '{kind.name}' is given twice", locate(start))
        values[field.name] = _value(kind, field, hints[field.name], value, locate(start))
    try:
        return kind(**values)
    except ValueError as refusal:
        raise UserError(f"pass '{kind.name}': {refusal}", locate(0)) from refusal


def option_type(kind: type[Pass], field: dataclasses.Field[Any]) -> str:
    """What the option expects in words, for `--help` and the documentation: `an integer`, `one of 'a', 'b'`."""
    return _expects(field, _codec(typing.get_type_hints(kind)[field.name]))


def nearest(word: str, words: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the known word most like this one, or nothing where none is alike."""
    matches = difflib.get_close_matches(word, list(words), n=1)
    return f"; did you mean '{matches[0]}'?" if matches else ""


def _option_name(field_name: str) -> str:
    return field_name.replace("_", "-")


def _options(kind: type[Pass], text: str, locate: Locate) -> Iterable[tuple[int, str, str | None]]:
    """Offset, name and value of each option as written; a bare name has no value."""
    position = 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        match = _OPTION.match(text, position)
        if not match:
            bad = text[position:].split()[0]
            raise UserError(
                f"expected an option of pass '{kind.name}' as name=value, got '{bad}'",
                locate(position),
                ['a value with spaces or quotes in it stands between double quotes: name="a b"'],
            )
        yield position, match[1], match[3] if match[2] else None
        position = match.end()


def _value(kind: type[Pass], field: dataclasses.Field[Any], hint: Any, text: str | None, place: Place) -> Any:
    codec = _codec(hint)
    name = _option_name(field.name)
    if text is None:
        if hint is bool:
            return True
        raise UserError(
            f"option '{name}' of pass '{kind.name}' needs a value: {name}=..., {_expects(field, codec)}", place
        )
    try:
        return codec.read(text)
    except ValueError:
        message = f"option '{name}' of pass '{kind.name}' expects {_expects(field, codec)}, got '{_unquote(text)}'"
        # only a value of several parts may hold a comma
        notes = ["options are separated by spaces"] if re.search(r",[\w-]+=|,$", text) else []
        raise UserError(message, place, notes) from None


def _expects(field: dataclasses.Field[Any], codec: _Codec) -> str:
    """The field may say it better than its type does: `an integer >= 1`."""
    return str(field.metadata.get("expects", codec.expects))


def _unquote(text: str) -> str:
    def piece(match: re.Match[str]) -> str:
        double, single, bare = match.groups()
        if double:
            return re.sub(r"\\(.)", r"\1", double[1:-1], flags=re.DOTALL)
        return single[1:-1] if single else str(bare)

    return _QUOTED_OR_BARE.sub(piece, text)


def _quote(text: str) -> str:
    if _NEEDS_NO_QUOTES.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _elements(text: str) -> list[str]:
    """The parts between the commas that stand outside quotes, unquoted; nothing at all is the empty list."""
    if not text:
        return []
    parts, position = [], 0
    while position <= len(text):
        match = _ELEMENT.match(text, position)
        assert match  # it matches the empty string
        parts.append(_unquote(match[0]))
        position = match.end() + 1
    return parts


def _read_integer(text: str) -> int:
    if not _INTEGER.fullmatch(digits := _unquote(text)):
        raise ValueError(text)
    return int(digits)


def _read_bool(text: str) -> bool:
    if (word := _unquote(text)) not in _BOOLS:
        raise ValueError(text)
    return _BOOLS[word]


def _choice(choices: tuple[str, ...]) -> _Codec:
    def read(text: str) -> str:
        if (choice := _unquote(text)) not in choices:
            raise ValueError(text)
        return choice

    return _Codec(f"one of {', '.join(repr(choice) for choice in choices)}", read, _quote)


_CODECS: tuple[tuple[Any, _Codec], ...] = (
    (bool, _Codec("true or false", _read_bool, lambda value: "true" if value else "false")),
    (int, _Codec("an integer", _read_integer, str)),
    (str, _Codec("a text", _unquote, _quote)),
    (
        int | None,
        _Codec(
            "an integer or none",
            lambda text: None if text == "none" else _read_integer(text),
            lambda value: "none" if value is None else str(value),
        ),
    ),
    (
        tuple[int, ...],
        _Codec(
            "integers separated by commas",
            lambda text: tuple(_read_integer(part) for part in _elements(text)),
            lambda value: ",".join(str(part) for part in value),
        ),
    ),
    (
        tuple[str, ...],
        _Codec(
            "texts separated by commas",
            lambda text: tuple(_elements(text)),
            lambda value: ",".join(_quote(part) for part in value),
        ),
    ),
)


def _codec(hint: Any) -> _Codec:
    """The codec of an option's type; a type that `passbase.option` does not list is a mistake in the pass."""
    if typing.get_origin(hint) is Literal:
        return _choice(typing.get_args(hint))
    for known, codec in _CODECS:
        if hint == known:
            return codec
    raise TypeError(f"an option cannot be of type {hint}")
