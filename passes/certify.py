"""`certify`: which windows, loads, stores and copies are proved to stay within memory."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from jaxlib.mlir import ir

from mosaic_grid.passbase import Kind, Pass
from mosaic_grid.session import Session


@dataclasses.dataclass(frozen=True)
class Certify(Pass):
    """Says of each launch what is proved to stay within memory, under which contracts, and what is missing.

    For kernels that are compiled with `disable_bounds_checks`, where nothing looks at indices while they run. Each
    window has to meet its array at every step; each load, store and copy of a step has to stay within its buffer, with
    the conditions around it, the loops it is in, and what `--contracts` promise of the program's arguments. One remark
    has the numbers and the contracts that they take. What isn't proved is an error where it fails whenever the kernel
    runs, else a warning, with the arguments that show it or the fact that would prove it. Semaphores and what other
    devices do aren't looked at. The program is left as it is; docs/contracts.md says more.

    ```mlir
    %row = memref.load %starts[%i] : memref<8xi32, #tpu.memory_space<smem>>
    %v = vector.load %x[%row, %c0] : memref<64x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>
    ```

    gives

    ```text
    kernel.py:12:8: warning: with starts[0] = 57 step (0) reads input 0 ('x_ref') outside of it: from 57 on, 8 of 64 in
    dimension 0 [not-certified]
    note: what would prove it: 0 <= starts[i] and starts[i] + 8 <= 64
    note: promise what the inputs can be, as with --contracts='0 <= starts[*] <= 56'
    ```

    and, with `--contracts='0 <= starts[*] <= 56'`, a remark: `2 of 2 windows and 2 of 2 accesses proved`.
    """

    name: ClassVar[str] = "certify"
    kind: ClassVar[Kind] = "check"

    def run(self, program: ir.Operation, session: Session) -> None:
        """Emits what isn't proved, and the certificates."""
        # imported where they are needed: the tool's start-up shouldn't pay for analyses
        from mosaic_grid.checks.certify import certify

        for diagnostic in dict.fromkeys(certify(program, session)):
            session.emit(diagnostic)
