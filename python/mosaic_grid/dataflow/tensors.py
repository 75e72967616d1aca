"""Integer tensors as the analysis sees them: one expression for all elements, a list, or an element-wise formula.

Every expression lies in the range of its element type: rules establish it and rely on it.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Sequence

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym

LIMIT = 4096
"""Tensors of more elements are never written out element by element."""

FEW = 4
"""Unknown tensors of more elements are reasoned about as a whole, for the work is the same for every element.

No reduction of more unknowns is written out, so that element by element most of the work would be thrown away."""

Shape = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class IntType:
    """An integer element type; `i1` is unsigned: false is 0 and true is 1."""

    bits: int
    signed: bool

    @property
    def range(self) -> sym.Range:
        """What it can hold."""
        return sym.type_range(self.bits, self.signed)

    @property
    def is_bool(self) -> bool:
        """Whether it is the type of truth values."""
        return self.bits == 1


@dataclasses.dataclass(frozen=True)
class Uniform:
    """Every element is `expr`; a scalar always is of this kind."""

    expr: sym.Expr


@dataclasses.dataclass(frozen=True)
class Elements:
    """The elements in row-major order."""

    exprs: tuple[sym.Expr, ...]


@dataclasses.dataclass(frozen=True)
class Each:
    """Each element is `expr` of other tensors' elements at the same place, which are loads without an index."""

    expr: sym.Expr


Tensor = Uniform | Elements | Each


def int_type(type: ir.Type) -> IntType | None:
    """The element type of a ranked tensor of integers, `None` for every other type."""
    if not isinstance(type, ir.RankedTensorType) or not isinstance(element := type.element_type, ir.IntegerType):
        return None
    return IntType(element.width, not element.is_unsigned and element.width > 1)


def shape_of(type: ir.Type) -> Shape | None:
    """The shape of a ranked tensor; `None` where a dimension is dynamic, or for another type."""
    if not isinstance(type, ir.RankedTensorType) or not type.has_static_shape:
        return None
    return tuple(type.shape)


def indices(shape: Shape) -> Iterator[Shape]:
    """All indices of a shape, in row-major order."""
    return itertools.product(*map(range, shape))


def linear_index(index: Sequence[int], shape: Shape) -> int:
    """The position of an index in row-major order."""
    position = 0
    for i, size in zip(index, shape, strict=True):
        position = position * size + i
    return position


def element(tensor: Tensor, shape: Shape, index: Sequence[int]) -> sym.Expr:
    """One element of a tensor of this shape."""
    match tensor:
        case Uniform(expr):
            return expr
        case Elements(exprs):
            return exprs[linear_index(index, shape)]
        case Each(expr):
            place = [sym.constant(i) for i in index]
            return sym.substitute(expr, lambda part: _loaded(part, place))


def _loaded(part: sym.Expr, index: Sequence[sym.Expr]) -> sym.Expr | None:
    """The element at `index` for a load without one."""
    match part:
        case sym.Load(name, (), values, origin):
            return sym.load(name, index, values, origin)
    return None


def collect(exprs: Sequence[sym.Expr]) -> Tensor:
    """The tensor of these elements, at least one."""
    same = all(e == exprs[0] for e in exprs)
    return Uniform(exprs[0]) if same else Elements(tuple(exprs))


def spread(tensor: Tensor, shape: Shape | None) -> tuple[sym.Expr, ...] | None:
    """The elements of a tensor of this shape; `None` where they are too many or not known to be how many."""
    if isinstance(tensor, Elements):
        return tensor.exprs
    if shape is None or not 0 < math.prod(shape) <= LIMIT:
        return None
    return tuple(element(tensor, shape, index) for index in indices(shape))


def reindex(tensor: Tensor, old: Shape | None, new: Shape | None, source: Callable[[Shape], Shape]) -> Tensor | None:
    """The tensor of shape `new` whose element at `index` is that of `tensor` at `source(index)`."""
    if isinstance(tensor, Uniform):
        return tensor
    if old is None or new is None or not is_written_out(math.prod(new), [tensor]):
        return None
    return collect([element(tensor, old, source(index)) for index in indices(new)])


def is_written_out(count: int, operands: Sequence[Tensor]) -> bool:
    """Whether a result of `count` elements is made element by element from these operands."""
    return 0 < count <= (FEW if any(isinstance(t, Each) for t in operands) else LIMIT)


def is_constant(tensor: Tensor) -> bool:
    """Whether every element is a known integer."""
    exprs = tensor.exprs if isinstance(tensor, Elements) else (tensor.expr,)
    return all(isinstance(e, sym.Const) for e in exprs)


def extent(tensors: Sequence[Tensor]) -> tuple[sym.Range, int]:
    """A range that holds every element of the tensors, and a number that divides every one."""
    ranges, divisors = [], []
    for tensor in tensors:
        match tensor:
            case Uniform(expr) | Each(expr):
                exprs: tuple[sym.Expr, ...] = (expr,)
            case Elements(exprs):
                pass
        ranges += [sym.range_of(e) for e in exprs]
        divisors += [sym.divisor_of(e) for e in exprs]
    return sym.Range(min(r.lo for r in ranges), max(r.hi for r in ranges)), math.gcd(*divisors)
