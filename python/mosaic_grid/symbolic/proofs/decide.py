"""The verdict on a claim: whether it fails somewhere, and surely so, whatever the values that nobody knows."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Collection, Iterable, Mapping, Sequence

import islpy as isl

from mosaic_grid.symbolic.arith import parameter
from mosaic_grid.symbolic.choice import conjunction
from mosaic_grid.symbolic.evaluate import value_of
from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.facts import ends_of, leaves_of
from mosaic_grid.symbolic.nodes import Compare, Const, Param, constant
from mosaic_grid.symbolic.proofs.affine import Space, least, unknowns_of
from mosaic_grid.symbolic.proofs.affine import without as without
from mosaic_grid.symbolic.proofs.effort import MOST, UndecidedError, limited
from mosaic_grid.symbolic.proofs.enough import enough
from mosaic_grid.symbolic.proofs.steps import Steps
from mosaic_grid.symbolic.ranges import Range
from mosaic_grid.symbolic.substitute import substitute
from mosaic_grid.symbolic.verdict import Enough, Proved, Refuted, Unknown, Verdict, Witness

# a witness of small numbers is looked for first: within these, then anywhere
_SMALL = (2, 8, 64, 1024, 1 << 16, 1 << 31, 1 << 40)


@dataclasses.dataclass(frozen=True)
class Failure:
    """One way in which a claim may fail: where `bad` is 1. `block` is what the witness then shows."""

    bad: Expr
    block: tuple[Expr, ...] | None = None


def judge(steps: Steps, failures: Sequence[Failure], most: int = MOST) -> Verdict:
    """Proved if the claim fails in no way, refuted where it surely fails for some values: in one way, or in any.

    The ways of one claim have the same block.
    """
    failures = [failure for failure in failures if failure.bad != Const(0)]
    if not failures:
        return Proved()
    if not steps.grid.proofs and _may_hold(steps, failures):
        return Unknown("nobody asked for a proof")
    context = isl.Context()
    try:
        with limited(context, most):
            asked = [expr for failure in failures for expr in (failure.bad, *(failure.block or ()))]
            space = space_of(context, steps, asked)
    except UndecidedError as error:
        return Unknown(str(error))
    names, hidden = tuple(space.places), steps.hidden()
    unknown: Unknown | None = None
    ways: list[isl.Set] = []
    for failure in failures:
        try:
            with limited(context, most):
                bad = space.among(space.domain, failure.bad)
            if bad.is_empty():
                continue
            ways.append(bad)
            found = surely(names, space.prior, bad, hidden, most)
        except UndecidedError as error:
            why = f"{steps.obstacle([failure.bad])}: {error}" if hidden.intersection(names) else str(error)
            unknown = Unknown(why)
            continue
        if found is not None:
            witness = witness_of(steps, found, failure.block, (failure.bad,))
            return Refuted(dataclasses.replace(witness, enough=_enough(steps, space, failures, most)))
        unknown = unknown or Unknown(steps.obstacle([failure.bad]))
    if len(ways) > 1:
        # what is hidden may decide in which way it fails, and not whether
        try:
            with limited(context, most):
                either = functools.reduce(isl.Set.union, ways)
            found = surely(names, space.prior, either, hidden, most)
        except UndecidedError:
            return unknown or Proved()
        if found is not None:
            return Refuted(witness_of(steps, found, failures[0].block, [failure.bad for failure in failures]))
    return unknown or Proved()


def _enough(steps: Steps, space: Space, failures: Sequence[Failure], most: int) -> Enough | None:
    """What would be enough to promise for the claim to hold, where somebody wants to know."""
    if not steps.grid.explains:
        return None
    try:
        with limited(space.context, most):
            bad = [space.among(space.domain, failure.bad) for failure in failures]
    except UndecidedError:
        return None
    steps_of = {name for names in steps.points.values() for name in names}
    return enough(steps, tuple(space.places), space.domain, bad, steps_of, most)


def _may_hold(steps: Steps, failures: Sequence[Failure]) -> bool:
    """Whether the claim holds for certain values of all that is hidden, which the facts allow: it isn't refuted then.

    They are numbers next to 0 or to 1, each function's the same for all arguments. False says nothing.
    """
    facts, hidden = steps.facts(), steps.hidden()
    return bool(hidden) and any(_holds_next_to(number, steps, facts, hidden, failures) for number in (0, 1))


def _holds_next_to(
    number: int, steps: Steps, facts: Sequence[Expr], hidden: Collection[str], failures: Sequence[Failure]
) -> bool:
    ends = ends_of((*facts, *steps.truths(), *(failure.bad for failure in failures)))
    least = {name: lo for name, (lo, _) in ends.items()}
    for fact in facts:
        match fact:
            case Compare(">=", Param(name), Const(value)):
                least[name] = max(value, least[name])

    def chosen(part: Expr) -> Expr | None:
        if not isinstance(part, Param) or part.name not in hidden:
            return None
        low = max(least[part.name], min(ends[part.name][1], number))
        return constant(-(-low // part.divisor) * part.divisor) if part.divisor else constant(0)

    if any((fact := substitute(each, chosen)) is not each and fact != Const(1) for each in facts):
        return False
    at_steps = [substitute(truth, chosen) for truth in steps.truths()]
    most: dict[str, int] = {}
    for truth in at_steps:
        match truth:
            case Compare("<", Param(name), Const(bound)):
                most[name] = min(bound - 1, most.get(name, bound - 1))

    def inside(part: Expr) -> Expr | None:
        """An index of a step whose bound is a number now."""
        if not isinstance(part, Param) or part.divisor > 1 or part.range.lo > most.get(part.name, part.range.lo - 1):
            return None
        return parameter(part.name, Range(part.range.lo, min(part.range.hi, most[part.name])))

    for failure in failures:
        bad = substitute(failure.bad, chosen)
        if conjunction(bad, *at_steps) != Const(0) and substitute(bad, inside) != Const(0):
            return False
    return True


def space_of(context: isl.Context, steps: Steps, exprs: Iterable[Expr]) -> Space:
    """All that is possible at the steps, inputs first; `exprs` are what will be asked of them."""
    facts, truths, indices = steps.facts(), steps.truths(), steps.unknowns()
    names = {index.name for index in indices}
    params = unknowns_of([*facts, *truths, *exprs])
    # an index may have a wider range of its own in an expression
    inputs, again = ([p for p in params if (p.name in names) == used] for used in (False, True))
    space = Space(context, [*inputs, *indices, *again])
    space.assume(facts, truths)
    return space


def surely(
    names: Sequence[str], prior: isl.Set, bad: isl.Set, hidden: Collection[str], most: int = MOST
) -> Mapping[str, int] | None:
    """Values of what isn't hidden with which all points of `prior`, and there is one, are in `bad`, a part of it.

    `names` are the unknowns that the coordinates are; those in `hidden` get no value. Raises `UndecidedError`.
    """
    unseen = [place for place, name in enumerate(names) if name in hidden]
    seen = [name for name in names if name not in hidden]
    context = prior.get_ctx()
    if not unseen or bad.is_empty():
        return None if bad.is_empty() else smallest(seen, bad, most)
    with limited(context, most):
        possible = without(bad, unseen)
    values = smallest(seen, possible, most)
    with limited(context, most):
        # mostly the first of them is as good as any
        if fixed(prior, names, values).subtract(bad).is_empty():
            return values
        sure = possible.subtract(without(prior.subtract(bad), unseen))
        if sure.is_empty():
            return None
    return smallest(seen, sure, most)


def fixed(points: isl.Set, names: Sequence[str], values: Mapping[str, int]) -> isl.Set:
    """The points at which the unknowns have these values."""
    for place, name in enumerate(names):
        if name in values:
            value = isl.Val.read_from_str(points.get_ctx(), str(values[name]))
            points = points.fix_val(isl.dim_type.set, place, value)
    return points


def smallest(names: Sequence[str], points: isl.Set, most: int = MOST) -> Mapping[str, int]:
    """The first of those points that are small, with no negative number if that can be; else any. By name.

    Where the first one is too hard to find it is any of the small ones, and where these are, any at all.
    """
    context = points.get_ctx()
    point = few = None
    with contextlib.suppress(UndecidedError), limited(context, most):
        few = _small(points)
    if few is not None:
        with contextlib.suppress(UndecidedError), limited(context, most):
            point = _first(few)
    if point is None:
        with limited(context, most):
            point = (points if few is None else few).sample_point()
    numbers = (point.get_coordinate_val(isl.dim_type.set, place).to_python() for place in range(len(names)))
    return dict(zip(names, map(int, numbers), strict=True))


def _small(points: isl.Set) -> isl.Set | None:
    """Those whose numbers are the smallest; None where none are small."""
    context = points.get_ctx()
    for lowest, highest in ((low, high) for high in _SMALL for low in (0, -high)):
        few = points
        for place in range(points.dim(isl.dim_type.set)):
            few = few.lower_bound_val(isl.dim_type.set, place, isl.Val.read_from_str(context, str(lowest)))
            few = few.upper_bound_val(isl.dim_type.set, place, isl.Val.read_from_str(context, str(highest)))
        if not few.is_empty():
            return few
    return None


def _first(points: isl.Set) -> isl.Point:
    """The point whose first number is the least, and so on."""
    # isl's lexmin fails on some sets of several pieces; this is the same
    for place in range(points.dim(isl.dim_type.set)):
        value = isl.Val.read_from_str(points.get_ctx(), str(least(points, place)))
        points = points.fix_val(isl.dim_type.set, place, value)
    return points.sample_point()


def witness_of(steps: Steps, values: Mapping[str, int], block: tuple[Expr, ...] | None, bad: Iterable[Expr]) -> Witness:
    """The values by what they are: of the grid's points, or of inputs; for a claim that fails where these are 1."""
    points = tuple((role, tuple(values[name] for name in names)) for role, names in steps.points.items())
    used = {name for names in steps.points.values() for name in names}
    told = ((steps.label(name, values), value) for name, value in values.items() if name not in used)
    inputs = tuple(dict.fromkeys(told))  # several reads may be of one element
    shown = None if block is None else tuple(_shown(steps, index, values) for index in block)
    return Witness(inputs, points, shown, steps.overflow((*(block or ()), *bad), values))


def _shown(steps: Steps, index: Expr, values: Mapping[str, int]) -> int | str:
    """The value of an index, or its text where it is only known at run time."""
    leaves = leaves_of(index)
    if any(leaf.text not in values for leaf in leaves):
        return str(steps.written(index))
    return value_of(index, {leaf: values[leaf.text] for leaf in leaves})
