"""The branches that a program chooses between at run time, as a person tells them apart."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from jaxlib.mlir import ir

CHOICES = frozenset({"stablehlo.case", "stablehlo.if"})


@dataclasses.dataclass(frozen=True)
class Branch:
    """A branch of an operation that runs one of its regions, the `number`th."""

    choice: ir.Operation
    number: int

    def __str__(self) -> str:
        if self.choice.name == "stablehlo.if":
            # which of them is number 0 is nothing a reader should have to know
            return f"{('true', 'false')[self.number]} branch"
        return f"branch {self.number} of {len(self.choice.regions)}"


def branch_of(op: ir.Operation) -> Branch | None:
    """The innermost branch that an operation is in."""
    return next(branches_of(op), None)


def branches_of(op: ir.Operation) -> Iterator[Branch]:
    """The branches that an operation is in, the innermost first; calls are not followed to their callers."""
    while op.parent is not None:
        inside, op = op.block.region, op.parent.operation
        if op.name in CHOICES:
            yield Branch(op, next(number for number, region in enumerate(op.regions) if region == inside))


def branches_text(op: ir.Operation) -> str:
    """`branch 0 of 2`, `true branch in branch 1 of 3`; empty for an operation that is in no branch."""
    return " in ".join(map(str, branches_of(op)))
