"""`insert-contract-checks`: a program checks the contracts itself, before it launches anything."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from jaxlib.mlir import ir

from mosaic_grid.passbase import Kind, Pass
from mosaic_grid.session import Session


@dataclasses.dataclass(frozen=True)
class InsertContractChecks(Pass):
    """Has the program check `--contracts` where it begins, so that an input out of contract launches no kernel.

    The function gets one more result, an i32: 0 where every contract is kept, else the number of the first that isn't,
    counted from 1. What the numbers mean stands with it, as `mosaic_grid.contracts`. Out of contract nothing of the
    program runs, and the other results are NaN, the least integer, or false. `mosaic-run` and `mosaic_grid.run` stop
    with a message that names the contract and the argument; other callers look at the last result. Within the contracts
    results are those of the program as it was. Contracts are checked as they read, in integers that no part of them
    overflows; one that can't be is an error. docs/contracts.md says why it is done in this way.

    ```mlir
    func.func public @main(%n: tensor<i32>, %x: tensor<64xf32>) -> tensor<64xf32>
    ```

    becomes, with `--contracts='n <= 8'`,

    ```mlir
    func.func public @main(%n: tensor<i32>, %x: tensor<64xf32>) -> (tensor<64xf32>,
        tensor<i32> {mosaic_grid.contracts = ["contract 'n <= 8' is broken by argument 0 ('n')"], ...}) {
      ...
      %kept = stablehlo.compare EQ, %broken, %zero : ...
      %0 = "stablehlo.if"(%kept) ({
        %1 = func.call @main_unchecked(%n, %x) : ...
        stablehlo.return %1 : tensor<64xf32>
      }, {
        %nan = stablehlo.constant dense<0x7FC00000> : tensor<64xf32>
        stablehlo.return %nan : tensor<64xf32>
      })
      return %0, %broken : tensor<64xf32>, tensor<i32>
    }
    func.func private @main_unchecked(...)
    ```
    """

    name: ClassVar[str] = "insert-contract-checks"
    kind: ClassVar[Kind] = "rewrite"

    def run(self, program: ir.Operation, session: Session) -> None:
        """Gives each function whose arguments contracts speak of its checks, in place."""
        # imported where they are needed: the tool's start-up shouldn't pay for analyses
        from mosaic_grid.contract_checks.apply import apply
        from mosaic_grid.contract_checks.plan import plans

        for plan in plans(program, session.contracts):
            apply(program, plan)
