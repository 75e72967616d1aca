"""`resolve-grid`: dynamic bounds that are constants of the outer program become static."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from jaxlib.mlir import ir

from mosaic_grid.passbase import Kind, Pass
from mosaic_grid.program import Program
from mosaic_grid.session import Session


@dataclasses.dataclass(frozen=True)
class ResolveGrid(Pass):
    """Makes a dynamic bound static where the outer program shows that it is a constant.

    Constants are followed through calls of private functions, arithmetic, minimum, maximum, clamp, select, conversions,
    shapes and slices; what `--contracts` promise of arguments counts. The operand goes, and every index that counts
    operands is renumbered. For a bound that stays dynamic the launch gets its expression, range and divisor, in words,
    as `mosaic.bounds`.

    ```mlir
    %c = stablehlo.constant dense<10> : tensor<i32>
    %0 = stablehlo.custom_call @tpu_custom_call(%c, %x) {mosaic.kernel = @double, ...}   // iteration_bounds = [?, 4]
    ```

    becomes

    ```mlir
    %0 = stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @double_0, ...}     // iteration_bounds = [10, 4]
    ```
    """

    name: ClassVar[str] = "resolve-grid"
    kind: ClassVar[Kind] = "rewrite"

    def run(self, program: ir.Operation, session: Session) -> None:
        """Resolves every selected launch's bounds, in place."""
        # imported where they are needed: the tool's start-up shouldn't pay for analyses
        from mosaic_grid import resolve
        from mosaic_grid.dataflow.outer import OuterScalars

        view = Program(program)
        scalars = OuterScalars(program, session.contracts)
        launches = [launch for launch in view.launches if session.selects(launch.kernel.name) and launch.bounds]
        resolve.apply(view, tuple(resolve.plan(launch, scalars) for launch in launches))
