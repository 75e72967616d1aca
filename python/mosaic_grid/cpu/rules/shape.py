"""Operations that move whole vectors about and compute nothing; one rule for `vector` and `tpu` where they agree."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir

from mosaic_grid.cpu import build
from mosaic_grid.cpu.lowering import Lowering, Rule
from mosaic_grid.cpu.rules.attributes import integer, integers
from mosaic_grid.cpu.types import lowered
from mosaic_grid.ir_types import Value


def shape_of_result(op: ir.Operation, number: int = 0) -> tuple[int, ...]:
    """The shape of a result; a scalar has none."""
    return tuple(lowered(op.results[number].type).shape)


def stretch(value: Value, shape: Sequence[int]) -> Value:
    """Repeats `value`, whose dimensions are the trailing ones of `shape`; those of size 1 are stretched."""
    rank = len(build.shape_of(value))
    return build.broadcast(value, shape, range(len(shape) - rank, len(shape)))


def stack_last(values: Sequence[Value]) -> Value:
    """The values, of one shape, side by side along a new last dimension."""
    shape = build.shape_of(values[0])
    return build.concatenate([build.reshape(value, (*shape, 1)) for value in values], len(shape))


def _broadcast(low: Lowering, op: ir.Operation) -> Value:
    return stretch(low.value(op.operands[0]), shape_of_result(op))


def _reshape(low: Lowering, op: ir.Operation) -> Value:
    return build.reshape(low.value(op.operands[0]), shape_of_result(op))


def _transpose(low: Lowering, op: ir.Operation) -> Value:
    return build.transpose(low.value(op.operands[0]), integers(op, "permutation"))


def _concatenate(low: Lowering, op: ir.Operation) -> Value:
    return build.concatenate(low.operands(op), integer(op, "dimension"))


def _interleave(low: Lowering, op: ir.Operation) -> Value:
    """The elements of the last dimension alternate."""
    return build.reshape(stack_last(low.operands(op)), shape_of_result(op))


def _deinterleave(low: Lowering, op: ir.Operation) -> list[Value]:
    """The even elements of the last dimension, and the odd ones."""
    value = low.value(op.operands[0])
    shape = build.shape_of(value)
    half = (*shape[:-1], shape[-1] // 2)
    steps = [1] * (len(shape) - 1) + [2]
    return [build.slice_(value, [0] * (len(shape) - 1) + [first], half, steps) for first in (0, 1)]


def _from_elements(low: Lowering, op: ir.Operation) -> Value:
    """Scalars in row-major order."""
    parts = [build.reshape(value, (1,)) for value in low.operands(op)]
    return build.reshape(build.concatenate(parts, 0), shape_of_result(op))


def _to_elements(low: Lowering, op: ir.Operation) -> list[Value]:
    """Scalars in row-major order."""
    count = len(op.results)
    flat = build.reshape(low.value(op.operands[0]), (count,))
    return [build.reshape(build.slice_(flat, (number,), (1,)), ()) for number in range(count)]


RULES: dict[str, Rule] = {
    "vector.broadcast": _broadcast,
    "vector.shape_cast": _reshape,
    "vector.transpose": _transpose,
    "vector.interleave": _interleave,
    "vector.deinterleave": _deinterleave,
    "vector.from_elements": _from_elements,
    "vector.to_elements": _to_elements,
    "tpu.reshape": _reshape,
    "tpu.transpose": _transpose,
    "tpu.concatenate": _concatenate,
}
