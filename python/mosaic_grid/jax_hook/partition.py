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
        given = num_cores is not None and core_id is not None
        share = own_share(grid, dimension_semantics, parallel, num_cores, core_id) if given else None
        return stock(grid, dimension_semantics, num_cores, core_id) if share is None else share

    def _resolve_core_info(core_axis: Any) -> Any:
        mixed = isinstance(core_axis, tuple) and any(isinstance(axis, int) for axis in core_axis)
        if not mixed or not options.rewrites():
            return stock_core(core_axis)
        return functools.reduce(joined, map(stock_core, core_axis))

    vars(module).update(_partition_grid=_partition_grid, _resolve_core_info=_resolve_core_info)


def own_share(grid: Any, semantics: Any, parallel: Any, num_cores: Any, core_id: Any) -> Any | None:
    """The sizes and the beginnings of a core's box; `None` where the split is JAX's, or its error about arguments.

    `parallel` is what `semantics` says of a parallel dimension.
    """
    semantics = semantics or (None,) * len(grid)
    one = isinstance(num_cores, int) and num_cores == 1
    if not options.rewrites() or not grid or one or len(semantics) != len(grid):
        return None
    from mosaic_grid.jax_hook.shares import share_of

    return share_of(grid, [each == parallel for each in semantics], num_cores, core_id)


def joined(outer: tuple[Any, Any], inner: tuple[Any, Any]) -> tuple[Any, Any]:
    """How many cores two axes have together, and which of them this is, counted along the inner one first."""
    return outer[0] * inner[0], outer[1] * inner[0] + inner[1]
