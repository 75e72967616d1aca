"""The nodes of sums, products, choices and truth values; those of division are in `quotients`."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Literal

from mosaic_grid.symbolic.expr import Expr as Expr
from mosaic_grid.symbolic.expr import Origin, node
from mosaic_grid.symbolic.ranges import Range, corners, type_range

BOOL = Range(0, 1)
Relation = Literal["==", "!=", "<", "<=", ">", ">="]


@node
class Const(Expr):
    """An integer."""

    value: int

    def _bounds(self) -> Range:
        return Range(self.value, self.value)

    def _multiple(self) -> int:
        return abs(self.value)


@functools.lru_cache(maxsize=4096)
def constant(value: int) -> Expr:
    """An integer; most are small and come again and again."""
    return Const(value)


@node
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


@node
class Total(Param):
    """The exact sum of `body` over all places of arrays of this `shape`, and so an unknown like any other.

    Its name is its text. The loads in `body` without an index are elements at a place; what else is in it is the same
    at all of them.
    """

    body: Expr = dataclasses.field(default_factory=Expr, compare=False)
    shape: tuple[int, ...] = dataclasses.field(default=(), compare=False)


@node
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


@node
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


@node
class Linear(Expr):
    """`constant` plus a sum of `coefficient * atom`: no coefficient is 0, no atom is a constant or linear itself."""

    terms: tuple[tuple[Expr, int], ...]
    constant: int

    @property
    def args(self) -> tuple[Expr, ...]:
        """The atoms."""
        return tuple(atom for atom, _ in self.terms)

    def _bounds(self) -> Range:
        lo = hi = self.constant
        for atom, coefficient in self.terms:
            low, high = (atom.range.lo, atom.range.hi) if coefficient > 0 else (atom.range.hi, atom.range.lo)
            lo, hi = lo + coefficient * low, hi + coefficient * high
        return Range(lo, hi)

    def _multiple(self) -> int:
        return math.gcd(self.constant, *(coefficient * atom.divisor for atom, coefficient in self.terms))


@node
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


@node
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


@node
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


@node
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


@node
class Compare(Truth):
    """1 where the relation holds."""

    relation: Relation
    a: Expr
    b: Expr

    @property
    def args(self) -> tuple[Expr, ...]:
        """Left and right side."""
        return self.a, self.b


@node
class Not(Truth):
    """1 - a for a truth value."""

    a: Expr

    @property
    def args(self) -> tuple[Expr, ...]:
        """The one operand."""
        return (self.a,)


@node
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
    values = expr.range
    return constant(values.lo) if values.lo == values.hi else expr
