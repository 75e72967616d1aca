"""Reading what an operation's attributes and constant operands say."""

from __future__ import annotations

import re

from jaxlib.mlir import ir

from mosaic_grid.ir_types import Value

DYNAMIC = -(2**63)
"""Stands in a list of static numbers for one that is an operand."""

_THROUGH = frozenset({"vector.broadcast", "vector.shape_cast", "tpu.reshape"})


def integers(op: ir.Operation, name: str) -> list[int]:
    """A list of integers, whether a dense array or an array of integer attributes."""
    listed = op.attributes[name]
    if isinstance(listed, ir.ArrayAttr):
        return [ir.IntegerAttr(item).value for item in listed]
    assert isinstance(listed, ir.DenseI64ArrayAttr | ir.DenseI32ArrayAttr), f"{name} is {listed}"
    return [int(item) for item in listed]


def integer(op: ir.Operation, name: str) -> int:
    """An integer."""
    value: int = ir.IntegerAttr(op.attributes[name]).value
    return value


def flag(op: ir.Operation, name: str, default: bool = False) -> bool:
    """A boolean; `default` where it is left out."""
    return bool(ir.BoolAttr(op.attributes[name]).value) if name in op.attributes else default


def keyword(op: ir.Operation, name: str) -> str:
    """The word in the angle brackets of an enumeration, such as `add` in `#vector.kind<add>`."""
    found = re.search(r"<\s*(\w+)\s*>", str(op.attributes[name]))
    assert found is not None, f"{name} is {op.attributes[name]}"
    return found.group(1)


def splat_of(value: Value) -> float | int | None:
    """The one number that a constant scalar or vector is made of; `None` where it is no such constant.

    Integers are as signed as the attribute: those of signless types may be negative.
    """
    owner = value.owner
    while isinstance(owner, ir.Operation | ir.OpView) and owner.name in _THROUGH:
        owner = owner.operands[0].owner
    if not isinstance(owner, ir.Operation | ir.OpView) or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    return attribute.value if isinstance(attribute, ir.IntegerAttr | ir.FloatAttr | ir.BoolAttr) else None
