"""Waits in vain, where nobody reads what a program returns beside its results: it calls Python, which raises."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.lowering import Lowering
from mosaic_grid.cpu.python_calls import call
from mosaic_grid.cpu.records import Record


@dataclasses.dataclass(frozen=True)
class Alarms:
    """`ring` is called with a launch's record and what that holds, if it isn't empty. It should raise.

    `callbacks` is the list of functions that goes to the compiler, others may be in it.
    """

    callbacks: list[Callable[..., Any]]
    ring: Callable[[Record, Any], None]

    def add(self, low: Lowering, record: Record) -> None:
        """To be called behind the kernel's last step."""
        rows = low.memory.state[record.faults.root]
        count, _ = build.shape_of(rows)
        often = build.slice_(rows, [0, 0], [count, 1])
        total = build.reduce(build.reshape(often, (count,)), [0], build.i32(0), hlo.maximum)

        def rung(_: Any, found: Any) -> tuple[Any]:
            self.ring(record, np.asarray(found))
            return (np.int32(0),)

        number = len(self.callbacks)
        self.callbacks.append(rung)
        happened = build.compare(total, build.i32(0), "GT")
        build.if_(happened, [total.type], lambda: [call([total, rows], number)], lambda: [total])
