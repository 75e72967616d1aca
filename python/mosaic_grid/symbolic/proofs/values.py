"""What contracts say of an expression of inputs: whether a truth always holds, and all the values there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import islpy as isl

from mosaic_grid.symbolic.arith import constant, parameter
from mosaic_grid.symbolic.choice import comparison, negation
from mosaic_grid.symbolic.contracts import Contract
from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.proofs.affine import unknowns_of
from mosaic_grid.symbolic.proofs.decide import Failure, judge, space_of, without
from mosaic_grid.symbolic.proofs.effort import MOST, UndecidedError, limited
from mosaic_grid.symbolic.proofs.problem import Grid
from mosaic_grid.symbolic.proofs.steps import Steps
from mosaic_grid.symbolic.ranges import Range
from mosaic_grid.symbolic.verdict import Unknown, Verdict


def always(truth: Expr, contracts: Iterable[Contract] = (), opaque: Iterable[str] = (), most: int = MOST) -> Verdict:
    """Whether a truth value is 1 for all inputs that keep the contracts; `opaque` as in `Grid`."""
    steps = Steps(Grid((), contracts=tuple(contracts), opaque=frozenset(opaque)))
    return judge(steps, [Failure(negation(steps.at(truth, "")))], most)


def is_constant(expr: Expr, value: int, contracts: Iterable[Contract] = (), opaque: Iterable[str] = ()) -> Verdict:
    """Whether an expression has this one value for all inputs that keep the contracts."""
    return always(comparison("==", expr, constant(value)), contracts, opaque)


def extent(expr: Expr, contracts: Iterable[Contract] = (), most: int = MOST) -> Range | Unknown:
    """From the least value of an expression under the contracts to the greatest; both occur where it is of inputs.

    `ValueError` where the contracts contradict each other.
    """
    steps = Steps(Grid((), contracts=tuple(contracts)))
    context = isl.Context()
    try:
        with limited(context, most):
            placed = steps.at(expr, "")
            space = space_of(context, steps, [placed])
            values = space.extremes(placed, space.domain)
    except UndecidedError as error:
        return Unknown(str(error))
    if values is None:
        raise ValueError("the contracts contradict each other")
    return values


def narrowed(contracts: Iterable[Contract], most: int = MOST) -> Mapping[str, Expr]:
    """The inputs that the contracts speak of, each with the range and the divisor that all of them together leave it.

    One that is too hard to narrow is left out, as is all if the contracts contradict each other.
    """
    kept = tuple(contracts)
    steps = Steps(Grid((), contracts=kept))
    context = isl.Context()
    known: dict[str, Expr] = {}
    try:
        with limited(context, most):
            space = space_of(context, steps, ())
    except UndecidedError:
        return known
    for p in unknowns_of(contract.condition for contract in kept):
        if p.name not in space.places:
            continue
        try:
            with limited(context, most):
                values = space.extremes(p, space.domain)
                others = [place for name, place in space.places.items() if name != p.name]
                step, first = _progression(without(space.domain, others)) if values is not None else (1, 0)
        except UndecidedError:
            continue
        if values is not None:
            known[p.name] = parameter(p.name, values, divisor=step if step and first % step == 0 else 1)
    return known


def _progression(line: isl.Set) -> tuple[int, int]:
    """`step` and `first` where all points of a set of integers are `first` plus a multiple of `step`."""
    info = line.get_stride_info(0)
    first = info.get_offset()
    return int(info.get_stride().to_python()), int(first.get_constant_val().to_python()) if first.is_cst() else 1
