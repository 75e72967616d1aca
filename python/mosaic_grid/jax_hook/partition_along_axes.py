"""`emit_pipeline` over cores as JAX 0.10 has it: the split finds out itself which core this is, and of how many."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from jax import lax

from mosaic_grid.jax_hook import options
from mosaic_grid.jax_hook.internals import internal
from mosaic_grid.jax_hook.partition import joined, own_share


def patch(module: ModuleType) -> None:
    """Replaces the split where `jax_mosaic_grid` rewrites kernels."""
    stock = internal(module, "_partition_grid", ("grid", "core_axis", "dimension_semantics"))
    count = internal(module, "num_programs", ("axis",))
    number = internal(module, "program_id", ("axis",))
    parallel = internal(module, "PARALLEL")

    def cores_along(axis: Any) -> tuple[Any, Any]:
        if isinstance(axis, tuple):
            return functools.reduce(joined, map(cores_along, axis))
        if isinstance(axis, int):
            return count(axis), number(axis)
        return lax.axis_size(axis), lax.axis_index(axis)

    def _partition_grid(grid: Any, core_axis: Any, dimension_semantics: Any) -> Any:
        share = None
        if options.rewrites() and core_axis not in (None, ()):
            share = own_share(grid, dimension_semantics, parallel, *cores_along(core_axis))
        return stock(grid, core_axis, dimension_semantics) if share is None else share

    vars(module)["_partition_grid"] = _partition_grid
