"""Whether a grid has steps at all, and few enough to be counted in an i32."""

from __future__ import annotations

import dataclasses
import math

import islpy as isl

from mosaic_grid.symbolic.arith import constant
from mosaic_grid.symbolic.choice import comparison
from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.proofs.affine import Space
from mosaic_grid.symbolic.proofs.decide import Failure, judge, space_of, surely, witness_of
from mosaic_grid.symbolic.proofs.effort import MOST, TooComplexError, UndecidedError, limited
from mosaic_grid.symbolic.proofs.instances import at_least
from mosaic_grid.symbolic.proofs.problem import Grid
from mosaic_grid.symbolic.proofs.steps import Steps
from mosaic_grid.symbolic.ranges import Range, type_range
from mosaic_grid.symbolic.verdict import Proved, Refuted, Unknown, Verdict

# how many boxes of bounds are looked at: only where the product is very close to the limit it takes many
_MOST_BOXES = 400


def has_steps(grid: Grid, most: int = MOST) -> Verdict:
    """Every bound is at least 1. A witness has the inputs for which one isn't."""
    steps = Steps(grid)
    return judge(steps, [Failure(comparison("<=", bound, constant(0))) for bound in steps.bounds()], most)


def countable(grid: Grid, limit: int = type_range(32, True).hi, most: int = MOST) -> Verdict:
    """The product of the bounds is at most `limit`; a grid without steps has none too many.

    Products of unknowns are not linear: boxes of bounds are halved until each is on one side of the limit.
    """
    steps = Steps(grid)
    if math.prod(max(bound.range.hi, 0) for bound in steps.bounds()) <= limit:
        return Proved()
    context = isl.Context()
    try:
        with limited(context, most):
            space = space_of(context, steps, steps.bounds())
            search = _Boxes(space, steps.bounds(), limit, every=bool(steps.hidden() & space.places.keys()))
            search.run()
            if search.beyond.is_empty():
                return Proved()
        values = surely(tuple(space.places), space.prior, search.beyond, steps.hidden(), most)
    except UndecidedError as error:
        return Unknown(str(error))
    return Unknown(steps.obstacle(steps.bounds())) if values is None else Refuted(witness_of(steps, values, None))


@dataclasses.dataclass
class _Boxes:
    """The part `beyond` of the domain where the product is beyond the limit: all of it if `every`, else some."""

    space: Space
    bounds: tuple[Expr, ...]
    limit: int
    every: bool

    def run(self) -> None:
        """Finds it; raises `TooComplexError`."""
        domain = self.space.domain
        self.beyond = domain.subtract(domain)
        for bound in self.bounds:
            domain = domain.intersect(self.space.where(at_least(bound, 1)))
        waiting, looked_at = [domain], 0
        while waiting and (self.every or self.beyond.is_empty()):
            looked_at += 1
            if looked_at > _MOST_BOXES:
                raise TooComplexError
            box = waiting.pop()
            extents = [self.space.extremes(bound, box) for bound in self.bounds]
            held = [extent for extent in extents if extent is not None]
            if len(held) < len(extents) or math.prod(extent.hi for extent in held) <= self.limit:
                continue
            if math.prod(extent.lo for extent in held) > self.limit:
                self.beyond = self.beyond.union(box)
                continue
            waiting += self._halves(box, held)

    def _halves(self, box: isl.Set, extents: list[Range]) -> list[isl.Set]:
        """The box cut where its relatively widest bound is in the middle, the greater part last."""
        widest = max(range(len(extents)), key=lambda k: extents[k].hi / extents[k].lo)
        middle = constant(math.isqrt(extents[widest].lo * extents[widest].hi))
        return [box.intersect(self.space.where(comparison(r, self.bounds[widest], middle))) for r in ("<=", ">")]
