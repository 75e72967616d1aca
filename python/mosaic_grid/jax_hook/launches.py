"""The launch of a kernel in a program for the CPU: made as for a TPU, and marked for `lower-to-cpu`."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from jax._src.interpreters import mlir
from jaxlib.mlir import ir

from mosaic_grid.jax_hook import options
from mosaic_grid.jax_hook.core_parallel import deferred
from mosaic_grid.jax_hook.internals import internal

ON_CPU = "mosaic_grid.cpu"
"""The attribute of launches that are to run on the CPU: a program for several platforms has others too."""


def patch(module: ModuleType) -> None:
    """Launches can be lowered for the CPU, by the primitive and by the rules of `pallas_call` that don't take it."""
    primitive = internal(module, "tpu_custom_call_p")
    stock = internal(module, "_tpu_custom_call_lowering", ("ctx", "in_nodes", "config"))
    platforms_of = internal(mlir, "_platforms_for_eqn", ("ctx",))

    def lower(context: Any, *operands: Any, **parameters: Any) -> Any:
        results = stock(context, *operands, **parameters)
        if options.cpu.value and tuple(platforms_of(context)) == ("cpu",):
            call = results[0].owner if len(results) else list(ir.InsertionPoint.current.block.operations)[-1]
            call.attributes[ON_CPU] = ir.UnitAttr.get()
        return results

    def lower_for_cpu(context: Any, *operands: Any, **parameters: Any) -> Any:
        if not options.cpu.value:
            message = "MLIR translation rule for primitive 'tpu_custom_call' not found for platform cpu"
            raise NotImplementedError(message)
        return lower(context, *operands, **parameters)

    vars(module)["_tpu_custom_call_lowering"] = lower
    vars(module)["_get_active_core_count"] = deferred(internal(module, "_get_active_core_count", ("module",)))
    mlir.register_lowering(primitive, lower_for_cpu, platform="cpu")
