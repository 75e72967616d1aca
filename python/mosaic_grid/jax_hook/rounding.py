"""Programs whose kernels run on the CPU are compiled with the options for such."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from mosaic_grid.cpu.xla_options import COMPILER_OPTIONS
from mosaic_grid.jax_hook.internals import internal

EXACT = "mosaic_grid.exact"
"""The attribute of a module that is to be compiled so."""


def patch(module: ModuleType) -> None:
    """Adds XLA's options, unless the user has set them."""
    parameters = ("backend", "computation", "devices", "compile_options")
    stock = internal(module, "compile_or_get_cached", parameters)

    def compile_or_get_cached(
        backend: Any, computation: Any, devices: Any, compile_options: Any, *rest: Any, **more: Any
    ) -> Any:
        if EXACT in computation.operation.attributes:
            chosen = {name for name, _ in compile_options.env_option_overrides}
            added = [(name, value) for name, value in COMPILER_OPTIONS.items() if name not in chosen]
            compile_options.env_option_overrides = [*compile_options.env_option_overrides, *added]
        return stock(backend, computation, devices, compile_options, *rest, **more)

    vars(module)["compile_or_get_cached"] = compile_or_get_cached
