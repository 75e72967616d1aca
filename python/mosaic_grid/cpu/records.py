"""The records of a program's launches: what each kernel did wrong while the program ran, as more results of `@main`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from jaxlib.mlir import ir

from mosaic_grid.cpu.faults import Faults
from mosaic_grid.cpu.lowering import Lowering
from mosaic_grid.cpu.poison import codes_type
from mosaic_grid.cpu.touches import nested
from mosaic_grid.cpu.watch import Watch
from mosaic_grid.dataflow.effects import Effect, effect_of
from mosaic_grid.grid import Dimension
from mosaic_grid.ir_types import Value
from mosaic_grid.program import Kernel, Launch

_SAY = ("cf.assert", "tpu.log")
"""Operations that say something and needn't use memory."""


@dataclasses.dataclass(frozen=True)
class Record:
    """The record of one launch, or of several that share a function: what `faults` says of it.

    `watch` knows more where everything is checked. `kernel` is its name, `location` where it is launched.
    """

    kernel: str
    grid: tuple[Dimension, ...]
    location: ir.Location
    faults: Faults
    watch: Watch | None


@dataclasses.dataclass(frozen=True)
class Recorder:
    """What the function of a launch gets and returns beyond what the launch does: codes (`Poison`), and the record."""

    numbers: Iterator[int]
    everything: bool

    def argument_types(self) -> list[ir.Type]:
        """The types of further arguments."""
        return [codes_type()] if self.everything else []

    def start(self, low: Lowering, launch: Launch, kernel: Kernel, arguments: list[Value]) -> Record | None:
        """Begins with the record, if anything can go wrong.

        `kernel` is what is lowered, maybe a copy of the launch's own; `arguments` are the further ones.
        """
        waits = _waits(kernel)
        if not self.everything and not waits:
            return None
        capacity = _sites(kernel) if self.everything else waits
        low.faults = Faults(len(kernel.grid), everything=self.everything, capacity=capacity)
        low.faults.start(low.memory)
        location = launch.op.location
        if self.everything:
            (codes,) = arguments
            low.memory.watch = Watch(low, low.faults, kernel, location, codes, self.numbers)
        return Record(kernel.name, kernel.grid, location, low.faults, low.memory.watch)


def _sites(kernel: Kernel) -> int:
    """More than there can be sites in a kernel: some for each operation that uses memory or that says something."""
    operations = sum(
        op.name in _SAY or any(isinstance(value.type, ir.MemRefType) for value in op.operands)
        for op in nested(kernel.body)
    )
    return 10 * operations + 5 * len(kernel.windows) + 8


def _waits(kernel: Kernel) -> int:
    """How many operations wait."""
    return sum(effect_of(op) in (Effect.COPY_WAIT, Effect.SEM_WAIT) for op in nested(kernel.body))
