"""One of several cores that go through a kernel together: what is its own while another one is at it."""

from __future__ import annotations

import dataclasses

from mosaic_grid.cpu.build import Index
from mosaic_grid.cpu.grid import Core
from mosaic_grid.cpu.lowering import Lowered
from mosaic_grid.cpu.roots import Root
from mosaic_grid.ir_types import Value


@dataclasses.dataclass
class OneCore:
    """One of the cores: where it is in the grid, what it has computed, and the memory that is its own.

    `fixed` are its indices, those of the steps not counting; `places` are the indices of its blocks, and `step` is what
    faults are told of where it is (`Faults.place`).
    """

    fixed: list[Index]
    values: dict[Value, Lowered] = dataclasses.field(default_factory=dict)
    memory: dict[Root, Value] = dataclasses.field(default_factory=dict)
    indices: list[Value] = dataclasses.field(default_factory=list)
    places: list[list[Index]] = dataclasses.field(default_factory=list)
    step: Value | None = None


def enter(core: Core, one: OneCore, shared: set[Root]) -> None:
    """From here on it is this core that does things; the memory that cores share stays what it is."""
    low = core.low
    low.translated(one.values)
    low.indices = one.indices
    if low.faults is not None:
        low.faults.place = one.step
    kept = {root: value for root, value in low.memory.state.items() if root in shared}
    low.memory.state = kept | one.memory


def leave(core: Core, one: OneCore, shared: set[Root]) -> None:
    """Keeps what the core has computed, and its memory."""
    low = core.low
    one.values = low.translated({})
    one.step = None if low.faults is None else low.faults.place
    one.memory = {root: value for root, value in low.memory.state.items() if root not in shared}
