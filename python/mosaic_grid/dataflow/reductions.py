"""`stablehlo.reduce` of one integer tensor by one operation."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.elementwise import rule_of
from mosaic_grid.dataflow.sums import Narrow, whole_sum
from mosaic_grid.dataflow.tensors import (
    FEW,
    Each,
    Elements,
    Shape,
    Tensor,
    Uniform,
    collect,
    extent,
    indices,
    int_type,
    is_written_out,
    shape_of,
    spread,
)
from mosaic_grid.dataflow.unknowns import Unknowns

_ADD = "stablehlo.add"
_SHORT = 40
_NAMES = {
    "stablehlo.maximum": "max",
    "stablehlo.minimum": "min",
    "stablehlo.and": "all",
    "stablehlo.or": "any",
}


def reduce(
    op: ir.Operation, operands: Sequence[Tensor], unknowns: Unknowns, inputs: Container[str], narrow: Narrow
) -> Tensor | None:
    """The result; an unknown `max(lengths)` with the range that the elements allow where it can't be written out.

    The sum of all elements, where they are a formula of the program's `inputs`, is the unknown that contracts call so.
    """
    result = op.results[0]
    kind, body = int_type(result.type), combiner(op)
    if kind is None or body is None or len(operands) != 2 or not isinstance(init := operands[1], Uniform):
        return None
    rule, old, new = rule_of(body), shape_of(op.operands[0].type), shape_of(result.type)
    if rule is None or old is None or new is None or math.prod(old) == 0:
        return None
    if isinstance(operands[0], Uniform) and body.name in _NAMES:
        # max(a, a) = a
        once = rule(kind, (init.expr, operands[0].expr))
        return None if once is None else Uniform(once)
    count = math.prod(old) // math.prod(new)
    exprs = spread(operands[0], old) if is_written_out(math.prod(old), operands) else None
    if exprs is None or (count > FEW and any(sym.constant_of(e) is None for e in exprs)):
        whole = whole_sum(operands[0], old, inputs, narrow) if body.name == _ADD and count == math.prod(old) else None
        if whole is not None and not kind.is_bool:
            return Uniform(sym.wrap(sym.add(whole, init.expr), kind.bits, kind.signed))
        title, values = _title(body.name, operands[0], init), _bounds(body.name, kind.range, operands, count)
        return unknowns.of(result, title, values)
    axes = set(ir.DenseI64ArrayAttr(op.attributes["dimensions"]))
    groups: dict[Shape, sym.Expr] = dict.fromkeys(indices(new), init.expr)
    for index, expr in zip(indices(old), exprs, strict=True):
        kept = tuple(i for axis, i in enumerate(index) if axis not in axes)
        total = rule(kind, (groups[kept], expr))
        if total is None:
            return None
        groups[kept] = total
    return collect(list(groups.values()))


def combiner(op: ir.Operation) -> ir.Operation | None:
    """The one operation of the region, if it combines the two arguments and has a known bound."""
    body = list(op.regions[0].blocks[0].operations)
    if len(body) != 2 or len(op.regions[0].blocks[0].arguments) != 2:
        return None
    combine, last = body[0].operation, body[1].operation
    if combine.name not in (*_NAMES, _ADD) or set(combine.operands) != set(op.regions[0].blocks[0].arguments):
        return None
    return combine if list(last.operands) == list(combine.results) else None


def _title(combine: str, tensor: Tensor, init: Uniform) -> str:
    """`max(ceildiv(lengths, 128))`, with dots where that is long."""
    match tensor:
        case Uniform(expr) | Each(expr):
            inside = expr.text
        case Elements(exprs):
            inside = f"{exprs[0]}, ..."
    inside = inside if len(inside) <= _SHORT else "..."
    if combine == _ADD and inside != "...":
        # `sum(lengths)` is the name of the exact sum of all elements
        return f"sum of {inside}"
    return f"{_NAMES.get(combine, 'sum')}({inside})"


def _bounds(combine: str, type_range: sym.Range, operands: Sequence[Tensor], count: int) -> sym.Range | None:
    """The range of the reduction of `count` elements and the initial value."""
    (values, _), (init, _) = extent(operands[:1]), extent(operands[1:])
    match combine:
        case "stablehlo.maximum":
            return sym.Range(max(values.lo, init.lo), max(values.hi, init.hi))
        case "stablehlo.minimum":
            return sym.Range(min(values.lo, init.lo), min(values.hi, init.hi))
        case "stablehlo.add" if type_range != sym.Range(0, 1):
            total = values.scaled(count).plus(init)
            # sums are modulo 2**bits, in whatever order: only the total has to fit
            return total if total.within(type_range) else None
    return None
