"""The cores of a launch: one after the other, in lockstep, or taking turns."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.build import Index
from mosaic_grid.cpu.grid import Core
from mosaic_grid.cpu.interleave import run_interleaved
from mosaic_grid.cpu.lockstep import meet, run_in_lockstep, why_apart
from mosaic_grid.errors import UserError
from mosaic_grid.ir_types import Value


def run_cores(core: Core) -> None:
    """Runs the core for each combination of the core dimensions' indices; each starts with fresh scratch."""
    low = core.low
    cores = [axis for axis in range(len(low.bounds)) if axis not in core.axes]
    if not cores:
        core.run([0] * len(low.bounds))
        return
    counts = [bound for axis in cores if isinstance(bound := low.bounds[axis], int)]
    if any(count < 1 for count in counts):
        return  # there is no core
    if meet(core.body):
        low.apart = why_apart(core)
        if low.apart is None:
            run_in_lockstep(core, cores, counts)
            return
    if low.options.interleave is not None:
        if len(counts) < len(cores):
            raise UserError("cores can't take turns where their number is dynamic")
        run_interleaved(core, cores, counts, low.options.interleave)
        return
    shared = [root for root in core.written if root not in set(core.carried)]

    def one(indices: dict[int, Index]) -> None:
        following = next((axis for axis in cores if axis not in indices), None)
        if following is None:
            core.run([indices.get(axis, 0) for axis in range(len(low.bounds))])
            return
        bound = build.as_value(low.bounds[following])

        def body(values: Sequence[Value]) -> list[Value]:
            one({**indices, following: values[0]})
            return [hlo.add(values[0], build.i32(1))]

        low.while_([build.i32(0)], lambda values: build.compare(values[0], bound, "LT"), body, shared)

    one({})
