"""i32 scalars of the outer program: the few StableHLO ops a launch needs to compute shares and choose a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo


def constant(value: int) -> ir.Value:
    """`value` as a `tensor<i32>`."""
    kind = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))
    attribute = ir.DenseElementsAttr.get_splat(kind, ir.IntegerAttr.get(kind.element_type, value))
    return stablehlo.constant(attribute)


def add(a: ir.Value, b: ir.Value | int) -> ir.Value:
    """`a + b`."""
    return stablehlo.add(a, _value(b))


def subtract(a: ir.Value, b: ir.Value | int) -> ir.Value:
    """`a - b`."""
    return stablehlo.subtract(a, _value(b))


def multiply(a: ir.Value, b: ir.Value | int) -> ir.Value:
    """`a * b`; nothing is emitted for a factor of one."""
    return a if b == 1 else stablehlo.multiply(a, _value(b))


def divide(a: ir.Value, b: ir.Value | int) -> ir.Value:
    """`a / b`, rounded towards zero."""
    return stablehlo.divide(a, _value(b))


def ceil_divide(a: ir.Value, b: int) -> ir.Value:
    """`ceil(a / b)` for a >= 1, without the overflow of `a + b - 1`."""
    return add(divide(subtract(a, 1), b), 1)


def minimum(a: ir.Value, b: ir.Value | int) -> ir.Value:
    """The smaller one."""
    return stablehlo.minimum(a, _value(b))


def maximum(a: ir.Value, b: ir.Value | int) -> ir.Value:
    """The larger one."""
    return stablehlo.maximum(a, _value(b))


def compare(a: ir.Value, direction: str, b: ir.Value | int) -> ir.Value:
    """`a < b` and so on as a `tensor<i1>`; `direction` is StableHLO's: LT, LE, GT, GE, EQ, NE."""
    return stablehlo.compare(a, _value(b), stablehlo.ComparisonDirectionAttr.get(direction))


def both(a: ir.Value, b: ir.Value) -> ir.Value:
    """Logical and."""
    return stablehlo.and_(a, b)


def select(condition: ir.Value, a: ir.Value | int, b: ir.Value | int) -> ir.Value:
    """`a` where the condition holds, else `b`."""
    return stablehlo.select(condition, _value(a), _value(b))


def vector(values: Sequence[ir.Value]) -> ir.Value:
    """The scalars as one `tensor<Nxi32>`."""
    element = ir.IntegerType.get_signless(32)
    one = ir.RankedTensorType.get([1], element)
    parts = [stablehlo.reshape(one, value) for value in values]
    return parts[0] if len(parts) == 1 else stablehlo.concatenate(parts, dimension=0)


def _value(value: ir.Value | int) -> ir.Value:
    return constant(value) if isinstance(value, int) else value
