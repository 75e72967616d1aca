"""`batch-grid`: the loop that `jax.vmap` makes of a kernel becomes one launch over all elements of the batch."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from jaxlib.mlir import ir

from mosaic_grid.passbase import Kind, Pass
from mosaic_grid.program import Program
from mosaic_grid.session import Session
from mosaic_grid.unchanged import nothing_done


@dataclasses.dataclass(frozen=True)
class BatchGrid(Pass):
    """Makes one launch of a loop that launches a kernel for one element of a batch after the other.

    `jax.vmap` makes such a loop of a `pallas_call` whose dynamic bound, or scalar-prefetch operand, differs between
    elements. Where only prefetch operands differ the batch becomes the outermost dimension of the grid. Where a bound
    does, one dynamic dimension counts the steps of all elements, as many as the loop has; which element a step is of
    is found in a table of where each begins. Windows of batched operands get a block of one element in front.

    Elements of no step leave what they would in the loop: an output that is written over an input has the input's
    values, any other one anything. Where the steps of all elements aren't proved to fit in 32 bits together, the
    program keeps the loop for when they don't.

    Refused, with the reason as a remark: loops in which an iteration may need what another has computed, operands that
    are computed anew in each iteration, kernels whose scratch isn't proved to be written before it is read in each
    element, and kernels that talk to other devices or cores.

    ```mlir
    %0:3 = stablehlo.while(...) {                     // for b in range(64)
      %n = stablehlo.dynamic_slice %bounds, %b        // and so on for each operand
      %r = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @double, ...}   // iteration_bounds = [?, 2]
      %s = stablehlo.dynamic_update_slice %out, %r, %b
    }
    ```

    becomes

    ```mlir
    %0 = stablehlo.custom_call @tpu_custom_call(%total, %starts, %xs) {mosaic.kernel = @double_batch64, ...}
                                                                                           // iteration_bounds = [?, 2]
    ```
    """

    name: ClassVar[str] = "batch-grid"
    kind: ClassVar[Kind] = "rewrite"

    def run(self, program: ir.Operation, session: Session) -> None:
        """Rewrites every loop around a selected launch, in place; of what it leaves it says why."""
        # imported where they are needed: the tool's start-up shouldn't pay for analyses
        from mosaic_grid.batching.apply import carry_out
        from mosaic_grid.batching.planner import Planner
        from mosaic_grid.dataflow.control import functions_of
        from mosaic_grid.dataflow.loop_bodies import replace_contents, with_bodies

        before = Program(program)
        view = with_bodies(before, functions_of(program))
        planner = Planner(view, session.contracts)
        plans = planner.plans([launch for launch in view.launches if session.selects(launch.kernel.name)])
        for remark in planner.remarks:
            session.emit(remark)
        if not plans and not planner.remarks:
            session.emit(nothing_done(self.name, planner.left, program, "nothing-to-batch"))
        carry_out(view, plans)
        if plans and view is not before:
            replace_contents(program, view.module)
