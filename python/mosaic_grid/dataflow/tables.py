"""Scalar-prefetch operands as tables: what an index map reads, as an expression of the program's inputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.outer import OuterScalars
from mosaic_grid.dataflow.tensors import Each, Elements, Shape, Tensor, Uniform, element, extent, shape_of
from mosaic_grid.ir_types import Value

_FEW = 8
"""A table of more different numbers is read at an unknown place as something within their range."""


@dataclasses.dataclass(frozen=True)
class Table:
    """A prefetch operand of this `shape`, called `name` where nothing else is known of it."""

    name: str
    tensor: Tensor
    shape: Shape

    def element(self, index: Sequence[sym.Expr], values: sym.Range) -> sym.Expr:
        """What a kernel reads at a place, an integer in `values`. Beyond the table's end that can be anything."""
        beyond = sym.load(f"{self.name} beyond its end", index, values)
        if len(index) != len(self.shape):
            return beyond
        zero = sym.constant(0)
        inside = [
            sym.conjunction(sym.comparison("<=", zero, i), sym.comparison("<", i, sym.constant(size)))
            for i, size in zip(index, self.shape, strict=True)
        ]
        read = self._inside(index)
        known = read if sym.range_of(read).within(values) else beyond
        return sym.select(sym.conjunction(*inside), known, beyond)

    def _inside(self, index: Sequence[sym.Expr]) -> sym.Expr:
        match self.tensor:
            case Uniform(expr):
                return expr
            case Each(expr):
                return sym.substitute(expr, lambda part: _at(part, index))
            case Elements(exprs):
                places = [sym.constant_of(i) for i in index]
                known = [place for place in places if place is not None]
                if len(known) == len(places):
                    fits = all(0 <= place < size for place, size in zip(known, self.shape, strict=True))
                    return element(self.tensor, self.shape, known) if fits else exprs[0]
                if len(exprs) <= _FEW and len(index) == 1:
                    chosen = exprs[-1]
                    for place in reversed(range(len(exprs) - 1)):
                        here = sym.comparison("==", index[0], sym.constant(place))
                        chosen = sym.select(here, exprs[place], chosen)
                    return chosen
        return sym.load(f"%{self.name}", index, extent([self.tensor])[0])


def table_of(name: str, operand: Value, scalars: OuterScalars) -> Table | None:
    """The table that an operand is; None for one that isn't of integers, or of a shape that isn't known."""
    shape, tensor = shape_of(operand.type), scalars.tensor(operand)
    return None if shape is None or tensor is None else Table(name, tensor, shape)


def _at(part: sym.Expr, index: Sequence[sym.Expr]) -> sym.Expr | None:
    """The element at `index` for a load without one."""
    match part:
        case sym.Load(name, (), values, origin):
            return sym.load(name, index, values, origin)
    return None
