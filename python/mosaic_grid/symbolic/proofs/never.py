"""Whether something never happens at a step of a grid."""

from __future__ import annotations

from collections.abc import Sequence

from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.problem import Grid
from mosaic_grid.symbolic.proofs.decide import Failure, judge
from mosaic_grid.symbolic.proofs.effort import MOST
from mosaic_grid.symbolic.proofs.steps import Steps
from mosaic_grid.symbolic.verdict import Verdict


def never(grid: Grid, bad: Sequence[Expr], shown: tuple[Expr, ...] = (), most: int = MOST) -> Verdict:
    """None of these truth values is 1 at any step.

    A witness has the point `only`, and the values of `shown` there as its block.
    """
    steps = Steps(grid, "only")
    told = tuple(steps.at(expr, "only") for expr in shown)
    return judge(steps, [Failure(steps.at(truth, "only"), told) for truth in bad], most)
