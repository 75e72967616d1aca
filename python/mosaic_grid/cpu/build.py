"""StableHLO, a short function for each op that the lowering needs; insertion point and location are current.

Values are ranked tensors of static shape; a scalar has rank 0. An `Index` is an i32 scalar, or a Python integer where
it is known: index arithmetic on integers leaves no op behind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.ir_types import Value

Index: TypeAlias = int | Value
Shape: TypeAlias = Sequence[int]


def tensor(shape: Shape, element: ir.Type) -> ir.RankedTensorType:
    """The tensor type; an empty shape is a scalar."""
    return ir.RankedTensorType.get(list(shape), element)


def shape_of(value: Value) -> tuple[int, ...]:
    """The shape of a tensor."""
    return tuple(ir.RankedTensorType(value.type).shape)


def element_of(value: Value) -> ir.Type:
    """The element type of a tensor."""
    return ir.RankedTensorType(value.type).element_type


def is_float(element: ir.Type) -> bool:
    """Whether the type is one of the floating-point types, 8-bit ones included."""
    return isinstance(element, ir.FloatType)


def i32_type() -> ir.Type:
    """The type of indices."""
    return ir.IntegerType.get_signless(32)


def i1_type() -> ir.Type:
    """The type of predicates."""
    return ir.IntegerType.get_signless(1)


def constant(number: float, shape: Shape, element: ir.Type) -> Value:
    """A tensor whose elements are all `number`; a float for floating-point elements, else an integer or a bool."""
    attribute = ir.FloatAttr.get(element, float(number)) if is_float(element) else _integer(element, int(number))
    return hlo.constant(ir.DenseElementsAttr.get_splat(tensor(shape, element), attribute))


def i32(number: int) -> Value:
    """An i32 scalar."""
    return constant(number, (), i32_type())


def true() -> Value:
    """The predicate that holds."""
    return constant(1, (), i1_type())


def array(values: np.ndarray[Any, Any]) -> Value:
    """An i32 tensor of these values."""
    values = np.ascontiguousarray(values, np.int32)
    return hlo.constant(ir.DenseElementsAttr.get(values, type=i32_type(), shape=list(values.shape)))


def zeros_like(value: Value) -> Value:
    """Zeros of the type of `value`."""
    return constant(0, shape_of(value), element_of(value))


def lowest(element: ir.Type) -> float:
    """The least number of a type: what a maximum starts from."""
    if is_float(element):
        return -math.inf if _has_infinity(element) else -_largest(element)
    kind = ir.IntegerType(element)
    return 0 if kind.is_unsigned or kind.width == 1 else -(2 ** (kind.width - 1))


def highest(element: ir.Type) -> float:
    """The greatest number of a type: what a minimum starts from."""
    if is_float(element):
        return math.inf if _has_infinity(element) else _largest(element)
    kind = ir.IntegerType(element)
    return 2**kind.width - 1 if kind.is_unsigned or kind.width == 1 else 2 ** (kind.width - 1) - 1


def broadcast(value: Value, shape: Shape, dimensions: Sequence[int]) -> Value:
    """`stablehlo.broadcast_in_dim`: dimension k of `value` becomes dimension `dimensions[k]` of the result."""
    if shape_of(value) == tuple(shape) and list(dimensions) == list(range(len(shape))):
        return value
    result = tensor(shape, element_of(value))
    return hlo.broadcast_in_dim(result, value, ir.DenseI64ArrayAttr.get(list(dimensions)))


def splat(scalar: Value, shape: Shape) -> Value:
    """A tensor of one scalar."""
    return broadcast(scalar, shape, ())


def reshape(value: Value, shape: Shape) -> Value:
    """The same elements in another shape."""
    return value if shape_of(value) == tuple(shape) else hlo.reshape(tensor(shape, element_of(value)), value)


def convert(value: Value, element: ir.Type) -> Value:
    """`stablehlo.convert`: to floats by rounding to nearest even, to integers towards zero."""
    return value if element_of(value) == element else hlo.convert(tensor(shape_of(value), element), value)


def bitcast(value: Value, element: ir.Type) -> Value:
    """The bits of each element as another type of the same width."""
    return value if element_of(value) == element else hlo.bitcast_convert(tensor(shape_of(value), element), value)


def compare(left: Value, right: Value, direction: str) -> Value:
    """`direction` is EQ, NE, LT, LE, GT or GE; floats are ordered, integers as their type says."""
    return hlo.compare(left, right, ir.Attribute.parse(f"#stablehlo<comparison_direction {direction}>"))


def select(predicate: Value, yes: Value, no: Value) -> Value:
    """`yes` where the predicate holds; the predicate is a scalar or of the values' shape."""
    return hlo.select(predicate, yes, no)


