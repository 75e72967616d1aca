"""The contracts that a program checks itself (`insert-contract-checks`), and what is said where one is broken."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from jaxlib.mlir import ir

from mosaic_grid.contract_checks.plan import CONTRACTS
from mosaic_grid.cpu.arrays import Array
from mosaic_grid.dataflow.control import functions_of
from mosaic_grid.diagnostics import Diagnostic, Severity, note


@dataclasses.dataclass(frozen=True)
class CheckedContracts:
    """Result `number` of the program is 0, or the number from 1 on of the text in `told` that is true."""

    number: int
    told: tuple[str, ...]

    def broken(self, results: Sequence[Array]) -> list[Diagnostic]:
        """What is wrong with the arguments that gave these results."""
        first = int(results[self.number])
        if first == 0:
            return []
        nothing = "no kernel was launched; the results are NaN, the least integer, or false"
        return [Diagnostic(Severity.ERROR, self.told[first - 1], name="broken-contract", notes=(note(nothing),))]


def checked_contracts(program: ir.Operation) -> CheckedContracts | None:
    """The contracts that `@main` checks; None where it checks none."""
    main = functions_of(program).get("main")
    if main is None or "res_attrs" not in main.op.attributes:
        return None
    for number, attributes in enumerate(map(ir.DictAttr, ir.ArrayAttr(main.op.attributes["res_attrs"]))):
        if CONTRACTS in attributes:
            texts = ir.ArrayAttr(attributes[CONTRACTS])
            return CheckedContracts(number, tuple(ir.StringAttr(text).value for text in texts))
    return None
