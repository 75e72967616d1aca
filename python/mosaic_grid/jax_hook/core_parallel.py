"""Dynamic `core_parallel` bounds: JAX refuses them before there is a program; here that waits for the passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxlib.mlir import ir

from mosaic_grid.diagnostics import first_place
from mosaic_grid.errors import UserError
from mosaic_grid.grid import Semantics
from mosaic_grid.jax_hook import options
from mosaic_grid.program import Program

_DYNAMIC = "must be statically known"


def deferred(stock: Callable[[Any], int | None]) -> Callable[[Any], int | None]:
    """The count of a kernel's cores, unknown where JAX would refuse the bound and a pass may still resolve it."""

    def active_core_count(module: Any) -> int | None:
        try:
            return stock(module)
        except ValueError as error:
            if _DYNAMIC in str(error) and (options.rewrites() or options.cpu.value):
                return None
            raise

    return active_core_count


def refuse_dynamic(program: ir.Operation) -> None:
    """Raises `UserError` at a launch of an unpacked program that still has a dynamic bound of a core_parallel one."""
    for launch in Program(program).launches:
        for number, dimension in enumerate(launch.kernel.grid):
            if dimension.semantics is Semantics.CORE_PARALLEL and dimension.bound is None:
                raise UserError(
                    f"the bound of core_parallel dimension {number} of the kernel '{launch.kernel.name}' is dynamic, "
                    "and the kernel can't be shared between the cores of this chip as it is",
                    first_place(launch.kernel.module),
                    ["jax_mosaic_grid_report=DIR writes why"],
                )
