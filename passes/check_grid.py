"""`check-grid`: what is wrong with a grid, or slow about it."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from jaxlib.mlir import ir

from mosaic_grid.passbase import Kind, Pass
from mosaic_grid.session import Session


@dataclasses.dataclass(frozen=True)
class CheckGrid(Pass):
    """Says of each kernel what is wrong with its grid, or slow about it: what compiles, and fails in silence.

    It looks at bounds, dimension semantics, index maps, scratch, memory and launches, for the `--target`; without one
    only what holds of every chip is an error, and cores idle as on one that has two. All findings are reported, with
    numbers, a step or a block that shows the fault, the user's line where the dump has it, and what to do next.
    docs/diagnostics.md lists them, `--explain NAME` says more of one. What goes wrong whenever the kernel runs is an
    error; what does with certain arguments of the program is a warning that has them, and `--contracts` says what they
    can be. With `--strict` it also warns of what it could not decide. The program is left as it is.

    ```mlir
    iteration_bounds = array<i64: 8, 8>,
    dimension_semantics = [#tpu.dimension_semantics<parallel>, #tpu.dimension_semantics<arbitrary>]
    ```

    with an output whose index map is `(0, 0)` gives

    ```text
    kernel.py:31:12: error: parallel dimension 0 is a race: steps (0, 0) and (1, 0) write the same block (0, 0) of
    output 0 [parallel-race]
    note: make dimension 0 arbitrary, or give each of its steps a place of its own to write to
    ```
    """

    name: ClassVar[str] = "check-grid"
    kind: ClassVar[Kind] = "check"

    def run(self, program: ir.Operation, session: Session) -> None:
        """Emits the findings, kernel by kernel, each once."""
        # imported where they are needed: the tool's start-up shouldn't pay for analyses
        from mosaic_grid.checks import CHECKS, subjects_of

        for subject in subjects_of(program, session):
            found = [diagnostic for check in CHECKS for diagnostic in check(subject)]
            for diagnostic in dict.fromkeys(found):
                session.emit(diagnostic)
