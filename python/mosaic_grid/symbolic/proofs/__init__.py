"""Proofs about grids, windows and contracts, on isl: each claim is proved, refuted with a witness, or unknown.

Exact where everything is quasi-affine. Importing this package loads isl; the rest of `symbolic` does without it.
"""

from __future__ import annotations

from mosaic_grid.symbolic.proofs.coverage import covered
from mosaic_grid.symbolic.proofs.effort import MOST, TooComplexError, UndecidedError, limited
from mosaic_grid.symbolic.proofs.grids import countable, has_steps
from mosaic_grid.symbolic.proofs.problem import PARALLEL, Grid, Window
from mosaic_grid.symbolic.proofs.races import meets_array, no_race
from mosaic_grid.symbolic.proofs.revisits import revisits_follow
from mosaic_grid.symbolic.proofs.shares import Imbalance, imbalance, largest_share
from mosaic_grid.symbolic.proofs.values import always, extent, is_constant, narrowed

__all__ = [
    "MOST",
    "PARALLEL",
    "Grid",
    "Imbalance",
    "TooComplexError",
    "UndecidedError",
    "Window",
    "always",
    "countable",
    "covered",
    "extent",
    "has_steps",
    "imbalance",
    "is_constant",
    "largest_share",
    "limited",
    "meets_array",
    "narrowed",
    "no_race",
    "revisits_follow",
]
