"""Whether each output block is written by steps that follow each other: a block that was left is copied out."""

from __future__ import annotations

from collections.abc import Sequence

from mosaic_grid.symbolic.arith import add, constant
from mosaic_grid.symbolic.choice import comparison, conjunction, disjunction
from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.problem import Grid, Window
from mosaic_grid.symbolic.proofs.decide import Failure, judge
from mosaic_grid.symbolic.proofs.effort import MOST
from mosaic_grid.symbolic.proofs.steps import Steps
from mosaic_grid.symbolic.verdict import Verdict


def revisits_follow(grid: Grid, window: Window, again: Sequence[Expr] = (), most: int = MOST) -> Verdict:
    """In the order of the steps (the last dimension runs fastest) no block comes back after another one.

    The window is where its index map says at each step, whatever its guards. A witness has the points `first`, `left`
    and `again`, which comes right after `left` and is back at the block of `first`, and that block. Of the steps that
    come back only those count at which the truth values `again` are 1.
    """
    steps = Steps(grid, "first", "left", "again")
    first, left, back = (tuple(steps.at(i, role) for i in window.index) for role in ("first", "left", "again"))
    same = [comparison("==", a, b) for a, b in zip(first, back, strict=True)]
    gone = disjunction(*(comparison("!=", a, b) for a, b in zip(left, back, strict=True)))
    counts = [steps.at(truth, "again") for truth in again]
    failures = [
        Failure(conjunction(gone, *same, *counts, *_next(steps, axis), *_later(steps, before)), first)
        for axis in range(len(grid.bounds))
        # behind the dimension that is counted up `again` starts anew, where no step is earlier
        for before in reversed(range(axis + 1))
        # whose index chooses the block is no later at the same block
        if _equal(steps, before) not in same
    ]
    return judge(steps, failures, most)


def _next(steps: Steps, axis: int) -> list[Expr]:
    """That `again` comes right after `left` by counting up the index of one dimension; those behind it start anew."""
    truths = []
    for k, (a, b, bound) in enumerate(zip(steps.indices("left"), steps.indices("again"), steps.bounds(), strict=True)):
        if k <= axis:
            truths.append(comparison("==", b, add(a, constant(int(k == axis)))))
        else:
            truths += [comparison("==", b, constant(0)), comparison("==", add(a, constant(1)), bound)]
    return truths


def _equal(steps: Steps, axis: int) -> Expr:
    """That `first` and `again` have the same index in a dimension."""
    return comparison("==", steps.indices("first")[axis], steps.indices("again")[axis])


def _later(steps: Steps, axis: int) -> list[Expr]:
    """That `again` is later than `first` and differs from it first in this dimension."""
    pairs = list(zip(steps.indices("first"), steps.indices("again"), strict=True))
    return [*(_equal(steps, before) for before in range(axis)), comparison("<", *pairs[axis])]
