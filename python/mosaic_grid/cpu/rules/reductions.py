"""Reductions: over dimensions of a vector, with an accumulator or without, and to the index of an extreme element."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.lowering import Lowering, Rule, UnsupportedError
from mosaic_grid.cpu.rules.attributes import integer, integers, keyword, splat_of
from mosaic_grid.cpu.rules.combining import combination
from mosaic_grid.cpu.rules.floats import is_nan
from mosaic_grid.cpu.rules.shape import shape_of_result
from mosaic_grid.ir_types import Value


def _multi_reduction(low: Lowering, op: ir.Operation) -> Value:
    """The accumulator is combined in too, and rounded with the rest."""
    return _reduced(low, op, integers(op, "reduction_dims"))


def _reduction(low: Lowering, op: ir.Operation) -> Value:
    """Of a vector of one dimension, to a scalar; the accumulator may be left out."""
    return _reduced(low, op, [0])


def _reduced(low: Lowering, op: ir.Operation, dimensions: Sequence[int]) -> Value:
    value = low.value(op.operands[0])
    element = build.element_of(value)
    kind = combination(keyword(op, "kind"), element)
    wide = kind.enter(value)
    result = build.reduce(wide, dimensions, kind.start(build.element_of(wide)), kind.combine) if dimensions else wide
    for accumulator in op.operands[1:]:
        if not kind.is_neutral(splat_of(accumulator), element):
            result = kind.combine(kind.enter(low.value(accumulator)), result)
    return kind.leave(result, element)


def _keeping_rank(low: Lowering, op: ir.Operation) -> Value:
    """What is reduced keeps a dimension of size 1."""
    return build.reshape(_reduced(low, op, integers(op, "dimensions")), shape_of_result(op))


def _reduce_index(low: Lowering, op: ir.Operation) -> Value:
    return _extreme_index(low, op, integer(op, "axis"))


def _extreme_index(low: Lowering, op: ir.Operation, axis: int) -> Value:
    """The place of the greatest or least element: of the first NaN where there is one, else of the first of equals.

    That is what `jnp.argmax` and `jnp.argmin` return, which are lowered to it.
    """
    kind = combination(keyword(op, "kind").replace("arg_", "") + "imumf", _element(op))
    value = kind.enter(low.value(op.operands[0]))
    shape = build.shape_of(value)
    extreme = build.reduce(value, [axis], kind.start(build.element_of(value)), kind.combine)
    others = [k for k in range(len(shape)) if k != axis]
    found = hlo.or_(build.compare(value, build.broadcast(extreme, shape, others), "EQ"), is_nan(value))
    last = build.constant(shape[axis], shape, build.i32_type())
    places = build.select(found, build.iota(shape, axis), last)
    first = build.reduce(places, [axis], build.i32(shape[axis]), hlo.minimum)
    return build.convert(first, ir.VectorType(op.results[0].type).element_type)


def _element(op: ir.Operation) -> ir.Type:
    return ir.VectorType(op.operands[0].type).element_type


def _all_reduce(low: Lowering, op: ir.Operation) -> Value:
    """A reduction along a dimension, whose result stands in all of its places."""
    value = low.value(op.operands[0])
    element, shape = build.element_of(value), build.shape_of(value)
    axis, kind = integer(op, "dim"), keyword(op, "kind")
    if element == build.i1_type():
        return build.splat(_of_mask(value, kind), shape_of_result(op))
    result = _extreme_index(low, op, axis) if kind.startswith("arg_") else _reduced(low, op, [axis])
    return build.broadcast(result, shape, [k for k in range(len(shape)) if k != axis])


def _of_mask(mask: Value, kind: str) -> Value:
    """How many hold (`sum`), or which is the first that holds: the size, if none does (`find_first_set`)."""
    shape = build.shape_of(mask)
    if len(shape) != 1:
        raise UnsupportedError(f"the kind {kind} of a mask with {len(shape)} dimensions")
    if kind == "sum":
        return build.reduce(build.convert(mask, build.i32_type()), [0], build.i32(0), hlo.add)
    if kind == "find_first_set":
        places = build.select(mask, build.iota(shape, 0), build.constant(shape[0], shape, build.i32_type()))
        return build.reduce(places, [0], build.i32(shape[0]), hlo.minimum)
    raise UnsupportedError(f"the kind {kind} of a mask")


RULES: dict[str, Rule] = {
    "vector.multi_reduction": _multi_reduction,
    "vector.reduction": _reduction,
    "tpu.all_reduce": _all_reduce,
    "tpu.reduce": _keeping_rank,
    "tpu.reduce_index": _reduce_index,
}
