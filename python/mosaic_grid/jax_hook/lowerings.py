"""Where JAX hands on a lowered program, for `jit`, AOT compilation and export alike: the passes run here."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from mosaic_grid.jax_hook import options
from mosaic_grid.jax_hook.internals import internal


def patch(module: ModuleType) -> None:
    """Wraps the one function that makes all modules."""
    stock = internal(module, "lower_jaxpr_to_module", ("module_name", "jaxpr"))

    def lower_jaxpr_to_module(*args: Any, **parameters: Any) -> Any:
        result = stock(*args, **parameters)
        if options.asks_for_something():
            from mosaic_grid.jax_hook.programs import transform

            exported = parameters["lowering_parameters"].for_export
            transform(result.module, parameters["axis_context"], None if exported else result.host_callbacks)
        return result

    vars(module)["lower_jaxpr_to_module"] = lower_jaxpr_to_module
