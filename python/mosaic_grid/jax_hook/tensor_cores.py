"""How many cores a `TensorCoreMesh` has that doesn't say it: those of the simulated chip."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from mosaic_grid.jax_hook.device import simulated
from mosaic_grid.jax_hook.internals import internal


def patch(module: ModuleType) -> None:
    """The default is in the class's `__init__`, so that is replaced, and what the function that makes one asks."""
    mesh = internal(module, "TensorCoreMesh", ("axis_name", "num_cores"))
    stock = mesh.__init__

    @functools.wraps(stock)
    def __init__(self: Any, **fields: Any) -> None:  # noqa: N807
        chip = None if "num_cores" in fields else simulated()
        stock(self, **fields if chip is None else {**fields, "num_cores": chip.cores})

    stock_count = internal(module, "_get_default_num_cores", ())

    def _get_default_num_cores() -> int:
        chip = simulated()
        return int(stock_count()) if chip is None else chip.cores

    mesh.__init__ = __init__
    vars(module)["_get_default_num_cores"] = _get_default_num_cores
