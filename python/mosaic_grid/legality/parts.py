"""The parts of an array that a step touches, each under conditions, and fewer parts that cover them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.memory import Box, Span
from mosaic_grid.symbolic.arith import linear_parts


@dataclasses.dataclass(frozen=True)
class Part:
    """A box of an array of this `shape` that a step touches where all of `guards` are 1.

    `box` is None where nobody knows which. `inside` says that an access out of bounds would be a fault, which isn't so
    of the last block of a window.
    """

    box: Box | None
    shape: tuple[int, ...]
    guards: tuple[sym.Expr, ...] = ()
    inside: bool = True


def hull(parts: Iterable[Part]) -> list[Part]:
    """Fewer parts that cover all of these: those whose starts differ by numbers become one, where they all have sizes.

    It is touched under the conditions that they have in common.
    """
    found: dict[tuple[object, ...], Part] = {}
    for part in dict.fromkeys(parts):
        if part.box is None or any(sym.constant_of(span.size) is None for span in part.box):
            found[part,] = part
            continue
        key = (part.shape, *(_without_constant(span.start)[0] for span in part.box))
        found[key] = _joined(found[key], part) if key in found else part
    return list(found.values())


def _joined(one: Part, other: Part) -> Part:
    assert one.box is not None
    assert other.box is not None  # parts with a box are joined
    box = tuple(_around(a, b) for a, b in zip(one.box, other.box, strict=True))
    # a step may run one of them and not the other, which then may be anywhere
    inside = one.inside and other.inside and one.guards == other.guards
    return Part(box, one.shape, tuple(guard for guard in one.guards if guard in other.guards), inside)


def _around(a: Span, b: Span) -> Span:
    """The span from the first element of two to the last; their starts differ by a number."""
    base, first = _without_constant(a.start)
    _, second = _without_constant(b.start)
    end = max(first + (sym.constant_of(a.size) or 0), second + (sym.constant_of(b.size) or 0))
    low = min(first, second)
    return Span(sym.add(base, sym.constant(low)), sym.constant(end - low))


def _without_constant(expr: sym.Expr) -> tuple[sym.Expr, int]:
    """What of a sum isn't a number, and the number."""
    _, constant = linear_parts(expr)
    return sym.sub(expr, sym.constant(constant)), constant
