"""Launches between which a program chooses at run time, and those that only step in where another can't run."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from jaxlib.mlir import ir

from mosaic_grid.summary.facts import LaunchSummary

CHOICES = frozenset({"stablehlo.case", "stablehlo.if"})


@dataclasses.dataclass(frozen=True)
class Branch:
    """A branch of an operation that runs one of its regions."""

    choice: ir.Operation
    number: int

    def __str__(self) -> str:
        return f"branch {self.number} of {len(self.choice.regions)} of a {self.choice.name}"


def branch_of(op: ir.Operation) -> Branch | None:
    """The innermost branch that an operation is in."""
    while op.parent is not None:
        inside, op = op.block.region, op.parent.operation
        if op.name in CHOICES:
            return Branch(op, next(number for number, region in enumerate(op.regions) if region == inside))
    return None


def with_fallbacks(launches: Sequence[tuple[Branch | None, LaunchSummary]]) -> list[LaunchSummary]:
    """Marks the launches that leave cores idle where another branch launches the same kernel on every core."""
    shared = {(branch.choice, launch.name) for branch, launch in launches if branch and _uses_every_core(launch)}
    return [
        dataclasses.replace(launch, branch=str(branch) if branch else "", fallback=_is_idle(branch, launch, shared))
        for branch, launch in launches
    ]


def _is_idle(branch: Branch | None, launch: LaunchSummary, shared: set[tuple[ir.Operation, str]]) -> bool:
    return branch is not None and not _uses_every_core(launch) and (branch.choice, launch.name) in shared


def _uses_every_core(launch: LaunchSummary) -> bool:
    return launch.cores is not None and launch.cores.used == launch.cores.available
