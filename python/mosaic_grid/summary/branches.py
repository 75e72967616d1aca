"""Launches that only step in where another, in a branch beside them, can't run."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from jaxlib.mlir import ir

from mosaic_grid.branches import Branch, branch_of, branches_text
from mosaic_grid.grid import Semantics
from mosaic_grid.ir_types import Value
from mosaic_grid.program import Launch
from mosaic_grid.summary.facts import LaunchSummary

_FALLBACK = "the fallback of a launch that runs on every core"
# the choice of `partition-cores` is a few selects and conjunctions deep
_FOLLOWED = 64


def with_fallbacks(launches: Sequence[tuple[Launch, LaunchSummary]]) -> list[LaunchSummary]:
    """Marks the launches that leave cores idle where another branch launches the same kernel on every core."""
    branched = [(branch_of(launch.op), launch, summary) for launch, summary in launches]
    sharing = {(branch.choice, s.name): s for branch, _, s in branched if branch and _uses_every_core(s)}
    return [
        dataclasses.replace(
            summary,
            branch=branches_text(launch.op),
            fallback=_fallback(branch, sharing[branch.choice, summary.name])
            if branch and (branch.choice, summary.name) in sharing and not _uses_every_core(summary)
            else "",
        )
        for branch, launch, summary in branched
    ]


def _uses_every_core(launch: LaunchSummary) -> bool:
    return launch.cores is not None and launch.cores.used == launch.cores.available


def _fallback(branch: Branch, instead: LaunchSummary) -> str:
    """What it is a fallback for: `partition-cores` is known by its kernel and by what it compares the steps with."""
    cores = instead.grid[0].bound if instead.grid and instead.grid[0].semantics is Semantics.CORE_PARALLEL else None
    if branch.number == 0 and cores is not None and _asks_for_steps(branch.choice, cores):
        return f"{_FALLBACK}, for when a core would have no step"
    return _FALLBACK


def _asks_for_steps(choice: ir.Operation, cores: int) -> bool:
    """Whether a choice depends on a comparison of something with at least the number of cores."""
    pending: list[Value] = list(choice.operands)
    for _ in range(_FOLLOWED):
        if not pending:
            return False
        owner = pending.pop().owner
        if not isinstance(owner, ir.Operation | ir.OpView):
            continue
        op = owner.operation
        if op.name in ("stablehlo.select", "stablehlo.and"):
            pending += op.operands
        elif _is_at_least(op, cores):
            return True
    return False


def _is_at_least(op: ir.Operation, least: int) -> bool:
    """Whether an operation compares something with a constant lower bound."""
    if op.name != "stablehlo.compare" or "GE" not in str(op.attributes["comparison_direction"]):
        return False
    return _constant(op.operands[1]) == least


def _constant(value: Value) -> int | None:
    """The integer that a scalar constant holds."""
    owner = value.owner
    if not isinstance(owner, ir.Operation | ir.OpView) or owner.operation.name != "stablehlo.constant":
        return None
    elements = owner.operation.attributes["value"]
    if not isinstance(elements, ir.DenseIntElementsAttr) or len(elements) != 1:
        return None
    return int(elements[0])