def transpose(value: Value, permutation: Sequence[int]) -> Value:
    """Dimension k of the result is dimension `permutation[k]` of `value`."""
    if list(permutation) == sorted(permutation):
        return value
    return hlo.transpose(value, ir.DenseI64ArrayAttr.get(list(permutation)))


def concatenate(values: Sequence[Value], dimension: int) -> Value:
    """The values one after the other along a dimension."""
    return values[0] if len(values) == 1 else hlo.concatenate(values, ir.IntegerAttr.get(_i64(), dimension))


def iota(shape: Shape, dimension: int, element: ir.Type | None = None) -> Value:
    """The position along a dimension, of i32 unless another type is given."""
    return hlo.iota(tensor(shape, element or i32_type()), ir.IntegerAttr.get(_i64(), dimension))


def pad(value: Value, low: Sequence[int], high: Sequence[int], padding: Value, interior: Sequence[int] = ()) -> Value:
    """`padding`, a scalar, around and between the elements; negative counts cut off."""
    between = list(interior) or [0] * len(low)
    if not any([*low, *high, *between]):
        return value
    attributes = [ir.DenseI64ArrayAttr.get(list(counts)) for counts in (low, high, between)]
    return hlo.pad(value, padding, *attributes)


def slice_(value: Value, starts: Sequence[int], sizes: Sequence[int], strides: Sequence[int] = ()) -> Value:
    """Every `strides`-th element from `starts`, `sizes` of them; all known."""
    steps = list(strides) or [1] * len(starts)
    if tuple(sizes) == shape_of(value) and not any(starts):
        return value
    limits = [start + (size - 1) * step + 1 for start, size, step in zip(starts, sizes, steps, strict=True)]
    return hlo.slice(value, *(ir.DenseI64ArrayAttr.get(list(part)) for part in (starts, limits, steps)))


def dynamic_slice(value: Value, starts: Sequence[Index], sizes: Sequence[int]) -> Value:
    """A slice of known size; starts that would leave the tensor are clamped, as StableHLO says."""
    known = [start for start in starts if isinstance(start, int)]
    inside = all(isinstance(s, int) and 0 <= s <= n - k for s, n, k in zip(starts, shape_of(value), sizes, strict=True))
    if inside:
        return slice_(value, known, sizes)
    if tuple(sizes) == shape_of(value):
        return value  # wherever it starts, it is clamped to the whole
    return hlo.dynamic_slice(value, [as_value(start) for start in starts], ir.DenseI64ArrayAttr.get(list(sizes)))


def update(value: Value, part: Value, starts: Sequence[Index]) -> Value:
    """`value` with `part` in it at `starts`, clamped as in `dynamic_slice`."""
    if shape_of(value) == shape_of(part):
        return part
    return hlo.dynamic_update_slice(value, part, [as_value(start) for start in starts])


def barrier(*values: Value) -> list[Value]:
    """The same values, after all of them: what reads the results can't be moved before any operand."""
    return list(hlo.OptimizationBarrierOp(list(values)).results)


