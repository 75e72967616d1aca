"""`emit_pipeline` over cores: JAX's split of the grid, and those that it refuses."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from mosaic_grid.jax_hook import options
from mosaic_grid.jax_hook.internals import internal


def patch(module: ModuleType) -> None:
    """Replaces the split, and what finds out which core this is, where `jax_mosaic_grid` rewrites kernels."""
    stock = internal(module, "_partition_grid", ("grid", "dimension_semantics", "num_cores", "core_id"))
    stock_core = internal(module, "_resolve_core_info", ("core_axis",))
    parallel = internal(module, "PARALLEL")

    def _partition_grid(grid: Any, dimension_semantics: Any, num_cores: Any = None, core_id: Any = None) -> Any:
        given = num_cores is not None and core_id is not None and bool(grid)
        one = isinstance(num_cores, int) and num_cores == 1
        semantics = dimension_semantics or (None,) * len(grid)
        if options.rewrites() and given and not one and len(semantics) == len(grid):
            from mosaic_grid.jax_hook.shares import share_of

            return share_of(grid, [each == parallel for each in semantics], num_cores, core_id)
        return stock(grid, dimension_semantics, num_cores, core_id)

    def _resolve_core_info(core_axis: Any) -> Any:
        mixed = isinstance(core_axis, tuple) and any(isinstance(axis, int) for axis in core_axis)
        if not mixed or not options.rewrites():
            return stock_core(core_axis)
        return functools.reduce(_joined, map(stock_core, core_axis))

    vars(module).update(_partition_grid=_partition_grid, _resolve_core_info=_resolve_core_info)


def _joined(outer: tuple[Any, Any], inner: tuple[Any, Any]) -> tuple[Any, Any]:
    """How many cores two axes have together, and which of them this is, counted along the inner one first."""
    return outer[0] * inner[0], outer[1] * inner[0] + inner[1]
