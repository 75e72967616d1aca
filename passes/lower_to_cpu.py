"""`lower-to-cpu`: launches become plain StableHLO that XLA compiles for the CPU."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

from jaxlib.mlir import ir

from mosaic_grid.passbase import Kind, Pass, option
from mosaic_grid.program import Program
from mosaic_grid.session import Session


@dataclasses.dataclass(frozen=True)
class LowerToCpu(Pass):
    """Turns each launch into a call of a function that does on the CPU what the kernel does on a TPU.

    Buffers are tensors that loops carry and update in place; the grid is a `stablehlo.while`, its last dimension
    fastest. A window moves when its block changes, cores run one after the other with scratch of their own, and a
    dimension without steps runs nothing. A kernel with operations that have no rule is an error that lists them.

    ```mlir
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @double, ...}
    ```

    becomes

    ```mlir
    %0 = call @double.cpu(%n, %x) : (tensor<i32>, tensor<1024x256xf32>) -> tensor<1024x256xf32>
    ```
    """

    name: ClassVar[str] = "lower-to-cpu"
    kind: ClassVar[Kind] = "conversion"

    uninitialized: Literal["nan", "zero"] = option(
        "nan", "what memory holds that nobody wrote: nan (integers: the least)"
    )
    dma: Literal["early", "late"] = option(
        "early", "when a copy lands: when it is started, or late, when it is waited for"
    )
    cores_interleaved: int | None = option(None, "let cores take turns, step by step, in the order of this seed")
    precision: Literal["f32", "bf16"] = option(
        "f32", "how exact a matmul of f32 is that doesn't say: all of it, or bf16"
    )

    def run(self, program: ir.Operation, session: Session) -> None:
        """Lowers every selected launch, in place."""
        # imported where they are needed: the tool's start-up shouldn't pay for them
        from mosaic_grid.cpu.convert import lower_to_cpu
        from mosaic_grid.cpu.options import Options

        options = Options(self.uninitialized, self.dma, self.cores_interleaved, self.precision)
        lower_to_cpu(
            program, options, [each for each in Program(program).launches if session.selects(each.kernel.name)]
        )
