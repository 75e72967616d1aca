"""i32 scalars inside a kernel: the few ops that compute grid indices, at the current insertion point."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir

from mosaic_grid.ir_types import Value
from mosaic_grid.kernel_edit import ITERATION_BOUND

_PREDICATES = {"eq": 0, "ne": 1, "slt": 2, "sle": 3, "sgt": 4, "sge": 5}


def i32() -> ir.Type:
    """The type of grid indices."""
    return ir.IntegerType.get_signless(32)


def constant(value: int, kind: ir.Type | None = None) -> Value:
    """A constant, an i32 unless another type is asked for."""
    kind = kind or i32()
    return _create("arith.constant", kind, value=ir.IntegerAttr.get(kind, value))


def add(a: Value, b: Value) -> Value:
    """`a + b`."""
    return _create("arith.addi", a.type, [a, b])


def subtract(a: Value, b: Value) -> Value:
    """`a - b`."""
    return _create("arith.subi", a.type, [a, b])


def multiply(a: Value, b: Value) -> Value:
    """`a * b`."""
    return _create("arith.muli", a.type, [a, b])


def divide(a: Value, b: Value) -> Value:
    """`a / b`, rounded towards zero."""
    return _create("arith.divsi", a.type, [a, b])


def shift_right(a: Value, bits: int) -> Value:
    """`a / 2**bits` for a >= 0."""
    return _create("arith.shrui", a.type, [a, constant(bits)])


def mask(a: Value, bits: int) -> Value:
    """`a mod 2**bits`."""
    return _create("arith.andi", a.type, [a, constant((1 << bits) - 1)])


def minimum(a: Value, b: Value) -> Value:
    """The smaller one, as signed numbers."""
    return _create("arith.minsi", a.type, [a, b])


def compare(predicate: str, a: Value, b: Value) -> Value:
    """A comparison of signed numbers, `slt`, `sle` and so on, as an i1."""
    attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _PREDICATES[predicate])
    return _create("arith.cmpi", ir.IntegerType.get_signless(1), [a, b], predicate=attribute)


def select(condition: Value, a: Value, b: Value) -> Value:
    """`a` where the condition holds, else `b`."""
    return _create("arith.select", a.type, [condition, a, b])


def to_index(a: Value) -> Value:
    """An i32 as an index."""
    return _create("arith.index_cast", ir.IndexType.get(), [a])


def index(value: int) -> Value:
    """A constant index."""
    return constant(value, ir.IndexType.get())


def load(table: Value, position: Value) -> Value:
    """One entry of a one-dimensional i32 memref."""
    return _create("memref.load", i32(), [table, position])


def iteration_bound(axis: int) -> Value:
    """The bound of a dimension of the grid."""
    return _create(ITERATION_BOUND, i32(), dim=ir.IntegerAttr.get(i32(), axis))


def _create(name: str, kind: ir.Type, operands: Sequence[Value] = (), **attributes: ir.Attribute) -> Value:
    return ir.Operation.create(name, results=[kind], operands=operands, attributes=attributes).result
