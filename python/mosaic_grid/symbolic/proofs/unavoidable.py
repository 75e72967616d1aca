"""Whether something happens at some step whatever the values are that nobody knows, though not always in one way."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence

import islpy as isl

from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.nodes import Const
from mosaic_grid.symbolic.problem import Grid
from mosaic_grid.symbolic.proofs.decide import space_of, surely, without
from mosaic_grid.symbolic.proofs.effort import MOST, UndecidedError, limited
from mosaic_grid.symbolic.proofs.steps import Steps


def unavoidable(grid: Grid, bad: Sequence[Expr], swept: Collection[str], most: int = MOST) -> bool:
    """Whether for all values of what `grid` calls opaque one of these truth values is 1 somewhere.

    The parameters `swept` take each of their values in a step, as the index of a loop does: one value is enough. False
    where that isn't so, and where it is too hard to tell.
    """
    steps = Steps(grid, "only")
    truths = [truth for each in bad if (truth := steps.at(each, "only")) != Const(0)]
    if not truths:
        return False
    context = isl.Context()
    try:
        with limited(context, most):
            space = space_of(context, steps, truths)
            ways = functools.reduce(isl.Set.union, (space.among(space.domain, truth) for truth in truths))
        names, hidden = tuple(space.places), steps.hidden()
        # of what differs from step to step nothing is known at another one
        indices = frozenset[str]() if steps.varying() else frozenset(steps.points["only"])
        for gone in (frozenset(swept), indices | frozenset(swept)):
            places = [place for place, name in enumerate(names) if name in gone]
            left = [name for name in names if name not in gone]
            with limited(context, most):
                possible, failing = without(space.prior, places), without(ways, places)
            if surely(left, possible, failing, hidden, most) is not None:
                return True
    except UndecidedError:
        pass
    return False
