"""`pallas_call` on the CPU: lowered as for a TPU; the launch becomes StableHLO when the whole program is there."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from jax._src import effects
from jax._src.interpreters import mlir
from jax._src.pallas import core as pallas_core

from mosaic_grid.jax_hook import options
from mosaic_grid.jax_hook.internals import internal


def patch(module: ModuleType) -> None:
    """Replaces the lowering of the primitive; what asks to be interpreted is left to JAX."""
    primitive = internal(module, "pallas_call_p")
    stock = internal(module, "_pallas_call_lowering", ("ctx", "in_nodes", "interpret"))
    platforms_of = internal(mlir, "_platforms_for_eqn", ("ctx",))
    rule_for = internal(pallas_core, "get_lowering_rule")

    def lower(context: Any, *operands: Any, **parameters: Any) -> Any:
        platforms = platforms_of(context)
        if not options.cpu.value or parameters["interpret"] or "cpu" not in platforms:
            return stock(context, *operands, **parameters)
        rule = _tpu_rule(parameters["compiler_params"])
        if rule is None:
            return stock(context, *operands, **parameters)
        if len(platforms) == 1:
            return rule(context, *operands, **parameters)
        rules = {each: rule if each == "cpu" else stock for each in platforms}
        return mlir.lower_per_platform(context, "pallas_call", rules, None, effects.no_effects, *operands, **parameters)

    def _tpu_rule(compiler_params: Any) -> Any:
        """JAX's lowering for a TPU; `None` for a kernel that is written for something else."""
        from jax._src.pallas.mosaic import pallas_call_registration

        if compiler_params is None:
            return internal(pallas_call_registration, "pallas_call_tpu_lowering_rule")
        return rule_for(type(compiler_params), "tpu")

    mlir.register_lowering(primitive, lower)
