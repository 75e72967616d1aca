"""Partitioning launch by launch: plan, refuse or build; kernels are built once for all launches that agree."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from jaxlib.mlir import ir

from mosaic_grid import symbolic
from mosaic_grid.dataflow.outer import OuterScalars
from mosaic_grid.diagnostics import Diagnostic, Severity, note, place_of
from mosaic_grid.grid import Dimension, Semantics
from mosaic_grid.ir_types import Value
from mosaic_grid.kernel_edit import set_grid
from mosaic_grid.partition.cost import division_overhead_percent, linearizing_pays
from mosaic_grid.partition.kernel import partition_kernel, table_for
from mosaic_grid.partition.launch import Variant, launch_partitioned, needs_choice
from mosaic_grid.partition.plan import BoundFacts, Nothing, Option, Strategy, make_option, runs_to_share
from mosaic_grid.partition.split import Split
from mosaic_grid.program import Kernel, Launch, Program, block_of, symbol_of
from mosaic_grid.resolve import remove_unused
from mosaic_grid.unpack import unique_symbol


@dataclasses.dataclass
class Partitioner:
    """One run of `partition-cores` over a program."""

    program: Program
    scalars: OuterScalars
    cores: int
    strategy: Strategy

    def __post_init__(self) -> None:
        """Notes which symbols are taken."""
        self._taken = {name for op in block_of(self.program.module) if (name := symbol_of(op.operation))}
        self._kernels: dict[tuple[str, Split | None], str] = {}
        self._replaced: set[str] = set()
        self._launches: dict[str, list[Launch]] = {}
        for launch in self.program.launches:
            self._launches.setdefault(launch.kernel.symbol, []).append(launch)

    def partition(self, launch: Launch) -> Iterator[Diagnostic]:
        """Shares one launch's grid, or yields the remark that says why it can't be."""
        runs = runs_to_share(launch.kernel.grid, self.cores, self.strategy)
        if isinstance(runs, Nothing):
            return
        from mosaic_grid.legality import objections  # brings isl, which only a kernel worth sharing should load

        facts = {axis: self._facts(bound) for axis, bound in launch.bounds.items()}
        options: list[Option] = []
        for axes in runs:
            found = objections(launch.kernel, axes, self._launches[launch.kernel.symbol])
            if found:
                yield _refusal(launch.kernel, axes, found[0].reason, found[0].location)
                continue
            options.append(make_option(launch.kernel.grid, axes, self.cores, facts))
        options = self._worth_having(launch.kernel, options, facts)
        if options:
            self._replaced.add(launch.kernel.symbol)
            variants = [self._variant(launch.kernel, option) for option in options]
            fallback = self._fallback(launch.kernel) if needs_choice(variants) else None
            launch_partitioned(launch, variants, fallback)

    def finish(self) -> None:
        """Removes the kernels that no launch needs any more."""
        remove_unused(self.program, self._replaced)

    def _facts(self, bound: Value) -> BoundFacts:
        value = self.scalars.evaluate(bound)
        known = symbolic.range_of(value)
        return BoundFacts(known.lo, known.hi, symbolic.divisor_of(value))

    def _worth_having(self, kernel: Kernel, options: list[Option], facts: dict[int, BoundFacts]) -> list[Option]:
        """Under `auto`, drops the option that counts several dimensions together where its divisions don't pay."""
        if self.strategy != "auto":
            return options[:1] if self.strategy == "linearize" else options
        single = [option for option in options if len(option.split.axes) == 1]
        joint = [option for option in options if len(option.split.axes) > 1]
        return single + [option for option in joint if not single or linearizing_pays(kernel, option.split, facts)]

    def _variant(self, kernel: Kernel, option: Option) -> Variant:
        split = option.split
        table = table_for(kernel, split)
        key = (kernel.symbol, split)
        if key not in self._kernels:
            name = f"{kernel.symbol}_cores{split.cores}" + "".join(f"_d{axis}" for axis in split.axes)
            self._kernels[key] = self._clone(kernel, name, split)
        extra = division_overhead_percent(kernel, split) if len(split.axes) > 1 else 0
        return Variant(split, self._kernels[key], table, option.guarded, extra)

    def _fallback(self, kernel: Kernel) -> str:
        """The kernel for launches with too few steps to share; a `core_parallel` one has to run on one core there."""
        if all(dimension.semantics is not Semantics.CORE_PARALLEL for dimension in kernel.grid):
            return kernel.symbol
        key = (kernel.symbol, None)
        if key not in self._kernels:
            self._kernels[key] = self._clone(kernel, f"{kernel.symbol}_serial", None)
        return self._kernels[key]

    def _clone(self, kernel: Kernel, name: str, split: Split | None) -> str:
        symbol = unique_symbol(name, self._taken)
        self._taken.add(symbol)
        block = self.program.module.regions[0].blocks[0]
        clone = kernel.module.clone(ip=ir.InsertionPoint(block)).operation
        clone.attributes["sym_name"] = ir.StringAttr.get(symbol)
        if split is None:
            serial = [Dimension(dimension.bound, Semantics.ARBITRARY) for dimension in kernel.grid]
            set_grid(Kernel(clone).body, serial)
        else:
            partition_kernel(clone, split)
        return symbol


def _refusal(kernel: Kernel, axes: tuple[int, ...], reason: str, location: ir.Location) -> Diagnostic:
    named = " and ".join(str(axis) for axis in axes)
    plural = "s" if len(axes) > 1 else ""
    message = f"the kernel '{kernel.name}' can't be shared between cores along dimension{plural} {named}: {reason}"
    place = place_of(location)
    return Diagnostic(Severity.REMARK, message, place, "not-partitioned", (note("the kernel is left as it was"),))
