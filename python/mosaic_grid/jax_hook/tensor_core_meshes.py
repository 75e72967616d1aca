"""How many cores a mesh that JAX 0.10 makes of a name alone has: those of the simulated chip."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from mosaic_grid.jax_hook.device import simulated
from mosaic_grid.jax_hook.internals import internal


def patch(module: ModuleType) -> None:
    """Of both modules that have the function: the public one holds on to what it has imported."""
    stock = internal(module, "create_tensorcore_mesh", ("axis_name", "devices", "num_cores"))

    @functools.wraps(stock)
    def create_tensorcore_mesh(axis_name: str, devices: Any = None, num_cores: int | None = None) -> Any:
        chip = simulated() if devices is None and num_cores is None else None
        return stock(axis_name, devices, num_cores if chip is None else chip.cores)

    vars(module)["create_tensorcore_mesh"] = create_tensorcore_mesh
