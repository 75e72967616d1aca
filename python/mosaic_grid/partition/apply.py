"""Carrying out plans: kernels are built once for all launches that agree, then the launches are replaced."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from jaxlib.mlir import ir

from mosaic_grid.grid import Dimension, Semantics
from mosaic_grid.kernel_edit import set_grid
from mosaic_grid.partition.cost import division_overhead_percent
from mosaic_grid.partition.kernel import partition_kernel, table_for
from mosaic_grid.partition.launch import Variant, launch_partitioned, needs_choice
from mosaic_grid.partition.plan import Option
from mosaic_grid.partition.planner import Plan
from mosaic_grid.partition.split import Split
from mosaic_grid.program import Kernel, Program, block_of, symbol_of
from mosaic_grid.resolve import remove_unused
from mosaic_grid.unpack import unique_symbol


def carry_out(program: Program, plans: Iterable[Plan]) -> None:
    """Replaces the launches as planned, in place, and removes the kernels that no launch names any more."""
    kernels = _Kernels(program)
    replaced: set[str] = set()
    for plan in plans:
        if not plan.options:
            continue
        kernel = plan.launch.kernel
        variants = [kernels.variant(kernel, option) for option in plan.options]
        launch_partitioned(plan.launch, variants, kernels.fallback(kernel) if needs_choice(variants) else None)
        replaced.add(kernel.symbol)
    remove_unused(program, replaced)


@dataclasses.dataclass
class _Kernels:
    """The kernels made so far, each under a symbol of its own."""

    program: Program

    def __post_init__(self) -> None:
        """Notes which symbols are taken."""
        self._taken = {name for op in block_of(self.program.module) if (name := symbol_of(op.operation))}
        self._made: dict[tuple[str, Split | None], str] = {}
        self._variants: dict[tuple[str, Option], Variant] = {}

    def variant(self, kernel: Kernel, option: Option) -> Variant:
        """The partitioned kernel for an option, ready to be launched."""
        key = (kernel.symbol, option)
        if key not in self._variants:
            split = option.split
            extra = division_overhead_percent(kernel, split) if len(split.axes) > 1 else 0
            symbol = self._partitioned(kernel, split)
            self._variants[key] = Variant(split, symbol, table_for(kernel, split), option.guarded, extra)
        return self._variants[key]

    def fallback(self, kernel: Kernel) -> str:
        """The kernel for launches with too few steps to share; a `core_parallel` one has to run on one core there."""
        if all(dimension.semantics is not Semantics.CORE_PARALLEL for dimension in kernel.grid):
            return kernel.symbol
        if (kernel.symbol, None) not in self._made:
            symbol, module = self._clone(kernel, f"{kernel.symbol}_serial")
            set_grid(Kernel(module).body, [Dimension(d.bound, Semantics.ARBITRARY) for d in kernel.grid])
            self._made[kernel.symbol, None] = symbol
        return self._made[kernel.symbol, None]

    def _partitioned(self, kernel: Kernel, split: Split) -> str:
        if (kernel.symbol, split) not in self._made:
            name = f"{kernel.symbol}_cores{split.cores}" + "".join(f"_d{axis}" for axis in split.axes)
            symbol, module = self._clone(kernel, name)
            partition_kernel(module, split)
            self._made[kernel.symbol, split] = symbol
        return self._made[kernel.symbol, split]

    def _clone(self, kernel: Kernel, name: str) -> tuple[str, ir.Operation]:
        symbol = unique_symbol(name, self._taken)
        self._taken.add(symbol)
        block = self.program.module.regions[0].blocks[0]
        clone = kernel.module.clone(ip=ir.InsertionPoint(block)).operation
        clone.attributes["sym_name"] = ir.StringAttr.get(symbol)
        return symbol, clone
