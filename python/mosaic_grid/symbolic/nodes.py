"""Expressions over mathematical integers: immutable nodes that know their range and a divisor of all their values.

The functions of `arith`, `division`, `choice` and `selection` build them and simplify; a bare constructor doesn't.
Machine arithmetic appears in one node only, `Wrap`. Truth values are the integers 0 and 1.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Literal

from mosaic_grid.symbolic.ranges import Range, corners, type_range

BOOL = Range(0, 1)
Relation = Literal["==", "!=", "<", "<=", ">", ">="]


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


@dataclasses.dataclass(frozen=True)
class Const(Expr):
    """An integer."""

    value: int

    def _bounds(self) -> Range:
        return Range(self.value, self.value)

    def _multiple(self) -> int:
        return abs(self.value)


@dataclasses.dataclass(frozen=True)
class Param(Expr):
    """An unknown with a name; two of them are the same unknown when name, range and divisor agree."""

    name: str
    values: Range
    known_divisor: int = 1
    origin: Origin | None = dataclasses.field(default=None, compare=False)

    def _bounds(self) -> Range:
        return self.values

    def _multiple(self) -> int:
        return self.known_divisor


@dataclasses.dataclass(frozen=True)
class Load(Expr):
    """The element of the named, immutable array at `index`; equal indices read equal values.

    Without an index it stands for the element at whatever place is spoken of, the same in all of an expression.
    """

    name: str
    index: tuple[Expr, ...]
    values: Range
    origin: Origin | None = dataclasses.field(default=None, compare=False)

    @property
    def args(self) -> tuple[Expr, ...]:
        """The index."""
        return self.index

    def _bounds(self) -> Range:
        return self.values

    def _multiple(self) -> int:
        return 1


@dataclasses.dataclass(frozen=True)
class Wrap(Expr):
    """`inner` reduced into an integer type as the machine does it, where that may change the value.

    A `cast` was asked for by the program (i64 to i32); the others are sums and products that may overflow.
    """

    inner: Expr
    bits: int
    signed: bool
    cast: bool = False

    @property
    def args(self) -> tuple[Expr, ...]:
        """The one operand."""
        return (self.inner,)

    def _bounds(self) -> Range:
        return type_range(self.bits, self.signed)

    def _multiple(self) -> int:
        # d | x and d | 2**bits  =>  d | x mod 2**bits
        return math.gcd(self.inner.divisor, 1 << self.bits)


@dataclasses.dataclass(frozen=True)
class Linear(Expr):
    """`constant` plus a sum of `coefficient * atom`: no coefficient is 0, no atom is a constant or linear itself."""

    terms: tuple[tuple[Expr, int], ...]
    constant: int

    @property
    def args(self) -> tuple[Expr, ...]:
        """The atoms."""
        return tuple(atom for atom, _ in self.terms)

    def _bounds(self) -> Range:
        total = Range(self.constant, self.constant)
        for atom, coefficient in self.terms:
            total = total.plus(atom.range.scaled(coefficient))
        return total

    def _multiple(self) -> int:
        return math.gcd(self.constant, *(coefficient * atom.divisor for atom, coefficient in self.terms))


@dataclasses.dataclass(frozen=True)
class Product(Expr):
    """A product of two expressions, neither of them constant."""

    a: Expr
    b: Expr

    @property
    def args(self) -> tuple[Expr, ...]:
        """The factors."""
        return self.a, self.b

    def _bounds(self) -> Range:
        return corners(lambda x, y: x * y, self.a.range, self.b.range)

    def _multiple(self) -> int:
        return self.a.divisor * self.b.divisor


@dataclasses.dataclass(frozen=True)
class Extremum(Expr):
    """The least or the greatest of two or more expressions."""

    greatest: bool
    operands: tuple[Expr, ...]

    @property
    def args(self) -> tuple[Expr, ...]:
        """The operands."""
        return self.operands

    def _bounds(self) -> Range:
        pick = max if self.greatest else min
        return Range(pick(a.range.lo for a in self.args), pick(a.range.hi for a in self.args))

    def _multiple(self) -> int:
        return math.gcd(*(a.divisor for a in self.args))


@dataclasses.dataclass(frozen=True)
class Absolute(Expr):
    """The absolute value."""

    a: Expr

    @property
    def args(self) -> tuple[Expr, ...]:
        """The one operand."""
        return (self.a,)

    def _bounds(self) -> Range:
        r = self.a.range
        return Range(max(0, r.lo, -r.hi), max(-r.lo, r.hi))

    def _multiple(self) -> int:
        return self.a.divisor


@dataclasses.dataclass(frozen=True)
class Select(Expr):
    """`then` where the truth value `condition` is 1, else `other`."""

    condition: Expr
    then: Expr
    other: Expr

    @property
    def args(self) -> tuple[Expr, ...]:
        """Condition, then, other."""
        return self.condition, self.then, self.other

    def _bounds(self) -> Range:
        return self.then.range.hull(self.other.range)

    def _multiple(self) -> int:
        return math.gcd(self.then.divisor, self.other.divisor)


class Truth(Expr):
    """An expression that is 0 or 1."""

    def _bounds(self) -> Range:
        return BOOL

    def _multiple(self) -> int:
        return 1


@dataclasses.dataclass(frozen=True)
class Compare(Truth):
    """1 where the relation holds."""

    relation: Relation
    a: Expr
    b: Expr

    @property
    def args(self) -> tuple[Expr, ...]:
        """Left and right side."""
        return self.a, self.b


@dataclasses.dataclass(frozen=True)
class Not(Truth):
    """1 - a for a truth value."""

    a: Expr

    @property
    def args(self) -> tuple[Expr, ...]:
        """The one operand."""
        return (self.a,)


@dataclasses.dataclass(frozen=True)
class Junction(Truth):
    """The conjunction (`every`) or the disjunction of truth values."""

    every: bool
    operands: tuple[Expr, ...]

    @property
    def args(self) -> tuple[Expr, ...]:
        """The operands."""
        return self.operands


def settled(expr: Expr) -> Expr:
    """A node whose range is a single integer is that integer."""
    return Const(expr.range.lo) if expr.range.lo == expr.range.hi else expr
