"""Proofs about grids, windows and contracts, on isl: each claim is proved, refuted with a witness, or unknown.

Exact where everything is quasi-affine. Importing this package loads isl; the rest of `symbolic` does without it.
"""

from __future__ import annotations

from mosaic_grid.symbolic.problem import PARALLEL, Grid, Window
from mosaic_grid.symbolic.proofs.coverage import covered
from mosaic_grid.symbolic.proofs.effort import MOST, TooComplexError, UndecidedError, limited
from mosaic_grid.symbolic.proofs.never import never
from mosaic_grid.symbolic.proofs.races import meets_array, no_race
from mosaic_grid.symbolic.proofs.revisits import revisits_follow
from mosaic_grid.symbolic.proofs.unavoidable import unavoidable
from mosaic_grid.symbolic.proofs.values import extent, narrowed

__all__ = [
    "MOST",
    "PARALLEL",
    "Grid",
    "TooComplexError",
    "UndecidedError",
    "Window",
    "covered",
    "extent",
    "limited",
    "meets_array",
    "narrowed",
    "never",
    "no_race",
    "revisits_follow",
    "unavoidable",
]
