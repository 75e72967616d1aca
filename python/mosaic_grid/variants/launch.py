"""Launching the variant that fits, or the original kernel where none does."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from jaxlib.mlir import ir

from mosaic_grid.ir_types import Value
from mosaic_grid.launch_edit import Branch, Kept, choose_launch, replace_kernel, substitute_launch
from mosaic_grid.partition import scalars
from mosaic_grid.partition.kernel import table_for
from mosaic_grid.partition.launch import share_of, table_operand
from mosaic_grid.program import Launch, Program
from mosaic_grid.resolve import remove_unused
from mosaic_grid.variants.build import Kernels
from mosaic_grid.variants.plan import Plan, Variant
from mosaic_grid.variants.selection import index_of


def carry_out(program: Program, plans: Iterable[Plan], kernels: Kernels) -> None:
    """Replaces the launches as planned, in place, and removes the kernels that no launch names any more."""
    replaced = set(kernels.symbols)
    for plan in plans:
        if plan.variants:
            replaced.add(plan.launch.kernel.symbol)
            _replace(plan, kernels)
    remove_unused(Program(program.module), replaced | kernels.symbols)


def _replace(plan: Plan, kernels: Kernels) -> None:
    launch = plan.launch
    branches: list[Branch] = [
        functools.partial(launch_variant, launch, variant, kernels.symbol(launch.kernel, variant))
        for variant in plan.variants
    ]
    if not plan.complete:
        everything = [Kept(i) for i in range(len(launch.op.operands))]
        branches.append(functools.partial(replace_kernel, launch, launch.kernel.symbol, everything))
    with launch.op.location, ir.InsertionPoint(launch.op):
        if len(branches) == 1:
            new = branches[0](ir.InsertionPoint(launch.op))
        else:
            new = choose_launch(launch, index_of(plan), branches)
    substitute_launch(launch, new)


def launch_variant(launch: Launch, variant: Variant, kernel: str, ip: ir.InsertionPoint) -> ir.Operation:
    """The launch of a variant's kernel at an insertion point, which is the current one too.

    The operands of bounds that are static now go; the last steps that guards compare with stand behind the prefetch
    operands, and behind them what a kernel must know that shares a dimension between cores.
    """
    dynamic = launch.kernel.dynamic_dimensions
    inputs = len(dynamic) + launch.kernel.prefetch_count
    operands: list[Kept | Value] = [Kept(i) for i, axis in enumerate(dynamic) if axis not in variant.axes]
    operands += [Kept(i) for i in range(len(dynamic), inputs)]
    guards = [steps.axis for steps in variant.guarded if steps != variant.shared]
    operands += [scalars.vector([scalars.subtract(launch.bounds[axis], 1)]) for axis in guards]
    if (split := variant.split(launch.kernel.grid)) is not None:
        operands.append(table_operand(split, table_for(launch.kernel, split), launch.bounds))
        operands.append(scalars.vector([scalars.subtract(share_of(split, launch.bounds), 1)]))
    operands += [Kept(i) for i in range(inputs, len(launch.op.operands))]
    return replace_kernel(launch, kernel, operands, ip)
