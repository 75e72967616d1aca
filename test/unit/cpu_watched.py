"""Runs a kernel's operations with copies that land late, or with a record of what goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from cpu_harness import context, lower
from jaxlib.mlir import ir

from mosaic_grid.context import unknown_location
from mosaic_grid.cpu.arrays import Array
from mosaic_grid.cpu.execute import compile_program
from mosaic_grid.cpu.faults import Fault, Faults
from mosaic_grid.cpu.late import Late
from mosaic_grid.cpu.lowering import Lowered, Lowering
from mosaic_grid.cpu.options import Options
from mosaic_grid.cpu.rules import RULES, semaphore
from mosaic_grid.cpu.views import View


def watched(text: str, *arrays: Any, late: bool = False, places: Sequence[int] = ()) -> tuple[list[Array], list[Fault]]:
    """What `cpu_harness.run` returns, and what went wrong meanwhile.

    The i32 arguments with the numbers `places` are taken for the grid's indices. With `late`, copies land when they are
    waited for.
    """
    records: list[Faults] = []

    def start(low: Lowering, function: ir.Operation, arguments: Sequence[Lowered]) -> None:
        low.indices = [value for number in places if not isinstance(value := arguments[number], View)]
        low.faults = Faults(len(places))
        low.faults.start(low.memory)
        records.append(low.faults)
        semaphore.start(low, function)
        if late:
            low.late = Late(function)
            for argument, view in zip(function.regions[0].blocks[0].arguments, arguments, strict=True):
                if isinstance(view, View):
                    low.late.prepare(low.memory, argument, view.root)

    with context(), unknown_location():
        module, unsupported = lower(text, RULES, Options(dma="late" if late else "early"), start)
        assert not unsupported, [f"{each.op}: {each.reason}" for each in unsupported]
        *results, record = compile_program(module.operation)(*(np.asarray(array) for array in arrays))
        return results, records[0].read(record)