def reduce(value: Value, dimensions: Sequence[int], start: Value, combine: Callable[[Value, Value], Value]) -> Value:
    """Combines, two scalars at a time, the elements along `dimensions`, in any order."""
    kept = [size for axis, size in enumerate(shape_of(value)) if axis not in dimensions]
    scalar = tensor((), element_of(value))
    attribute = ir.DenseI64ArrayAttr.get(sorted(dimensions))
    op = hlo.ReduceOp([tensor(kept, element_of(value))], [value], [start], attribute)
    block = op.regions[0].blocks.append(scalar, scalar)
    with ir.InsertionPoint(block):
        hlo.return_([combine(*block.arguments)])
    result: Value = op.result
    return result


def while_(
    initial: Sequence[Value],
    condition: Callable[[Sequence[Value]], Value],
    body: Callable[[Sequence[Value]], Sequence[Value]],
) -> list[Value]:
    """`stablehlo.while`: the carried values after the last round; values from outside may be used in both parts."""
    types = [value.type for value in initial]
    op = hlo.WhileOp(types, list(initial))
    before = op.regions[0].blocks.append(*types)
    with ir.InsertionPoint(before):
        hlo.return_([condition(list(before.arguments))])
    after = op.regions[1].blocks.append(*types)
    with ir.InsertionPoint(after):
        hlo.return_(list(body(list(after.arguments))))
    return list(op.results)


def if_(
    predicate: Value,
    types: Sequence[ir.Type],
    then: Callable[[], Sequence[Value]],
    other: Callable[[], Sequence[Value]],
) -> list[Value]:
    """One of the two is run.

    It is a `stablehlo.case` whose first branch is `other`: XLA saves copies branch by branch, and where `other` leaves
    a tensor alone that `then` replaces, the one to save is the copy in `other`.
    """
    op = hlo.CaseOp(list(types), convert(predicate, i32_type()), 2)
    for region, branch in zip(op.regions, (other, then), strict=True):
        with ir.InsertionPoint(region.blocks.append()):
            hlo.return_(list(branch()))
    return list(op.results)


def as_value(index: Index) -> Value:
    """The index as an i32 scalar."""
    return i32(index) if isinstance(index, int) else index


def add_index(left: Index, right: Index) -> Index:
    """The sum."""
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    if left == 0 and isinstance(left, int):
        return right
    if right == 0 and isinstance(right, int):
        return left
    return hlo.add(as_value(left), as_value(right))


def multiply_index(left: Index, right: Index) -> Index:
    """The product."""
    if isinstance(left, int) and isinstance(right, int):
        return left * right
    for one, other in ((left, right), (right, left)):
        if isinstance(one, int) and one in (0, 1):
            return 0 if one == 0 else other
    return hlo.multiply(as_value(left), as_value(right))


def min_index(left: Index, right: Index) -> Index:
    """The lesser."""
    if isinstance(left, int) and isinstance(right, int):
        return min(left, right)
    return hlo.minimum(as_value(left), as_value(right))


def max_index(left: Index, right: Index) -> Index:
    """The greater."""
    if isinstance(left, int) and isinstance(right, int):
        return max(left, right)
    return hlo.maximum(as_value(left), as_value(right))


def all_of(predicates: Sequence[Value]) -> Value:
    """Whether all of the scalar predicates hold; of none it is true."""
    if not predicates:
        return true()
    result = predicates[0]
    for predicate in predicates[1:]:
        result = hlo.and_(result, predicate)
    return result


def any_of(predicates: Sequence[Value]) -> Value:
    """Whether one of the scalar predicates, at least one in number, holds."""
    result = predicates[0]
    for predicate in predicates[1:]:
        result = hlo.or_(result, predicate)
    return result


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def _integer(element: ir.Type, number: int) -> ir.Attribute:
    kind = ir.IntegerType(element)
    if kind.width == 1:
        return ir.BoolAttr.get(bool(number))
    return ir.IntegerAttr.get(element, number)


def _has_infinity(element: ir.Type) -> bool:
    name = str(element)
    return "FN" not in name and "UZ" not in name


def _largest(element: ir.Type) -> float:
    return {"f8E4M3FN": 448.0, "f8E4M3B11FNUZ": 30.0, "f8E4M3FNUZ": 240.0, "f8E5M2FNUZ": 57344.0, "f4E2M1FN": 6.0}[
        str(element)
    ]
