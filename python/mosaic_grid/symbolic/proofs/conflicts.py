"""A smallest part of some contracts that no values keep."""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from mosaic_grid.symbolic.contracts import Contract
from mosaic_grid.symbolic.facts import leaves_of
from mosaic_grid.symbolic.nodes import Load
from mosaic_grid.symbolic.proofs.affine import Space, unknowns_of
from mosaic_grid.symbolic.proofs.effort import MOST, UndecidedError, limited
from mosaic_grid.symbolic.proofs.instances import Instances


def conflict_in(contracts: Sequence[Contract], most: int = MOST) -> tuple[Contract, ...]:
    """Contracts of which none can be left out for the others to be kept together; none where all can be kept.

    What is too hard to decide counts as kept.
    """
    needed = tuple(contracts)
    if _can_be_kept(needed, most):
        return ()
    for contract in contracts:
        fewer = tuple(other for other in needed if other is not contract)
        if not _can_be_kept(fewer, most):
            needed = fewer
    return needed


def _can_be_kept(contracts: tuple[Contract, ...], most: int) -> bool:
    """Whether there are values, and an element of each array that is spoken of, that keep the contracts."""
    instances = Instances((), contracts)
    for contract in contracts:
        for leaf in leaves_of(contract.condition):
            if isinstance(leaf, Load) and not leaf.index:
                instances.at(leaf, "any")
    facts = instances.facts()
    context = isl.Context()
    try:
        with limited(context, most):
            space = Space(context, unknowns_of(facts))
            space.assume(facts)
            return not space.domain.is_empty()
    except UndecidedError:
        return True
