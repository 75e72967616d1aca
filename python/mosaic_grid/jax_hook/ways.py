"""What notes advise, as one does it with the hook's options."""

from __future__ import annotations

from mosaic_grid.jax_hook import options
from mosaic_grid.ways import Ways

_CONTRACTS = "JAX_MOSAIC_GRID_CONTRACTS"
_ON = "JAX_MOSAIC_GRID=on"
_INFER = "JAX_MOSAIC_GRID=batch-grid,resolve-grid,infer-parallel,partition-cores"


def ways() -> Ways:
    """Those of this thread's options: what `on` runs is advised where it isn't on."""
    mode = options.mode()
    if mode not in options.CHOICES:
        return Ways(_CONTRACTS)
    remedies = ("batch-grid", "resolve-grid", "partition-cores") if mode == options.CHECK else ()
    return Ways(_CONTRACTS, {**dict.fromkeys(remedies, _ON), "infer-parallel": _INFER})
