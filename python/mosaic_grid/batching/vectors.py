"""Tensors of the outer program with an entry for each element of a batch: the StableHLO ops that make them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from mosaic_grid.ir_types import Value


def constant(kind: ir.Type, value: float) -> Value:
    """A tensor of equal numbers."""
    element = ir.RankedTensorType(kind).element_type
    number = (
        ir.FloatAttr.get(element, value) if isinstance(element, ir.FloatType) else ir.IntegerAttr.get(element, value)
    )
    result: Value = stablehlo.constant(ir.DenseElementsAttr.get_splat(kind, number))
    return result


def stacked(value: Value, axes: Sequence[int | None], sizes: Sequence[int]) -> Value:
    """The slices along `axes`, which have these sizes, stacked along one first axis; the last of `axes` runs fastest.

    Where there is no axis (`None`) the slices are repeated.
    """
    kind = ir.RankedTensorType(value.type)
    present = [axis for axis in axes if axis is not None]
    others = [axis for axis in range(kind.rank) if axis not in present]
    value = _transposed(value, [*present, *others])
    shape = [kind.shape[axis] for axis in others]
    if len(present) < len(axes):
        every = ir.RankedTensorType.get([*sizes, *shape], kind.element_type)
        levels = [level for level, axis in enumerate(axes) if axis is not None]
        value = stablehlo.broadcast_in_dim(every, value, [*levels, *range(len(axes), len(axes) + len(others))])
    return reshaped(value, [math.prod(sizes), *shape])


def unstacked(value: Value, axes: Sequence[int], sizes: Sequence[int]) -> Value:
    """The inverse: slices that are stacked along the first axis are put along `axes`."""
    _, *shape = ir.RankedTensorType(value.type).shape
    others = [axis for axis in range(len(axes) + len(shape)) if axis not in axes]
    behind = [*axes, *others]
    return _transposed(reshaped(value, [*sizes, *shape]), [behind.index(axis) for axis in range(len(behind))])


def _transposed(value: Value, order: Sequence[int]) -> Value:
    result: Value = value
    if list(order) != list(range(len(order))):
        result = stablehlo.transpose(value, list(order))
    return result


def flat(value: Value) -> Value:
    """All elements in one dimension."""
    kind = ir.RankedTensorType(value.type)
    if kind.rank == 1:
        return value
    return reshaped(value, [math.prod(kind.shape)])


def reshaped(value: Value, shape: Sequence[int]) -> Value:
    """The tensor in another shape."""
    kind = ir.RankedTensorType(value.type)
    result: Value = value
    if list(kind.shape) != list(shape):
        result = stablehlo.reshape(ir.RankedTensorType.get(list(shape), kind.element_type), value)
    return result


def padded(value: Value, size: int, filler: int) -> Value:
    """A tensor of one dimension with `filler` behind it, `size` elements in all."""
    kind = ir.RankedTensorType(value.type)
    return _pad(value, 0, size - kind.shape[0], filler) if size > kind.shape[0] else value


def running_sums(value: Value) -> Value:
    """Each element of a tensor of one dimension with all those before it added, in a logarithm of steps."""
    count, distance = ir.RankedTensorType(value.type).shape[0], 1
    while distance < count:
        value = stablehlo.add(value, _pad(value, distance, -distance, 0))
        distance *= 2
    return value


def last_not_above(values: Value, count: int) -> Value:
    """For each number below `count` the place of the last of ascending `values`, the first of which is 0, that is not
    above it: how many are not above it, all compared at once.
    """
    kind = ir.RankedTensorType(values.type)
    every = ir.RankedTensorType.get([count, *kind.shape], kind.element_type)
    numbers, spread = stablehlo.iota(every, 0), stablehlo.broadcast_in_dim(every, values, [1])
    reached = stablehlo.compare(spread, numbers, stablehlo.ComparisonDirectionAttr.get("LE"))
    scalar = ir.RankedTensorType.get([], kind.element_type)
    sums = ir.Operation.create(
        "stablehlo.reduce",
        results=[ir.RankedTensorType.get([count], kind.element_type)],
        operands=[stablehlo.convert(every, reached), constant(scalar, 0)],
        attributes={"dimensions": ir.DenseI64ArrayAttr.get([1])},
        regions=1,
    )
    block = ir.Block.create_at_start(sums.regions[0], [scalar, scalar])
    with ir.InsertionPoint(block):
        stablehlo.return_([stablehlo.add(*block.arguments)])
    result: Value = stablehlo.subtract(sums.result, constant(sums.result.type, 1))
    return result


def last(value: Value) -> Value:
    """The last element of a tensor of one dimension, as a scalar."""
    kind = ir.RankedTensorType(value.type)
    count = kind.shape[0]
    one = stablehlo.slice(value, [count - 1], [count], [1])
    result: Value = stablehlo.reshape(ir.RankedTensorType.get([], kind.element_type), one)
    return result


def to_f32(value: Value) -> Value:
    """The numbers as f32."""
    kind = ir.RankedTensorType(value.type)
    result: Value = stablehlo.convert(ir.RankedTensorType.get(kind.shape, ir.F32Type.get()), value)
    return result


def _pad(value: Value, low: int, high: int, filler: int) -> Value:
    scalar = ir.RankedTensorType.get([], ir.RankedTensorType(value.type).element_type)
    result: Value = stablehlo.pad(value, constant(scalar, filler), [low], [high], [0])
    return result
