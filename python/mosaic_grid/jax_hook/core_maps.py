"""`pl.kernel`, and whatever else maps a function over the cores of a mesh, on the CPU: lowered as for a TPU."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from jax._src.interpreters import mlir

from mosaic_grid.jax_hook import options
from mosaic_grid.jax_hook.internals import internal


def patch(module: ModuleType) -> None:
    """Replaces the lowering of the primitive; what asks to be interpreted is left to JAX."""
    primitive = internal(module, "mpmd_map_p")
    stock = internal(mlir, "_lowerings")[primitive].rule
    for_tpu = internal(module, "_mpmd_map_tpu_lowering", ("ctx", "in_nodes"))

    def lower(context: Any, *operands: Any, **parameters: Any) -> Any:
        platforms = tuple(context.module_context.platforms)
        simulate = options.cpu.value and platforms == ("cpu",) and not parameters["interpret"]
        return (for_tpu if simulate else stock)(context, *operands, **parameters)

    mlir.register_lowering(primitive, lower)
