"""mosaic-grid: resolves the grids of lowered Pallas TPU kernels and shares them between the cores.

Importing the package imports nothing else, so that each tool pays only for what it uses.
"""

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mosaic_grid.runner.api import run as run

# What XLA has to say when it starts is of no use to anyone; its warnings and errors still come through. JAX sets the
# same. It is read when jaxlib is loaded.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`mosaic_grid.run`, whose module is imported when it is first asked for."""
    if name != "run":
        raise AttributeError(f"module 'mosaic_grid' has no attribute '{name}'")
    from mosaic_grid.runner import api

    return api.run
