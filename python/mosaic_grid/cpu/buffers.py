"""Windows with a buffer: how a block comes in and goes out as the grid is stepped through.

An output's block goes back when the next step has another, an input's comes in then: as Mosaic's pipeline does it, one
step at a time. A buffer that is known to hold another block at each step, or the same one throughout, needs no
comparison, and neither does one that each step writes whole; what the arrays hold is the same.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence

from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.build import Index
from mosaic_grid.cpu.lowering import Lowering
from mosaic_grid.cpu.roots import Kind, Root
from mosaic_grid.cpu.views import View
from mosaic_grid.cpu.windows import Block, Operand
from mosaic_grid.ir_types import Value

NOWHERE = -(2**31)
"""The block index of a buffer that holds no block yet."""


@dataclasses.dataclass(frozen=True, eq=False)
class Buffer(abc.ABC):
    """The buffer of one window on one core. `root` has the shape that the kernel sees, squeezed dimensions gone."""

    operand: Operand
    block: Block
    root: Root

    @property
    def carried(self) -> tuple[Root, ...]:
        """What has to be kept from one step to the next."""
        return ()

    def start(self, low: Lowering) -> None:  # noqa: B027 (not every buffer has something to do)
        """Before the first step."""

    @abc.abstractmethod
    def enter(self, low: Lowering, place: Sequence[Index]) -> None:
        """At the start of a step whose block has the index `place`."""

    def leave(self, low: Lowering, place: Sequence[Index]) -> None:  # noqa: B027
        """At the end of a step."""

    def finish(self, low: Lowering) -> None:  # noqa: B027
        """After the last step."""

    def bring_in(self, low: Lowering, place: Sequence[Index]) -> None:
        """Fills the buffer from the array."""
        part = self.part(place)
        low.memory.state[self.root] = build.reshape(low.memory.read(part), self.root.shape)
        if low.watch is not None:
            low.watch.copied(part, self._whole)

    def write_back(self, low: Lowering, place: Sequence[Index]) -> None:
        """Writes the buffer to the array."""
        part = self.part(place)
        low.memory.write(part, build.reshape(low.memory.whole(self.root), self.block.shape))
        if low.watch is not None:
            low.watch.copied(self._whole, part)

    def forget(self, low: Lowering) -> None:
        """Makes the contents those of memory that nobody wrote."""
        low.forget(self.root)

    @property
    def _whole(self) -> View:
        return View(self.root).reshape(self.block.shape)

    def part(self, place: Sequence[Index]) -> View:
        """Where the block of this index is in the array."""
        offsets = map(build.add_index, self.operand.origin, self.block.offsets(place))
        return View(self.operand.array).slice(list(offsets), self.block.shape)


class Resident(Buffer):
    """An input with the same block throughout: it comes in once."""

    def start(self, low: Lowering) -> None:
        """Brings the block in."""
        self.bring_in(low, self.block.indices(low, low.indices, ()))

    def enter(self, low: Lowering, place: Sequence[Index]) -> None:
        """It is in already."""


class Streamed(Buffer):
    """An input that is read anew at each step, from an array that nobody writes."""

    def enter(self, low: Lowering, place: Sequence[Index]) -> None:
        """Brings the block in."""
        self.bring_in(low, place)


class Written(Buffer):
    """An output with another block at each step, or that each step writes anew: it goes back at the end of each."""

    def enter(self, low: Lowering, place: Sequence[Index]) -> None:
        """Starts with a fresh buffer."""
        self.forget(low)

    def leave(self, low: Lowering, place: Sequence[Index]) -> None:
        """Writes the block back."""
        self.write_back(low, place)


@dataclasses.dataclass(frozen=True, eq=False)
class Held(Buffer):
    """A buffer that keeps its block while the index stays the same; `held` are the components of that index, or a 0.

    `restores` is of outputs that may be revisited at any time: their block comes in like an input's.
    """

    held: tuple[Root, ...]
    restores: bool

    @property
    def carried(self) -> tuple[Root, ...]:
        """The buffer, and which block it holds."""
        return (self.root, *self.held)

    def start(self, low: Lowering) -> None:
        """Holds no block at first."""
        self.forget(low)
        for root in self.held:
            low.memory.state[root] = build.i32(NOWHERE)

    def enter(self, low: Lowering, place: Sequence[Index]) -> None:
        """Exchanges the block if it is another."""
        before = self._holds(low)
        after = [build.as_value(index) for index in place] or [build.i32(0)]
        moved = build.any_of([build.compare(new, old, "NE") for new, old in zip(after, before, strict=True)])
        if self.operand.is_output:
            self._flush(low, hlo.and_(moved, _is_somewhere(before)), before)
        if self.restores or not self.operand.is_output:
            low.when(moved, lambda: self.bring_in(low, place), [self.root])
        else:
            low.when(moved, lambda: self.forget(low), [self.root])
        low.memory.state.update(zip(self.held, after, strict=True))

    def finish(self, low: Lowering) -> None:
        """Writes an output back."""
        if self.operand.is_output:
            before = self._holds(low)
            self._flush(low, _is_somewhere(before), before)

    def _flush(self, low: Lowering, when: Value, place: Sequence[Value]) -> None:
        array = self.operand.array
        low.when(when, lambda: self.write_back(low, place[: len(self.block.shape)]), [array])
        # the buffer's next contents may then take the place of these
        state = low.memory.state
        state[array], state[self.root] = build.barrier(state[array], state[self.root])

    def _holds(self, low: Lowering) -> list[Value]:
        return [low.memory.state[root] for root in self.held]


def buffer_for(
    operand: Operand, shape: tuple[int, ...], fastest: Sequence[int], *, shared: bool, restores: bool, fresh: bool
) -> Buffer:
    """The kind of buffer that moves no more than it must.

    `shape` is the one the kernel sees. `fastest` are the dimensions one of which changes at every step, the innermost
    last (none for a grid of one step), `shared` says that somebody may write the array, or the buffer of an input,
    meanwhile, and `fresh` that each step writes all of the buffer whatever it holds.
    """
    block, array = operand.block, operand.array
    assert block is not None
    root = Root(f"window of {array.name}", shape, array.element, Kind.WINDOW, operand.argument.location)
    if not operand.is_output and not shared:
        if block.is_constant:
            return Resident(operand, block, root)
        if not fastest or block.depends_on(fastest[-1]):
            return Streamed(operand, block, root)
    if operand.is_output and not shared and not restores and (fresh or all(map(block.follows, fastest))):
        return Written(operand, block, root)
    held = tuple(
        Root(f"block {axis} of {root.name}", (), build.i32_type(), Kind.GRID) for axis in range(len(block.shape))
    )
    if not held:  # a scalar's only block
        held = (Root(f"whether {root.name} holds its block", (), build.i32_type(), Kind.GRID),)
    return Held(operand, block, root, held, restores)


def _is_somewhere(place: Sequence[Value]) -> Value:
    return build.compare(place[0], build.i32(NOWHERE), "NE")
