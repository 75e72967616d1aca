"""The index of the variant that fits a launch's bounds, computed once in the outer program."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence

from mosaic_grid.ir_types import Value
from mosaic_grid.partition import scalars
from mosaic_grid.variants.plan import Plan, Steps, Variant


def index_of(plan: Plan) -> Value:
    """The number of the variant that fits, at the current insertion point; that of the last branch, or an index out of
    range, where none does.

    Exact bounds at equal distances are a difference, of buckets in a row those that are too small are counted; else
    each variant is compared. No difference misleads where it wraps around: it is then greater than that of any bound.
    """
    bounds = plan.launch.bounds
    if len(plan.variants[0].axes) == 1:
        steps = [variant.steps[0] for variant in plan.variants]
        bound = bounds[steps[0].axis]
        if not any(step.guarded for step in steps) and (distance := _distance(steps)):
            return _difference(bound, steps[0].bound, distance, len(steps), complete=plan.complete)
        if _in_a_row(steps):
            return _count(bound, steps, complete=plan.complete)
    return _first_that_fits(plan.variants, bounds)


def _distance(steps: Sequence[Steps]) -> int | None:
    """The distance of each bound to the next; `None` where it isn't the same, or not above zero."""
    distances = {after.bound - before.bound for before, after in itertools.pairwise(steps)} or {1}
    distance = distances.pop()
    return distance if not distances and distance > 0 else None


def _difference(bound: Value, first: int, distance: int, count: int, *, complete: bool) -> Value:
    difference = scalars.subtract(bound, first) if first else bound
    if distance == 1:
        return difference
    index = scalars.divide(difference, distance)
    if complete:
        return index
    return scalars.select(scalars.compare(scalars.multiply(index, distance), "EQ", difference), index, count)


def _in_a_row(steps: Sequence[Steps]) -> bool:
    return all(after.low == before.bound + 1 for before, after in itertools.pairwise(steps))


def _count(bound: Value, steps: Sequence[Steps], *, complete: bool) -> Value:
    ends = steps[:-1] if complete else steps
    too_small = [scalars.to_i32(scalars.compare(bound, "GT", step.bound)) for step in ends]
    index = functools.reduce(scalars.add, too_small) if too_small else scalars.constant(0)
    if complete:
        return index
    return scalars.select(scalars.compare(bound, "LT", steps[0].low), len(steps), index)


def _first_that_fits(variants: Sequence[Variant], bounds: Mapping[int, Value]) -> Value:
    known: dict[Steps, Value] = {}

    def fits(step: Steps) -> Value:
        """Each comparison once, however many variants it is of."""
        if step not in known:
            bound = bounds[step.axis]
            known[step] = (
                scalars.both(scalars.compare(bound, "GE", step.low), scalars.compare(bound, "LE", step.bound))
                if step.guarded
                else scalars.compare(bound, "EQ", step.bound)
            )
        return known[step]

    index = scalars.constant(len(variants))
    for number, variant in enumerate(variants):
        index = scalars.select(functools.reduce(scalars.both, map(fits, variant.steps)), number, index)
    return index
