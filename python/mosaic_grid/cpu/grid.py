"""The steps of a grid on one core, in Mosaic's order: the last dimension fastest."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.buffers import Buffer
from mosaic_grid.cpu.build import Index
from mosaic_grid.cpu.lowering import Lowered, Lowering
from mosaic_grid.cpu.roots import Root
from mosaic_grid.cpu.views import View
from mosaic_grid.cpu.writes import written_roots
from mosaic_grid.ir_types import Value


@dataclasses.dataclass(frozen=True)
class Core:
    """What one core does. All that it keeps from one step to the next is state, `carried`.

    `axes` are the dimensions that it steps through, each with a counter; the other dimensions are those of the cores.
    `arguments` are the kernel's behind the grid indices. `tables` are the prefetch operands that it writes, of which
    each core has a copy in its SMEM, and its registers, with what they hold at first.
    """

    low: Lowering
    body: ir.Block
    axes: tuple[int, ...]
    counters: tuple[Root, ...]
    arguments: tuple[View, ...]
    prefetch: tuple[View, ...]
    buffers: tuple[Buffer, ...]
    scratch: tuple[Root, ...]
    tables: Mapping[Root, Value]

    @cached_property
    def carried(self) -> tuple[Root, ...]:
        """What the core keeps for itself from one step to the next."""
        buffers = [root for buffer in self.buffers for root in buffer.carried]
        return tuple(self.low.memory.with_shadows([*self.counters, *buffers, *self.scratch, *self.tables]))

    @property
    def written(self) -> tuple[Root, ...]:
        """Everything that a step may change, arrays included."""
        body = [op.operation for op in self.body.operations]
        arrays = [buffer.operand.array for buffer in self.buffers if buffer.operand.is_output]
        return tuple(dict.fromkeys([*self.carried, *arrays, *written_roots(self.low, body)]))

    def run(self, fixed: Sequence[Index]) -> None:
        """All steps, from fresh scratch on; `fixed` are the indices of the grid, those of `axes` not counting."""
        self.start(fixed)
        if self.axes:
            self.low.while_([], lambda _: self.more(), lambda _: self.step(fixed), self.written)
        else:
            self.step(fixed)
        self.finish()

    def start(self, fixed: Sequence[Index]) -> None:
        """The state before the first step. If some dimension is empty, that is the state after the last as well."""
        low = self.low
        low.memory.state.update(self.tables)
        for root in self.scratch:
            low.forget(root)
        if low.late is not None:
            low.late.restart(low.memory)
        if low.watch is not None:
            low.watch.begin()
        low.indices = [build.as_value(index) for index in fixed]
        for buffer in self.buffers:
            buffer.start(low)
        for counter in self.counters:
            low.memory.state[counter] = build.i32(0)
        bounds = [low.bounds[axis] for axis in self.axes]
        empty = [
            build.compare(build.as_value(n), build.i32(0), "LE") for n in bounds if not (isinstance(n, int) and n > 0)
        ]
        if empty:
            past = build.max_index(bounds[0], 0)
            low.memory.state[self.counters[0]] = build.select(build.any_of(empty), build.as_value(past), build.i32(0))

    def more(self) -> Value:
        """Whether a step is left."""
        last = build.as_value(self.low.bounds[self.axes[0]])
        return build.compare(self.low.memory.state[self.counters[0]], last, "LT")

    def step(self, fixed: Sequence[Index]) -> list[Value]:
        """One step, and on to the next."""
        low = self.low
        indices, places = self.enter(fixed)
        arguments: list[Lowered] = [*indices, *self.arguments]
        outside = set(low.memory.state)
        low.block(self.body, arguments)
        if low.watch is not None:
            low.watch.end(*(root for root in low.memory.state if root not in outside))
        self.leave(places)
        self.advance()
        return []

    def enter(self, fixed: Sequence[Index]) -> tuple[list[Value], list[list[Index]]]:
        """Makes the buffers hold the step's blocks; the step's grid indices, and the index of each buffer's block."""
        low = self.low
        low.indices = [build.as_value(index) for index in fixed]
        for axis, counter in zip(self.axes, self.counters, strict=True):
            low.indices[axis] = low.memory.state[counter]
        indices = list(low.indices)
        if low.faults is not None:
            low.faults.step(indices)
        places = {buffer: buffer.block.indices(low, indices, self.prefetch) for buffer in self.buffers}
        if low.watch is not None:
            low.watch.step(self.buffers, [places[buffer] for buffer in self.buffers])
        for buffer in sorted(self.buffers, key=lambda each: not each.operand.is_output):
            buffer.enter(low, places[buffer])
        return indices, [places[buffer] for buffer in self.buffers]

    def leave(self, places: Sequence[Sequence[Index]]) -> None:
        """What the buffers do at the end of a step."""
        for buffer, place in zip(self.buffers, places, strict=True):
            buffer.leave(self.low, place)

    def finish(self) -> None:
        """After the last step."""
        for buffer in self.buffers:
            buffer.finish(self.low)
        if self.low.watch is not None:
            self.low.watch.end(*self.scratch)

    def advance(self) -> None:
        """On to the next step."""
        state = self.low.memory.state
        carry: Value | None = None
        for axis, counter in reversed(list(zip(self.axes, self.counters, strict=True))):
            one = build.i32(1) if carry is None else build.convert(carry, build.i32_type())
            following = hlo.add(state[counter], one)
            carry = build.compare(following, build.as_value(self.low.bounds[axis]), "GE")
            state[counter] = following if axis == self.axes[0] else build.select(carry, build.i32(0), following)
