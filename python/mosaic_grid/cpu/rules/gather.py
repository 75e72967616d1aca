"""Operations that pick elements by index: gathers, shuffles and rotations."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.lowering import Lowering, Rule, UnsupportedError
from mosaic_grid.cpu.rules.attributes import integer, integers
from mosaic_grid.ir_types import Value


def take(value: Value, indices: Sequence[int], axis: int) -> Value:
    """Picks along one dimension, as `numpy.take` does; the indices are known and in range."""
    sizes = list(build.shape_of(value))
    sizes[axis] = 1
    numbers = hlo.GatherDimensionNumbers.get(
        offset_dims=[k for k in range(len(sizes)) if k != axis],
        collapsed_slice_dims=[axis],
        operand_batching_dims=[],
        start_indices_batching_dims=[],
        start_index_map=[axis],
        index_vector_dim=1,
    )
    positions = build.array(np.asarray(indices, np.int32))
    return hlo.gather(value, positions, numbers, ir.DenseI64ArrayAttr.get(sizes))


def take_along(value: Value, indices: Value, dimensions: Sequence[int]) -> Value:
    """Element `i` is that of `value` whose place in `dimensions`, taken together in row-major order, is `indices[i]`.

    In the other dimensions its place is that of `i`. Indices are taken modulo the number of places, as
    `tpu.dynamic_gather` says; a negative one counts from the end.
    """
    shape, result = build.shape_of(value), build.shape_of(indices)
    others = [axis for axis in range(len(shape)) if axis not in dimensions]
    places = math.prod(shape[axis] for axis in dimensions)
    linear = modulo(build.convert(indices, build.i32_type()), places)
    stride = places
    for axis in reversed(others):
        step = build.constant(stride, result, build.i32_type())
        linear = hlo.add(linear, hlo.multiply(build.iota(result, axis), step))
        stride *= shape[axis]
    flat = build.reshape(build.transpose(value, [*others, *dimensions]), (stride,))
    numbers = hlo.GatherDimensionNumbers.get(
        offset_dims=[],
        collapsed_slice_dims=[0],
        operand_batching_dims=[],
        start_indices_batching_dims=[],
        start_index_map=[0],
        index_vector_dim=len(result),
    )
    return hlo.gather(flat, linear, numbers, ir.DenseI64ArrayAttr.get([1]))


def modulo(value: Value, divisor: int) -> Value:
    """The remainder of i32 numbers, never negative."""
    shape = build.shape_of(value)
    by = build.constant(divisor, shape, build.i32_type())
    if divisor & (divisor - 1) == 0:
        return hlo.and_(value, build.constant(divisor - 1, shape, build.i32_type()))
    return hlo.remainder(hlo.add(hlo.remainder(value, by), by), by)


def _dynamic_gather(low: Lowering, op: ir.Operation) -> Value:
    value, indices = low.operands(op)
    return take_along(value, indices, integers(op, "dimensions"))


def _gather(low: Lowering, op: ir.Operation) -> Value:
    return take(low.value(op.operands[0]), integers(op, "indices"), integer(op, "dimension"))


def _shuffle(low: Lowering, op: ir.Operation) -> Value:
    """Picks from both operands, one behind the other along the first dimension."""
    mask = integers(op, "mask" if op.name == "vector.shuffle" else "pattern")
    if -1 in mask:
        raise UnsupportedError("a poisoned element")
    sources = [value if build.shape_of(value) else build.reshape(value, (1,)) for value in low.operands(op)]
    return take(build.concatenate(sources, 0), mask, 0)


def _rotate(low: Lowering, op: ir.Operation) -> Value:
    """Rolls towards higher indices, as `pltpu.roll` does: element `i` goes to `i + amount` modulo the size.

    With a stride the amount grows by it with each index of the stride dimension.
    """
    value, axis = low.value(op.operands[0]), integer(op, "dimension")
    shape = build.shape_of(value)
    size, amount = shape[axis], low.index(op.operands[1])
    if "stride" in op.attributes:
        first = build.splat(modulo(build.as_value(amount), size), shape)
        step = build.constant(integer(op, "stride") % size, shape, build.i32_type())
        more = hlo.multiply(build.iota(shape, integer(op, "stride_dimension")), step)
        places = hlo.subtract(build.iota(shape, axis), hlo.add(first, more))
        return take_along(value, places, [axis])
    if isinstance(amount, int):
        start: build.Index = -amount % size
    else:
        start = modulo(hlo.negate(amount), size)
    starts: list[build.Index] = [0] * len(shape)
    starts[axis] = start
    return build.dynamic_slice(build.concatenate([value, value], axis), starts, shape)


def _broadcast_in_sublanes(low: Lowering, op: ir.Operation) -> Value:
    """Sublane `i` is filled with its own lane `lane + i`; where there is no such lane, with any."""
    value = low.value(op.operands[0])
    shape = build.shape_of(value)
    if len(shape) != 2 or op.results[0].type != op.operands[0].type:
        raise UnsupportedError("vectors that are packed or change their shape")
    lane = build.constant(integer(op, "lane"), shape, build.i32_type())
    return take_along(value, hlo.add(build.iota(shape, 0), lane), [1])


RULES: dict[str, Rule] = {
    "vector.shuffle": _shuffle,
    "tpu.broadcast_in_sublanes": _broadcast_in_sublanes,
    "tpu.dynamic_gather": _dynamic_gather,
    "tpu.dynamic_rotate": _rotate,
    "tpu.gather": _gather,
    "tpu.sublane_shuffle": _shuffle,
}
