"""Whether steps that may run at the same time, or in any order, touch one place of an array."""

from __future__ import annotations

from collections.abc import Sequence

from mosaic_grid.symbolic.arith import add, constant, mul, sub
from mosaic_grid.symbolic.choice import comparison, conjunction
from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.problem import Grid, Window
from mosaic_grid.symbolic.proofs.decide import Failure, judge
from mosaic_grid.symbolic.proofs.effort import MOST
from mosaic_grid.symbolic.proofs.steps import Steps
from mosaic_grid.symbolic.verdict import Verdict


def no_race(
    grid: Grid,
    written: Window,
    other: Window | None = None,
    axes: Sequence[int] | None = None,
    same: Sequence[int] = (),
    most: int = MOST,
) -> Verdict:
    """No two steps that differ in one of `axes`, by default the parallel ones, share an element.

    The first shows `written`, the second `other`: another window on the same array, as of an input that is its alias,
    or the same one. In the dimensions `same` the two steps are equal. A witness has the points `first` and `second`
    and the block at the first.
    """
    steps = Steps(grid, "first", "second")
    first = steps.starts(written, "first")
    second = steps.starts(other or written, "second")
    shared = _overlap(written, other or written, first, second)
    alike = [comparison("==", steps.indices("first")[axis], steps.indices("second")[axis]) for axis in same]
    failures = []
    for axis in grid.parallel if axes is None else axes:
        one, two = steps.indices("first")[axis], steps.indices("second")[axis]
        # a window with itself: the steps may as well be called by their order
        apart = comparison("<" if other is None else "!=", one, two)
        failures.append(Failure(conjunction(apart, *alike, *shared), first))
    return judge(steps, failures, most)


def _overlap(one: Window, other: Window, first: Sequence[Expr], second: Sequence[Expr]) -> list[Expr]:
    """That the windows share an element at these indices."""
    truths = []
    for axis, (a, b) in enumerate(zip(first, second, strict=True)):
        if one.counts_like(other, axis):
            truths.append(comparison("==", a, b))
            continue
        start, stop = span(one, axis, a)
        other_start, other_stop = span(other, axis, b)
        truths += [comparison("<", start, other_stop), comparison("<", other_start, stop)]
    return truths


def span(window: Window, axis: int, index: Expr) -> tuple[Expr, Expr]:
    """The first element that a window shows in a dimension, and the one after the last."""
    start = add(mul(index, constant(window.strides[axis])), constant(window.offsets[axis]))
    return start, add(start, constant(window.block[axis]))


def meets_array(grid: Grid, window: Window, most: int = MOST) -> Verdict:
    """At every step the window shows some element of its array; the last block may reach over the end.

    A witness has the point `only` and the block there.
    """
    steps = Steps(grid, "only")
    index = steps.starts(window, "only")
    failures = []
    for axis, place in enumerate(index):
        start, stop = span(window, axis, place)
        size = steps.at(window.array[axis], "only")
        failures += [Failure(comparison("<=", stop, constant(0)), index)]
        failures += [Failure(comparison(">=", sub(start, size), constant(0)), index)]
    return judge(steps, failures, most)
