"""Sums over all elements of arrays: exact integers, whatever the machine makes of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from mosaic_grid.symbolic.arith import combination, linear_parts
from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.facts import leaves_of
from mosaic_grid.symbolic.nodes import Load, Param, Total, settled
from mosaic_grid.symbolic.ranges import Range
from mosaic_grid.symbolic.substitute import substitute


def total(body: Expr, shape: tuple[int, ...]) -> Expr:
    """The sum of `body` over all places of arrays of this shape, in which loads without an index are elements.

    A sum of sums is taken apart: only what isn't linear becomes an unknown of its own.
    """
    count = math.prod(shape)
    parts, offset = linear_parts(body)
    # sum(c*x + n) = c*sum(x) + count*n
    terms = [(_whole(atom, shape), c) if _varies(atom) else (atom, c * count) for atom, c in parts]
    return combination(terms, offset * count)


def _whole(atom: Expr, shape: tuple[int, ...]) -> Expr:
    values = atom.range.scaled(math.prod(shape))
    return settled(Total(f"sum({atom.text})", values, atom.divisor, None, atom, shape))


def _varies(expr: Expr) -> bool:
    return any(isinstance(leaf, Load) and not leaf.index for leaf in leaves_of(expr))


def in_range(whole: Total, values: Range) -> Expr:
    """The same sum where it is known to be in `values` as well; `ValueError` where it can't be."""
    both = Range(max(values.lo, whole.values.lo), min(values.hi, whole.values.hi))
    return settled(dataclasses.replace(whole, values=both))


def totals_of(expr: Expr) -> tuple[Total, ...]:
    """The sums in the expression, each once."""
    return tuple(leaf for leaf in leaves_of(expr) if isinstance(leaf, Total))


def inputs_of(expr: Expr) -> tuple[Param | Load, ...]:
    """The unknowns in the expression, of a sum those that it is computed from."""
    found: list[Param | Load] = []
    for leaf in leaves_of(expr):
        found += inputs_of(leaf.body) if isinstance(leaf, Total) else [leaf]
    return tuple(dict.fromkeys(found))


def within_totals(
    expr: Expr, replacement: Callable[[Expr], Expr | None], shape_of: Callable[[Expr], tuple[int, ...]]
) -> Expr:
    """`substitute`, in the bodies of sums as well; `shape_of` is asked for the shape that a new body is summed over."""

    def replaced(part: Expr) -> Expr | None:
        if isinstance(part, Total):
            body = substitute(part.body, replacement)
            return total(body, shape_of(body))
        return replacement(part)

    return substitute(expr, replaced)
