"""`stablehlo.reduce_window` as JAX makes it of a cumulative sum along a vector."""

from __future__ import annotations

from collections.abc import Container, Sequence

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.reductions import combiner
from mosaic_grid.dataflow.sums import Narrow, whole_sum
from mosaic_grid.dataflow.tensors import (
    FEW,
    Elements,
    Tensor,
    Uniform,
    collect,
    element,
    extent,
    int_type,
    shape_of,
    spread,
)
from mosaic_grid.dataflow.unknowns import Unknowns

_ONES = ("window_strides", "base_dilations", "window_dilations")


def prefix_sums(
    op: ir.Operation, operands: Sequence[Tensor], unknowns: Unknowns, inputs: Container[str], narrow: Narrow
) -> Tensor | None:
    """The sums of the first elements, of one, of two, up to all; None for another operation.

    Those of a longer vector are unknowns `cumsum(lengths)` within the range that the elements and their sum allow; the
    last one is the sum of all.
    """
    kind, shape = int_type(op.results[0].type), shape_of(op.results[0].type)
    if kind is None or kind.is_bool or shape is None or len(shape) != 1 or not _is_cumulative(op, shape[0]):
        return None
    if len(operands) != 2 or operands[1] != Uniform(sym.constant(0)):
        return None
    tensor, count = operands[0], shape[0]
    exprs = spread(tensor, shape) if count <= FEW else None
    if exprs is not None:
        sums = [sym.add(*exprs[: last + 1]) for last in range(count)]
        return collect([sym.wrap(each, kind.bits, kind.signed) for each in sums])
    (values, divisor), whole = extent([tensor]), whole_sum(tensor, shape, inputs, narrow)
    known = values.scaled(count) if whole is None else sym.range_of(whole)
    # where no element is negative none of the sums is more than the last one, and none is less than the first
    lo = values.lo if values.lo >= 0 else min(known.lo if values.hi <= 0 else values.lo * count, values.lo)
    hi = values.hi if values.hi <= 0 else max(known.hi if values.lo >= 0 else values.hi * count, values.hi)
    hint = "" if isinstance(tensor, Elements) else f"cumsum({tensor.expr})"
    fits = kind.range.lo <= lo and hi <= kind.range.hi
    made = unknowns.of(op.results[0], hint, sym.Range(lo, hi) if fits else None, divisor if fits else 1)
    if whole is not None and made is not None:
        last = element(made, shape, (count - 1,))
        unknowns.elements[last] = sym.wrap(whole, kind.bits, kind.signed)
    return made


def _is_cumulative(op: ir.Operation, count: int) -> bool:
    """Whether each element is the sum of those of the operand up to its own place."""
    body, padding = combiner(op), op.attributes.get("padding")
    if body is None or body.name != "stablehlo.add" or not isinstance(padding, ir.DenseIntElementsAttr):
        return False
    plain = all(name not in op.attributes or list(ir.DenseI64ArrayAttr(op.attributes[name])) == [1] for name in _ONES)
    window = list(ir.DenseI64ArrayAttr(op.attributes["window_dimensions"]))
    return plain and window == [count] and [padding[0], padding[1]] == [count - 1, 0]
