"""The nodes of division: floored, as Python's `//` and `%`, and truncated, as StableHLO's `divide` and `remainder`.

No divisor's range holds 0, so it has one sign; `division` builds these nodes and refuses others.
"""

from __future__ import annotations

import math

from mosaic_grid.symbolic.expr import Expr, node
from mosaic_grid.symbolic.nodes import Const
from mosaic_grid.symbolic.ranges import Range, corners


def truncated_quotient(a: int, b: int) -> int:
    """`a / b` rounded towards zero."""
    return a // b if (a < 0) == (b < 0) else -(-a // b)


def truncated_remainder(a: int, b: int) -> int:
    """`a - b * truncated_quotient(a, b)`: its sign is that of `a`."""
    return a - b * truncated_quotient(a, b)


@node
class Division(Expr):
    """What the four have in common."""

    a: Expr
    b: Expr

    @property
    def args(self) -> tuple[Expr, ...]:
        """Dividend and divisor."""
        return self.a, self.b


@node
class Quotient(Division):
    """A quotient: exact, whatever its rounding, when a constant divides every dividend."""

    def _multiple(self) -> int:
        # b | d and d | a  =>  d/b | a/b
        exact = isinstance(self.b, Const) and self.a.divisor % self.b.value == 0
        return self.a.divisor // self.b.divisor if exact else 1


@node
class FloorDiv(Quotient):
    """`a // b`, rounded down."""

    def _bounds(self) -> Range:
        return corners(lambda x, y: x // y, self.a.range, self.b.range)


@node
class TruncDiv(Quotient):
    """`a / b` rounded towards zero."""

    def _bounds(self) -> Range:
        return corners(truncated_quotient, self.a.range, self.b.range)


@node
class Mod(Division):
    """`a - b * (a // b)`: its sign is that of `b`."""

    def _bounds(self) -> Range:
        a, b = self.a.range, self.b.range
        if b.lo > 0:
            # 0 <= a % b < b, and a % b <= a for a >= 0
            return Range(0, min(b.hi - 1, a.hi) if a.lo >= 0 else b.hi - 1)
        return Range(max(b.lo + 1, a.lo) if a.hi <= 0 else b.lo + 1, 0)

    def _multiple(self) -> int:
        return math.gcd(self.a.divisor, self.b.divisor)


@node
class TruncRem(Division):
    """`a - b * trunc(a / b)`: its sign is that of `a`."""

    def _bounds(self) -> Range:
        most = max(abs(self.b.range.lo), abs(self.b.range.hi)) - 1
        return Range(max(-most, min(self.a.range.lo, 0)), min(most, max(self.a.range.hi, 0)))

    def _multiple(self) -> int:
        return math.gcd(self.a.divisor, self.b.divisor)
