"""Reading and replacing a part of a vector: `vector.extract`, `vector.insert` and their strided relatives."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir

from mosaic_grid.cpu import build
from mosaic_grid.cpu.build import Index
from mosaic_grid.cpu.lowering import Lowering, Rule, UnsupportedError
from mosaic_grid.cpu.rules.attributes import DYNAMIC, integers
from mosaic_grid.cpu.rules.shape import shape_of_result
from mosaic_grid.ir_types import Value


def _extract(low: Lowering, op: ir.Operation) -> Value:
    """The part at a position of the leading dimensions; a scalar where all of them are given."""
    value, *dynamic = op.operands
    source = low.value(value)
    position = _position(low, op, dynamic)
    rest = build.shape_of(source)[len(position) :]
    part = build.dynamic_slice(source, [*position, *(0 for _ in rest)], [*(1 for _ in position), *rest])
    return build.reshape(part, rest)


def _insert(low: Lowering, op: ir.Operation) -> Value:
    """The second operand with the first at a position of its leading dimensions."""
    part, value, *dynamic = op.operands
    target = low.value(value)
    position = _position(low, op, dynamic)
    rest = build.shape_of(target)[len(position) :]
    piece = build.reshape(low.value(part), [*(1 for _ in position), *rest])
    return build.update(target, piece, [*position, *(0 for _ in rest)])


def _position(low: Lowering, op: ir.Operation, dynamic: Sequence[Value]) -> list[Index]:
    operands = iter(dynamic)
    static = integers(op, "static_position")
    if -1 in static:
        raise UnsupportedError("a poisoned position")
    return [low.index(next(operands)) if number == DYNAMIC else number for number in static]


def _extract_strided_slice(low: Lowering, op: ir.Operation) -> Value:
    """Offsets are of the leading dimensions, the others are taken whole; MLIR takes no strides but 1."""
    shape, starts = shape_of_result(op), integers(op, "offsets")
    return build.slice_(low.value(op.operands[0]), starts + [0] * (len(shape) - len(starts)), shape)


def _insert_strided_slice(low: Lowering, op: ir.Operation) -> Value:
    """The dimensions of the part are the trailing ones of the target; MLIR takes no strides but 1."""
    part, target = low.operands(op)
    missing = len(build.shape_of(target)) - len(build.shape_of(part))
    piece = build.reshape(part, [*(1 for _ in range(missing)), *build.shape_of(part)])
    return build.update(target, piece, integers(op, "offsets"))


RULES: dict[str, Rule] = {
    "vector.extract": _extract,
    "vector.insert": _insert,
    "vector.extract_strided_slice": _extract_strided_slice,
    "vector.insert_strided_slice": _insert_strided_slice,
}
