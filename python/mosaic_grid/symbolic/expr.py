"""Expressions over mathematical integers: immutable nodes that know their range and a divisor of all their values.

The functions of `arith`, `division`, `choice` and `selection` build them and simplify; a bare constructor doesn't.
Machine arithmetic appears in one node only, `Wrap`. Truth values are the integers 0 and 1.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TypeVar, dataclass_transform

from mosaic_grid.symbolic.ranges import Range

_Node = TypeVar("_Node", bound="Expr")


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where an unknown comes from: `what` it is in a few words, and the user's line where that is known."""

    what: str
    file: str = ""
    line: int = 0
    column: int = 0


class Expr:
    """An integer-valued expression; equality is equality of form.

    Abstract, yet no `abc.ABC`, whose `isinstance` is several times slower: the rules ask it all the time.
    """

    @property
    def args(self) -> tuple[Expr, ...]:
        """The operands; a leaf has none."""
        return ()

    def _bounds(self) -> Range:
        raise NotImplementedError

    def _multiple(self) -> int:
        raise NotImplementedError

    @functools.cached_property
    def divisor(self) -> int:
        """A number every value is a multiple of: 1 when nothing is known, 0 when the only value is 0."""
        return self._multiple()

    @functools.cached_property
    def range(self) -> Range:
        """A range that holds every value."""
        return self._bounds().tightened(self.divisor)

    @functools.cached_property
    def size(self) -> int:
        """The number of nodes when written out."""
        return 1 + sum(arg.size for arg in self.args)

    @functools.cached_property
    def written(self) -> tuple[str, int]:
        """The text, and how tightly it binds: see `show`."""
        from mosaic_grid.symbolic.show import write

        return write(self)

    @property
    def text(self) -> str:
        """How a person would write it."""
        return self.written[0]

    def __str__(self) -> str:
        return self.text


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def node(cls: type[_Node]) -> type[_Node]:
    """A frozen dataclass whose hash is computed once and whose unequal nodes are told apart by it.

    Parts are shared: without that, to hash an expression takes as long as to write it out.
    """
    cls = dataclasses.dataclass(frozen=True)(cls)
    hash_of_fields, equal_fields = cls.__hash__, cls.__eq__

    def equal(self: _Node, other: object) -> bool:
        if self is other:
            return True
        # the hashes are compared without a detour over `hash`
        return self.__class__ is other.__class__ and hash_once(self) == hash_once(other) and equal_fields(self, other)

    def hash_once(self: _Node) -> int:
        known: int | None = self.__dict__.get("_hash")
        if known is None:
            known = self.__dict__["_hash"] = hash_of_fields(self)
        return known

    cls.__eq__, cls.__hash__ = equal, hash_once  # type: ignore[method-assign, assignment]
    return cls
