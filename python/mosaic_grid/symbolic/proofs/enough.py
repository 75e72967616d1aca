"""What would be enough to promise of one input for a claim to hold, where it fails for some of its values."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence

import islpy as isl

from mosaic_grid.symbolic.proofs.affine import least, without
from mosaic_grid.symbolic.proofs.effort import UndecidedError, limited
from mosaic_grid.symbolic.proofs.steps import Steps
from mosaic_grid.symbolic.ranges import type_range
from mosaic_grid.symbolic.verdict import Enough

_I32 = type_range(32, True)


def enough(
    steps: Steps, names: Sequence[str], possible: isl.Set, bad: Sequence[isl.Set], inner: Collection[str], most: int
) -> Enough | None:
    """The values around the least good one that isn't negative, of the one input that the coordinates `names` speak of.

    `possible` are the points at which the claim is about something, `bad` those at which it isn't known to hold. The
    names in `inner` are those of steps and blocks. None where there are other inputs, or it is too hard to say.
    """
    hidden = steps.hidden()
    inputs = [name for name in names if name not in inner and name not in hidden]
    if len(inputs) != 1 or (told := steps.every(inputs[0])) is None:
        return None
    others = [place for place, name in enumerate(names) if name != inputs[0]]
    try:
        with limited(possible.get_ctx(), most):
            fails = without(functools.reduce(isl.Set.union, bad), others)
            holds = without(possible, others).subtract(fails)
            values = _around(holds, fails)
    except UndecidedError:
        return None
    return None if values is None else Enough(told, *values)


def _around(holds: isl.Set, fails: isl.Set) -> tuple[int | None, int | None] | None:
    """The ends of the integers without one of `fails` around the first of `holds`, None for no end within reach."""
    good = _at_least(holds, 0)
    if good.is_empty():
        good = holds
    if good.is_empty():
        return None
    first = least(good, 0)
    above, below = _at_least(fails, first), _at_least(fails.neg(), -first)
    hi = None if above.is_empty() else least(above, 0) - 1
    lo = None if below.is_empty() else 1 - least(below, 0)
    # fewer are enough as well: none that a person wonders about
    lo = max(lo, 0) if lo is not None and first >= 0 else lo
    return lo, min(hi, _I32.hi) if hi is not None and first <= _I32.hi else hi


def _at_least(line: isl.Set, value: int) -> isl.Set:
    return line.lower_bound_val(isl.dim_type.set, 0, isl.Val.read_from_str(line.get_ctx(), str(value)))
