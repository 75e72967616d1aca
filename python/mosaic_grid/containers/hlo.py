"""HLO text: the Mosaic kernels in it. The computation around them is not turned back into StableHLO.

HLO is what XLA makes of a program (`compiled.as_text()`, XLA's own dumps). Strings may hold line breaks, brackets and
escaped quotes, so instructions are found by matching brackets and quotes. The grammar: XLA's `hlo_lexer.cc`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from mosaic_grid import backend_config
from mosaic_grid.backend_config import Payload
from mosaic_grid.errors import Place, UserError

TARGET = '"tpu_custom_call"'

# Strings whole, brackets, separators; a lone quote is one that never ends. HLO has C++ comments: /*index=5*/ and //.
_TOKEN = re.compile(
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|/\*.*?\*/|//[^\n]*+|["(){}\[\]\n,]',
    re.DOTALL,
)
_MODULE_NAME = re.compile(r"HloModule\s+([^\s,]+)")
_ATTRIBUTE = re.compile(r"\s*(\w+)\s*=\s*")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_OPENERS, _CLOSERS = "({[", ")}]"


@dataclasses.dataclass(frozen=True)
class Call:
    """A `tpu_custom_call` instruction: its name without `%`, where it begins, and its kernel."""

    instruction: str
    place: Place
    payload: Payload


def module_name(text: str) -> str:
    """The name after `HloModule`."""
    match = _MODULE_NAME.search(text)
    return match[1] if match else ""


def calls(text: str, name: str) -> Iterator[Call]:
    """Every launch of a Mosaic kernel, in the order of the text. Raises `UserError` for damaged text."""
    for start, end in _statements(text, name):
        if text.find(TARGET, start, end) < 0:
            continue
        attributes = _attributes(text, start, end)
        if attributes.get("custom_call_target") != TARGET:
            continue
        yield _call(text, start, attributes, name)


def _call(text: str, start: int, attributes: dict[str, str], name: str) -> Call:
    start += len(text[start:]) - len(text[start:].lstrip()) if text[start : start + 1].isspace() else 0
    place = _place(text, start, name)
    instruction = text[start : text.index("=", start)].strip().removeprefix("ROOT ").strip().removeprefix("%")
    config = attributes.get("backend_config")
    if config is None:
        raise UserError(f"the tpu_custom_call %{instruction} has no backend_config, so there is no kernel in it", place)
    try:
        _, payload = backend_config.split(_unquoted(config) if config.startswith('"') else config)
    except backend_config.ConfigError as error:
        raise UserError(f"the kernel of %{instruction} can't be read: {error}", place) from None
    return Call(instruction, place, payload)


def _statements(text: str, name: str) -> Iterator[tuple[int, int]]:
    """The spans of instructions, and of the lines between computations.

    A line ends a statement where no bracket is open but that of its computation.
    """
    depth = start = 0
    for token in _TOKEN.finditer(text):
        first = text[token.start()]
        if first in _OPENERS:
            depth += 1
        elif first in _CLOSERS:
            depth -= 1
        elif first == "\n" and depth <= 1:
            yield start, token.start()
            start = token.end()
        elif first == '"' and token.end() - token.start() == 1:
            raise UserError("this HLO text is truncated: a string never ends", _place(text, token.start(), name))
        if depth < 0:
            raise UserError("this HLO text is damaged: a bracket closes nothing", _place(text, token.start(), name))
    if depth:
        raise UserError("this HLO text is truncated: it ends inside a computation", _place(text, len(text), name))
    yield start, len(text)


def _attributes(text: str, start: int, end: int) -> dict[str, str]:
    """The `key=value` parts of an instruction that stand outside of all brackets."""
    attributes = {}
    depth, begin = 0, start
    for token in (*_TOKEN.finditer(text, start, end), None):
        first = text[token.start()] if token else ","
        if first in _OPENERS:
            depth += 1
        elif first in _CLOSERS:
            depth -= 1
        elif first == "," and depth == 0:
            stop = token.start() if token else end
            if match := _ATTRIBUTE.match(text, begin, stop):
                attributes[match[1]] = text[match.end() : stop].strip()
            begin = stop + 1
    return attributes


def _unquoted(literal: str) -> str:
    """The value of a C string literal."""

    def value(match: re.Match[str]) -> str:
        hexadecimal, octal, other = match.groups()
        if hexadecimal or octal:
            return chr(int(hexadecimal, 16) if hexadecimal else int(octal, 8))
        return _ESCAPED.get(other, other)

    return _ESCAPE.sub(value, literal[1:-1])


def _place(text: str, position: int, name: str) -> Place:
    return Place(name, text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position))
