"""What contracts say of inputs: all the values that there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import islpy as isl

from mosaic_grid.symbolic.arith import load, parameter
from mosaic_grid.symbolic.contracts import Contract
from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.facts import leaves_of
from mosaic_grid.symbolic.nodes import Load, Param
from mosaic_grid.symbolic.problem import Grid
from mosaic_grid.symbolic.proofs.decide import space_of, without
from mosaic_grid.symbolic.proofs.effort import MOST, UndecidedError, limited
from mosaic_grid.symbolic.proofs.steps import Steps
from mosaic_grid.symbolic.ranges import Range
from mosaic_grid.symbolic.verdict import Unknown


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

    Of an array it is any element, a load without an index, which has no divisor. One that is too hard to narrow is left
    out, as is all if the contracts contradict each other.
    """
    kept = tuple(contracts)
    leaves = dict.fromkeys(leaf for contract in kept for leaf in leaves_of(contract.condition))
    steps = Steps(Grid((), contracts=kept))
    elements = {steps.at(leaf, "any"): leaf for leaf in leaves if isinstance(leaf, Load) and not leaf.index}
    context = isl.Context()
    known: dict[str, Expr] = {}
    try:
        with limited(context, most):
            space = space_of(context, steps, elements)
    except UndecidedError:
        return known
    for p in [*(leaf for leaf in leaves if isinstance(leaf, Param)), *elements]:
        if p.text not in space.places:
            continue
        try:
            with limited(context, most):
                values = space.extremes(p, space.domain)
                others = [place for name, place in space.places.items() if name != p.text]
                step, first = _progression(without(space.domain, others)) if values is not None else (1, 0)
        except UndecidedError:
            continue
        if values is not None and p in elements:
            known[elements[p].name] = load(elements[p].name, (), values)
        elif values is not None:
            known[p.text] = parameter(p.text, values, divisor=step if step and first % step == 0 else 1)
    return known


def _progression(line: isl.Set) -> tuple[int, int]:
    """`step` and `first` where all points of a set of integers are `first` plus a multiple of `step`."""
    info = line.get_stride_info(0)
    first = info.get_offset()
    return int(info.get_stride().to_python()), int(first.get_constant_val().to_python()) if first.is_cst() else 1
