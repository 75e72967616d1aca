"""How evenly the steps of a dimension can be shared: contiguous shares that differ by at most one step."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from fractions import Fraction

import islpy as isl

from mosaic_grid.symbolic.arith import constant
from mosaic_grid.symbolic.choice import comparison
from mosaic_grid.symbolic.contracts import Contract
from mosaic_grid.symbolic.division import ceildiv, mod
from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.proofs.decide import smallest, space_of, witness_of
from mosaic_grid.symbolic.proofs.effort import MOST, UndecidedError, limited
from mosaic_grid.symbolic.proofs.instances import at_least
from mosaic_grid.symbolic.proofs.problem import Grid
from mosaic_grid.symbolic.proofs.steps import Steps
from mosaic_grid.symbolic.verdict import Unknown, Witness


@dataclasses.dataclass(frozen=True)
class Imbalance:
    """The worst that can be: `worst` is the largest share divided by the mean, `bound` the steps, for `witness`."""

    worst: Fraction
    bound: int
    witness: Witness


def largest_share(bound: Expr, cores: int) -> Expr:
    """The steps of the core that has most."""
    return ceildiv(bound, constant(cores))


def imbalance(
    bound: Expr, cores: int, contracts: Iterable[Contract] = (), most: int = MOST
) -> Imbalance | Unknown | None:
    """The worst imbalance of sharing `bound` steps between cores; None where there never is a step.

    Exact where the bound is quasi-affine in inputs. Where it is more, what is read may not take the values that are
    worst: then it is unknown unless the worst is perfect.
    """
    steps = Steps(Grid((bound,), contracts=tuple(contracts)))
    (count,) = steps.bounds()
    context = isl.Context()
    worst: tuple[Fraction, int, isl.Set] | None = None
    try:
        with limited(context, most):
            space = space_of(context, steps, [count])
            some = space.domain.intersect(space.where(at_least(count, 1)))
            for rest in range(cores):
                alike = some.intersect(space.where(comparison("==", mod(count, constant(cores)), constant(rest))))
                values = space.extremes(count, alike)
                if values is None:
                    continue
                # of the counts with this remainder the least is shared worst
                ratio = Fraction(-(-values.lo // cores) * cores, values.lo)
                if worst is None or ratio > worst[0]:
                    at = alike.intersect(space.where(comparison("==", count, constant(values.lo))))
                    worst = ratio, values.lo, at
        if worst is None:
            return None
        hidden = steps.hidden() & space.places.keys()
        if hidden and worst[0] > 1:
            return Unknown(steps.obstacle([count]))
        points = smallest(tuple(space.places), worst[2], most)
    except UndecidedError as error:
        return Unknown(str(error))
    return Imbalance(worst[0], worst[1], witness_of(steps, points, None))
