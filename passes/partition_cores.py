"""`partition-cores`: a dynamic grid is shared between the cores of a chip."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from jaxlib.mlir import ir

from mosaic_grid.partition.plan import Strategy
from mosaic_grid.passbase import Kind, Pass, option
from mosaic_grid.program import Program
from mosaic_grid.session import Session
from mosaic_grid.targets import Target
from mosaic_grid.unchanged import nothing_done

MOST_CORES = 64
"""Far more than any chip has; the work of the analysis grows with the number."""


@dataclasses.dataclass(frozen=True)
class PartitionCores(Pass):
    """Shares a grid between the cores of a chip where the compiler would use one core only.

    That is so where no `parallel` dimension has a static bound of at least two. A dynamic `parallel` dimension, or a
    `core_parallel` one whose bound is dynamic or exceeds the cores, becomes a static `core_parallel` dimension around a
    loop over each core's share. Of several dynamic dimensions each gets a kernel of its own, and the launch picks the
    one whose largest share is least; they are counted together only where that pays for the divisions it takes. Where
    it isn't proved that every core gets a step, the launch falls back to the original kernel.

    A `core_parallel` dimension with fewer steps than there are cores becomes an ordinary loop.

    Refused, with the reason as a remark: kernels that talk to other devices, values that scratch carries from one step
    of the dimension to another, and dimensions that are not parallel, whatever they are called. A kernel whose parallel
    dimension is static is shared by the compiler itself and left alone.

    ```mlir
    iteration_bounds = array<i64: -9223372036854775808, 3>,
    dimension_semantics = [#tpu.dimension_semantics<parallel>, #tpu.dimension_semantics<arbitrary>]
    ```

    becomes

    ```mlir
    iteration_bounds = array<i64: 2, -9223372036854775808, 3>,
    dimension_semantics = [#tpu.dimension_semantics<core_parallel>, #tpu.dimension_semantics<arbitrary>,
                           #tpu.dimension_semantics<arbitrary>]
    ```
    """

    name: ClassVar[str] = "partition-cores"
    kind: ClassVar[Kind] = "rewrite"

    cores: int | None = option(None, "how many cores share a grid (default: those of the target, else 2)")
    strategy: Strategy = option("auto", "split one dimension, linearize several into one, or auto: what pays")

    def __post_init__(self) -> None:
        """Refuses a number of cores that can't be."""
        if self.cores is not None and not 1 <= self.cores <= MOST_CORES:
            raise ValueError(f"option 'cores' expects an integer from 1 to {MOST_CORES}, got {self.cores}")

    def cores_for(self, target: Target | None) -> int:
        """How many cores share a grid of a program that is made for `target`."""
        return self.cores or (target.cores if target else 2)

    def run(self, program: ir.Operation, session: Session) -> None:
        """Partitions every selected launch's kernel, in place; what it leaves, it says why."""
        cores = self.cores_for(session.target)
        # imported where it is needed: the tool's start-up shouldn't pay for analyses
        from mosaic_grid.dataflow.outer import OuterScalars
        from mosaic_grid.partition.apply import carry_out
        from mosaic_grid.partition.planner import Planner
        from mosaic_grid.partition.single_core import run_on_one_core

        scalars = OuterScalars(program, session.contracts)
        before = Planner(Program(program), scalars, cores, self.strategy)
        chosen = [kernel for kernel in before.program.kernels.values() if session.selects(kernel.name)]
        grids = {kernel.symbol: kernel.grid for kernel in chosen}
        for kernel in chosen:
            run_on_one_core(before, kernel)
        planner = Planner(Program(program), scalars, cores, self.strategy)
        changed = any(planner.program.kernels[symbol].grid != grid for symbol, grid in grids.items())
        if cores > 1:
            launches = [launch for launch in planner.program.launches if session.selects(launch.kernel.name)]
            plans = [planner.plan(launch) for launch in launches]
            changed = changed or any(plan.options for plan in plans)
            carry_out(planner.program, plans)
        for remark in [*before.remarks, *planner.remarks]:
            session.emit(remark)
        if not changed and not before.remarks and not planner.remarks:
            alone = "there is only one core" if cores == 1 else "no launch of it is in the program"
            reasons = {kernel.name: planner.left.get(kernel.name, alone) for kernel in chosen}
            session.emit(nothing_done(self.name, reasons, program, "nothing-to-share"))
