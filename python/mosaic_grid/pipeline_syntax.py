"""The syntax of a pass pipeline, MLIR's own: `name{options}` and `anchor(pipeline)`, separated by commas."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from mosaic_grid.errors import Place, UserError

SOURCE = "pipeline"
"""The file name in places that point into a pipeline string."""

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_QUOTED = re.compile(r""""(?:\\.|[^"\\])*"|'[^']*'""", re.DOTALL)
_CLOSING = {"{": "}", "(": ")"}
_MOST_NESTED = 64


@dataclasses.dataclass(frozen=True)
class Item:
    """A pass with its options as written, or an anchor operation with the pipeline that runs on it.

    `start` and `options_start` are offsets in the pipeline string. `inner` is `None` for a pass.
    """

    name: str
    start: int
    options: str = ""
    options_start: int = 0
    inner: tuple[Item, ...] | None = None

    def __str__(self) -> str:
        """The item as MLIR reads it."""
        if self.inner is not None:
            return f"{self.name}({','.join(str(item) for item in self.inner)})"
        return f"{self.name}{{{self.options}}}" if self.options else self.name

    def walk(self) -> Iterator[Item]:
        """This item and everything inside it, in order."""
        yield self
        for item in self.inner or ():
            yield from item.walk()


def place_in(text: str, offset: int) -> Place:
    """The line and column of an offset in a pipeline string."""
    before = text[:offset]
    return Place(SOURCE, before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


def parse_items(text: str) -> tuple[Item, ...]:
    """The items of a pipeline string; none for an empty one. Raises `UserError` at the column that cannot be read."""
    reader = _Reader(text)
    items = reader.items()
    if not reader.at_end():
        raise reader.error("this ')' closes nothing" if reader.peek() == ")" else "expected ',' between two passes")
    return items


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.depth = 0

    def items(self) -> tuple[Item, ...]:
        if self.peek() in ("", ")"):
            return ()
        found = [self.item()]
        while self.peek() == ",":
            self.position += 1
            found.append(self.item())
        return tuple(found)

    def item(self) -> Item:
        self.peek()
        start = self.position
        match = _NAME.match(self.text, start)
        if not match:
            raise self.error("expected the name of a pass")
        self.position = match.end()
        match self.peek():
            case "{":
                options = self.braces()
                return Item(match[0], start, options.strip(), self.position - 1 - len(options.lstrip()))
            case "(":
                return Item(match[0], start, inner=self.parentheses())
        return Item(match[0], start)

    def braces(self) -> str:
        """The text between a brace and the one that closes it; braces in quotes don't count."""
        opening, depth = self.position, 0
        while not self.at_end():
            quoted = _QUOTED.match(self.text, self.position)
            if quoted:
                self.position = quoted.end()
                continue
            depth += {"{": 1, "}": -1}.get(self.text[self.position], 0)
            self.position += 1
            if depth == 0:
                return self.text[opening + 1 : self.position - 1]
        raise self.unclosed(opening)

    def parentheses(self) -> tuple[Item, ...]:
        opening = self.position
        self.position += 1
        self.depth += 1
        if self.depth > _MOST_NESTED:
            raise UserError(f"more than {_MOST_NESTED} pipelines inside each other", place_in(self.text, opening))
        inner = self.items()
        self.depth -= 1
        if self.peek() == "":
            raise self.unclosed(opening)
        if self.peek() != ")":
            raise self.error("expected ',' between two passes")
        self.position += 1
        return inner

    def peek(self) -> str:
        """The next character that is not white space, nothing at the end."""
        while not self.at_end() and self.text[self.position].isspace():
            self.position += 1
        return self.text[self.position : self.position + 1]

    def at_end(self) -> bool:
        return self.position >= len(self.text)

    def error(self, message: str) -> UserError:
        found = self.text[self.position : self.position + 1]
        got = f", got '{found}'" if found and not message.startswith("this") else ""
        return UserError(f"{message}{got}", place_in(self.text, self.position))

    def unclosed(self, opening: int) -> UserError:
        bracket = self.text[opening]
        return UserError(f"this '{bracket}' has no closing '{_CLOSING[bracket]}'", place_in(self.text, opening))
