"""What integers a kernel compares with: contents of unwritten memory that a comparison would show."""

from __future__ import annotations

from collections.abc import Iterator

from jaxlib.mlir import ir

from mosaic_grid.cpu.touches import nested

_COMPARE = frozenset({"arith.cmpi", "arith.maxsi", "arith.maxui", "arith.minsi", "arith.minui"})
_MOST = 8
"""How many constants are looked at: the program runs again for each number that is tried."""
_LARGE = 1000
"""A number beyond what small sizes and lengths are compared with; not larger, as it may become the length of a loop."""


def telling_numbers(body: ir.Operation) -> tuple[int, ...]:
    """Numbers on both sides of the constants that a kernel compares integers with, these too, and large ones."""
    constants = dict.fromkeys(number for op in nested(body) if op.name in _COMPARE for number in _constants(op))
    near = [number for number in constants if abs(number) <= _LARGE][:_MOST]
    return tuple(sorted({-_LARGE, _LARGE, *(number + step for number in near for step in (-1, 0, 1))}))


def _constants(op: ir.Operation) -> Iterator[int]:
    for operand in op.operands:
        owner = operand.owner
        if isinstance(owner, ir.Operation | ir.OpView) and owner.name == "arith.constant":
            value = owner.attributes["value"]
            if isinstance(value, ir.DenseElementsAttr) and value.is_splat:
                value = value.get_splat_value()
            if isinstance(value, ir.IntegerAttr):
                yield value.value
