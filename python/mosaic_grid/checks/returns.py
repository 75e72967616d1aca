"""What a step reads of an output's block before it has written it: where the block has come back, that is lost."""

from __future__ import annotations

import dataclasses

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.geometry import Geometry
from mosaic_grid.dataflow.step import Access, Findings
from mosaic_grid.dataflow.uses import may_be_chosen_away


@dataclasses.dataclass(frozen=True)
class Read:
    """A read that finds nothing written by its step where the truth values `when` are 1; None where nobody knows."""

    when: tuple[sym.Expr, ...] | None
    location: ir.Location


def reads_on_return(step: Findings, argument: int, geometry: Geometry) -> tuple[Read, ...]:
    """The reads of a window, the kernel's `argument`, at a step by itself, which a walk has found."""
    return tuple(
        Read(None if step.unknown else _conditions(access, before, geometry), access.op.location)
        for access, before in step.uncovered
        if access.root.argument == argument
    )


def _conditions(access: Access, before: tuple[Access, ...], geometry: Geometry) -> tuple[sym.Expr, ...] | None:
    """When it runs and no write before it has; None where that can't be told."""
    if may_be_chosen_away(access.op) or not all(write.guards for write in before):
        return None
    unwritten = [sym.negation(sym.conjunction(*write.guards)) for write in before]
    placed = [geometry.of_a_step(truth) for truth in (*access.guards, *unwritten)]
    known = tuple(truth for truth in placed if truth is not None)
    return known if len(known) == len(placed) else None
