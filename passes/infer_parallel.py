"""`infer-parallel`: dimensions whose steps are proved independent are called parallel."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from jaxlib.mlir import ir

from mosaic_grid.diagnostics import place_of
from mosaic_grid.passbase import Kind, Pass
from mosaic_grid.program import Program
from mosaic_grid.session import Session


@dataclasses.dataclass(frozen=True)
class InferParallel(Pass):
    """Marks the grid's dimensions that are parallel although nobody said so, and only those where it is proved.

    Steps that differ in such a dimension never touch the same place of an output or of an input that one is written
    over, by blocks or by copies of their own; each writes what it reads of scratch, of SMEM and of the random number
    generator's state; each waits for the copies that it starts, or a later step with the same index does; and none of
    them prints, or talks to another core or device. All dimensions for which that holds may be parallel together. What
    is already called parallel is left to its author's word.

    The compiler then shares a static dimension between the cores of a chip, and `partition-cores` a dynamic one. For
    each dimension that stays arbitrary a remark says why, with the memory, and with two steps where some are known.
    What is read from a table at run time is not known, so a place that depends on it proves nothing, unless all steps
    read the same. No access is out of bounds, so a grid has no more steps than its copies have room for.

    ```mlir
    iteration_bounds = array<i64: 8, 4, 2>,
    dimension_semantics = [#tpu.dimension_semantics<arbitrary>, #tpu.dimension_semantics<arbitrary>,
                           #tpu.dimension_semantics<arbitrary>]
    ```

    of a matmul that adds up over the last dimension becomes

    ```mlir
    iteration_bounds = array<i64: 8, 4, 2>,
    dimension_semantics = [#tpu.dimension_semantics<parallel>, #tpu.dimension_semantics<parallel>,
                           #tpu.dimension_semantics<arbitrary>]
    ```
    """

    name: ClassVar[str] = "infer-parallel"
    kind: ClassVar[Kind] = "rewrite"

    def run(self, program: ir.Operation, session: Session) -> None:
        """Marks every selected kernel's dimensions, in place; of what it leaves, it says why."""
        # imported where they are needed: the tool's start-up shouldn't pay for analyses
        from mosaic_grid.dataflow.outer import OuterScalars
        from mosaic_grid.infer.plan import make_plan
        from mosaic_grid.infer.remarks import nothing_done, remarks
        from mosaic_grid.kernel_edit import set_grid
        from mosaic_grid.legality.launches import launches_of

        view, scalars = Program(program), OuterScalars(program, session.contracts)
        chosen = [kernel for kernel in view.kernels.values() if session.selects(kernel.name)]
        launches = {kernel.symbol: launches_of(view, kernel) for kernel in chosen}
        plans = [make_plan(kernel, launches[kernel.symbol], scalars) for kernel in chosen]
        for plan in plans:
            if plan.axes:
                set_grid(plan.kernel.body, plan.grid)
            for remark in remarks(plan, launches[plan.kernel.symbol]):
                session.emit(remark)
        if all(plan.left for plan in plans):
            session.emit(nothing_done(plans, place_of(program.location)))
