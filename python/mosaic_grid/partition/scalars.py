"""i32 scalars of the outer program: the few StableHLO ops a launch needs to compute shares and choose a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from mosaic_grid.ir_types import Value


def tensor() -> ir.Type:
    """The type of a scalar, `tensor<i32>`."""
    return ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))


def constant(value: int) -> Value:
    """`value` as a `tensor<i32>`."""
    element = ir.IntegerType.get_signless(32)
    attribute = ir.DenseElementsAttr.get_splat(tensor(), ir.IntegerAttr.get(element, value))
    result: Value = stablehlo.constant(attribute)
    return result


def add(a: Value, b: Value | int) -> Value:
    """`a + b`."""
    result: Value = stablehlo.add(a, _value(b))
    return result


def subtract(a: Value, b: Value | int) -> Value:
    """`a - b`."""
    result: Value = stablehlo.subtract(a, _value(b))
    return result


def multiply(a: Value, b: Value | int) -> Value:
    """`a * b`; nothing is emitted for a factor of one."""
    result: Value = a if b == 1 else stablehlo.multiply(a, _value(b))
    return result


def divide(a: Value, b: Value | int) -> Value:
    """`a / b`, rounded towards zero."""
    result: Value = stablehlo.divide(a, _value(b))
    return result


def ceil_divide(a: Value, b: int) -> Value:
    """`ceil(a / b)` for a >= 1, without the overflow of `a + b - 1`."""
    return add(divide(subtract(a, 1), b), 1)


def minimum(a: Value, b: Value | int) -> Value:
    """The smaller one."""
    result: Value = stablehlo.minimum(a, _value(b))
    return result


def maximum(a: Value, b: Value | int) -> Value:
    """The larger one."""
    result: Value = stablehlo.maximum(a, _value(b))
    return result


def compare(a: Value, direction: str, b: Value | int) -> Value:
    """`a < b` and so on as a `tensor<i1>`; `direction` is StableHLO's: LT, LE, GT, GE, EQ, NE."""
    result: Value = stablehlo.compare(a, _value(b), stablehlo.ComparisonDirectionAttr.get(direction))
    return result


def both(a: Value, b: Value) -> Value:
    """Logical and."""
    result: Value = stablehlo.and_(a, b)
    return result


def select(condition: Value, a: Value | int, b: Value | int) -> Value:
    """`a` where the condition holds, else `b`."""
    result: Value = stablehlo.select(condition, _value(a), _value(b))
    return result


def to_i32(condition: Value) -> Value:
    """1 where a `tensor<i1>` holds, else 0."""
    result: Value = stablehlo.convert(tensor(), condition)
    return result


def vector(values: Sequence[Value]) -> Value:
    """The scalars as one `tensor<Nxi32>`."""
    element = ir.IntegerType.get_signless(32)
    one = ir.RankedTensorType.get([1], element)
    parts = [stablehlo.reshape(one, value) for value in values]
    result: Value = parts[0] if len(parts) == 1 else stablehlo.concatenate(parts, dimension=0)
    return result


def _value(value: Value | int) -> Value:
    return constant(value) if isinstance(value, int) else value
