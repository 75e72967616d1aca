"""mosaic-grid: resolves the grids of lowered Pallas TPU kernels and shares them between the cores.

Importing the package imports nothing else, so that each tool pays only for what it uses.
"""

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mosaic_grid.cpu.xla_options import COMPILER_OPTIONS as COMPILER_OPTIONS
    from mosaic_grid.errors import UserError as UserError
    from mosaic_grid.runner.api import run as run
    from mosaic_grid.runner.recorded import KernelError as KernelError
    from mosaic_grid.runner.specialized import specialize as specialize

# What XLA has to say when it starts is of no use to anyone; its warnings and errors still come through. JAX sets the
# same. It is read when jaxlib is loaded.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

__version__ = "0.1.0"

_LATER = {
    "COMPILER_OPTIONS": "mosaic_grid.cpu.xla_options",
    "run": "mosaic_grid.runner.api",
    "specialize": "mosaic_grid.runner.specialized",
    "KernelError": "mosaic_grid.runner.recorded",
    "UserError": "mosaic_grid.errors",
}
"""The public names, with the modules that they are imported from when they are first asked for."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'mosaic_grid' has no attribute '{name}'")
    return getattr(importlib.import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_LATER])
