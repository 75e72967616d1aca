"""Sums over all elements of the program's integer arrays: the unknowns that contracts call `sum(lengths)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Container

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.tensors import Elements, Shape, Tensor

# the names of inputs of which a formula's text says what it is
_PLAIN = re.compile(r"[\w%.\[\]'\"]+")
_LONGEST = 60

Narrow = Callable[[sym.Expr], sym.Range]
"""A range of an expression of the program's inputs, by all that is promised of them."""


def whole_sum(tensor: Tensor, shape: Shape, inputs: Container[str], narrow: Narrow) -> sym.Expr | None:
    """The exact sum of all elements of a tensor of this shape; None where it has no name that says what it is.

    What wraps around isn't in the text of a formula, so that has none.
    """
    if isinstance(tensor, Elements) or len(tensor.expr.text) > _LONGEST or sym.wraps_in(tensor.expr):
        return None
    if not all(leaf.name in inputs and _PLAIN.fullmatch(leaf.name) for leaf in sym.inputs_of(tensor.expr)):
        return None

    def narrowed(part: sym.Expr) -> sym.Expr | None:
        return sym.in_range(part, narrow(part)) if isinstance(part, sym.Total) else None

    return sym.substitute(sym.total(tensor.expr, shape), narrowed)
