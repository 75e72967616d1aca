"""The operands of a loop's launch as values in front of the loop, of all elements together."""

from __future__ import annotations

import dataclasses

from jaxlib.mlir import ir

from mosaic_grid.batching import vectors
from mosaic_grid.batching.body import PURE, Batched, Operand
from mosaic_grid.batching.kernel import batched_shape
from mosaic_grid.batching.loop import Loop
from mosaic_grid.dataflow.control import defining
from mosaic_grid.ir_types import Value


@dataclasses.dataclass
class Outside:
    """The loop's operands as values in front of it, at the current insertion point."""

    loop: Loop

    def __post_init__(self) -> None:
        """Nothing is hoisted yet."""
        self._made: dict[Value, Value] = {}

    def shared(self, operand: Operand) -> Value:
        """What all elements have in common."""
        assert not isinstance(operand, Batched), "the operand differs between elements"
        return self._outside(operand.value)

    def batched(self, operand: Operand) -> Value:
        """The operands of all elements, stacked along the first axis."""
        sizes = self.loop.sizes
        if isinstance(operand, Batched):
            return vectors.stacked(self._outside(operand.source), operand.axes, sizes)
        return vectors.stacked(self._outside(operand.value), (None,) * len(sizes), sizes)

    def array(self, operand: Operand) -> Value:
        """The arrays of all elements, each in the shape that it has in a batch."""
        every = self.batched(operand)
        size, *shape = ir.RankedTensorType(every.type).shape
        return vectors.reshaped(every, batched_shape(size, shape))

    def table(self, operand: Operand) -> Value:
        """The tables of all elements behind each other."""
        return vectors.flat(self.batched(operand))

    def _outside(self, value: Value) -> Value:
        """A value that is the same in each iteration; what the loop computes of constants is computed again."""
        body = self.loop.op.regions[1].blocks[0]
        if isinstance(value, ir.BlockArgument):
            return self.loop.op.operands[value.arg_number] if value.owner == body else value
        if value not in self._made:
            op, number = defining(value)
            inside = op.name in PURE and self._is_inside(op)
            self._made[value] = self._clone(op).results[number] if inside else value
        return self._made[value]

    def _is_inside(self, op: ir.Operation) -> bool:
        """Whether an operation is in the loop's body, or in a function that it calls."""
        block, around = op.block, self.loop.op
        while True:
            if around.block == block:
                return False
            parent = around.parent
            if parent is None or parent.operation.name == "func.func":
                return True
            around = parent.operation

    def _clone(self, op: ir.Operation) -> ir.Operation:
        operands = [self._outside(each) for each in op.operands]
        clone = op.clone().operation
        for number, each in enumerate(operands):
            clone.operands[number] = each
        return clone
