"""For how many devices a program is, partitions of one or replicas, and which of them a kernel means."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from jaxlib.mlir import ir

from mosaic_grid.grid import I32_MAX
from mosaic_grid.ir_types import Value
from mosaic_grid.program import attribute_of

PARTITIONS, REPLICAS = "mhlo.num_partitions", "mhlo.num_replicas"


def stated(op: ir.Operation, name: str) -> int | None:
    """The number of partitions or of replicas of the program that an operation is in; `None` where it isn't said."""
    program = op
    while program.parent is not None:
        program = program.parent.operation
    found = attribute_of(program, name, ir.IntegerAttr)
    return None if found is None else found.value


def is_own(op: ir.Operation, device: Value) -> bool:
    """Whether the number of a device is surely that of the device that the operation runs on.

    It is if the program says that it is for one device, whatever the number is computed from. Else the number is looked
    at for each of the devices.
    """
    counts = [stated(op, name) for name in (PARTITIONS, REPLICAS)]
    if None in counts:
        return isinstance(device.owner, ir.Operation | ir.OpView) and device.owner.name == _DEVICE
    count = next((count for count in counts if count is not None and count > 1), 1)
    return count == 1 or all(_number(device, each) == each for each in range(count))


def _number(value: Value, device: int) -> int | None:
    """What an integer is on a device, if it is computed from that alone, with no number below 0 or beyond 31 bits."""
    owner = value.owner
    if not isinstance(owner, ir.Operation | ir.OpView):
        return None
    if owner.name == _DEVICE:
        return device
    if owner.name == "arith.constant":
        attribute = owner.attributes["value"]
        found = attribute.value if isinstance(attribute, ir.IntegerAttr) else None
    elif owner.name in _ARITHMETIC:
        left, right = (_number(operand, device) for operand in owner.operands)
        if left is None or right is None or (right == 0 and owner.name in _DIVISIONS):
            return None
        found = _ARITHMETIC[owner.name](left, right)
    else:
        return None
    return found if found is not None and 0 <= found <= I32_MAX else None


_DEVICE = "tpu.device_id"
_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "arith.addi": operator.add,
    "arith.divsi": operator.floordiv,
    "arith.divui": operator.floordiv,
    "arith.muli": operator.mul,
    "arith.remsi": operator.mod,
    "arith.remui": operator.mod,
    "arith.subi": operator.sub,
}
_DIVISIONS = frozenset({"arith.divsi", "arith.divui", "arith.remsi", "arith.remui"})
