"""Carrying out plans: batched kernels are built once for all loops that agree, then each loop becomes a launch."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from jaxlib.mlir import ir

from mosaic_grid.batching.kernel import Form, batch_kernel
from mosaic_grid.batching.launch import launch_once
from mosaic_grid.batching.plan import Plan
from mosaic_grid.dataflow.control import functions_of
from mosaic_grid.program import Kernel, Program, block_of, symbol_of
from mosaic_grid.resolve import remove_unused
from mosaic_grid.unpack import unique_symbol


def carry_out(program: Program, plans: Sequence[Plan]) -> None:
    """Replaces the loops as planned, in place, and removes the kernels and functions that nothing uses any more."""
    idle = {name for name, function in functions_of(program.module).items() if function.closed and not function.calls}
    kernels = _Kernels(program)
    for plan in plans:
        launch_once(plan, kernels.batched(plan.loop.launch.kernel, plan.form))
    remove_unused(program, {plan.loop.launch.kernel.symbol for plan in plans})
    _remove_functions(program, idle)


@dataclasses.dataclass
class _Kernels:
    """The kernels made so far."""

    program: Program

    def __post_init__(self) -> None:
        """Notes which symbols are taken."""
        self._taken = {name for op in block_of(self.program.module) if (name := symbol_of(op.operation))}
        self._made: dict[tuple[str, Form], str] = {}

    def batched(self, kernel: Kernel, form: Form) -> str:
        """The symbol of the kernel with a batch."""
        key = (kernel.symbol, form)
        if key not in self._made:
            symbol = unique_symbol(f"{kernel.symbol}_batch{form.size}", self._taken)
            self._taken.add(symbol)
            block = self.program.module.regions[0].blocks[0]
            clone = kernel.module.clone(ip=ir.InsertionPoint(block)).operation
            clone.attributes["sym_name"] = ir.StringAttr.get(symbol)
            batch_kernel(clone, form)
            self._made[key] = symbol
        return self._made[key]


def _remove_functions(program: Program, kept: set[str]) -> None:
    """Removes the private functions that are no longer called; those in `kept` never were."""
    while unused := [
        function.op
        for name, function in functions_of(program.module).items()
        if function.closed and not function.calls and name not in kept
    ]:
        for op in unused:
            op.erase()
