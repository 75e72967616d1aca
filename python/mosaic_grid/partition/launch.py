"""Launching a partitioned kernel: its bounds and table computed once, outside, and the choice between several."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

from jaxlib.mlir import ir

from mosaic_grid.grid import I32_MAX
from mosaic_grid.ir_types import Value
from mosaic_grid.launch_edit import Kept, choose_launch, replace_kernel, substitute_launch
from mosaic_grid.partition import scalars
from mosaic_grid.partition.split import Split
from mosaic_grid.partition.table import Table
from mosaic_grid.program import Launch


@dataclasses.dataclass(frozen=True)
class Variant:
    """One partitioned kernel a launch may pick.

    `guarded` says that its bounds aren't proved to give every core a step and to stay clear of 32-bit wrap-around: it
    is then picked only where a comparison of the launch shows both. `extra_cost` is what a step costs more than in the
    other variants, in percent of a step.
    """

    split: Split
    kernel: str
    table: Table
    guarded: bool
    extra_cost: int = 0


def needs_choice(variants: Sequence[Variant]) -> bool:
    """Whether the launch has to pick at run time."""
    return len(variants) > 1 or variants[0].guarded


def launch_partitioned(launch: Launch, variants: Sequence[Variant], fallback: str | None) -> None:
    """Replaces a launch by one of the variants, picked at run time where more than one may be right.

    `fallback` is the kernel with the original grid, for bounds with which no variant may run; none is needed without a
    choice.
    """
    op = launch.op
    with op.location, ir.InsertionPoint(op):
        if fallback is None:
            new = _launch_variant(launch, variants[0], ir.InsertionPoint(op))
        else:
            new = _launch_chosen(launch, fallback, variants)
    substitute_launch(launch, new)


def _launch_chosen(launch: Launch, fallback: str, variants: Sequence[Variant]) -> ir.Operation:
    everything = [Kept(i) for i in range(len(launch.op.operands))]
    original = functools.partial(replace_kernel, launch, fallback, everything)
    return choose_launch(
        launch,
        _choose(launch, variants),
        [original, *(functools.partial(_launch_variant, launch, variant) for variant in variants)],
    )


def _launch_variant(launch: Launch, variant: Variant, ip: ir.InsertionPoint) -> ir.Operation:
    """The launch with the partitioned kernel's operands: bounds, old prefetch operands, table, inputs."""
    split = variant.split
    bounds = launch.bounds
    steps = None if split.static_steps is not None else _steps(split, bounds)
    operands: list[Kept | Value] = [Kept(_operand_of(launch, axis)) for axis in split.outer if axis in bounds]
    if steps is not None:
        operands.append(share_of(split, bounds))
    operands += [Kept(_operand_of(launch, axis)) for axis in split.inner if axis in bounds]
    start = len(launch.kernel.dynamic_dimensions)
    inputs = start + launch.kernel.prefetch_count
    operands += [Kept(index) for index in range(start, inputs)]
    if variant.table.size:
        assert steps is not None, "a static split needs no table"
        operands.append(table_operand(split, variant.table, bounds))
    operands += [Kept(index) for index in range(inputs, len(launch.op.operands))]
    return replace_kernel(launch, variant.kernel, operands, ip)


def _operand_of(launch: Launch, axis: int) -> int:
    """The index of the operand that is a dynamic dimension's bound."""
    return launch.kernel.dynamic_dimensions.index(axis)


def share_of(split: Split, bounds: dict[int, Value]) -> Value:
    """How many steps the longest share has, the fused ones counted along, computed at the current insertion point."""
    steps = _steps(split, bounds)
    share = scalars.divide(steps, split.cores) if split.even else scalars.ceil_divide(steps, split.cores)
    return scalars.multiply(share, split.fused_steps)


def _steps(split: Split, bounds: dict[int, Value]) -> Value:
    """The number of shared steps."""
    static = [split.grid[axis].bound or 1 for axis in split.axes if axis not in bounds]
    dynamic = functools.reduce(scalars.multiply, [bounds[axis] for axis in split.axes if axis in bounds])
    return functools.reduce(scalars.multiply, static, dynamic)


def table_operand(split: Split, table: Table, bounds: dict[int, Value]) -> Value:
    """The table of a launch with these dynamic bounds, computed at the current insertion point."""
    steps = _steps(split, bounds)
    entries: list[Value] = []
    if table.last:
        entries.append(scalars.subtract(scalars.multiply(steps, split.fused_steps), 1))
    if table.firsts:
        # first(c) = c * q + min(c, r) with steps = cores * q + r
        quotient = scalars.divide(steps, split.cores)
        remainder = scalars.subtract(steps, scalars.multiply(quotient, split.cores))
        for core in range(table.firsts):
            longer = scalars.minimum(remainder, core)
            first = scalars.add(scalars.multiply(quotient, core), longer)
            entries.append(scalars.multiply(first, split.fused_steps))
    entries += [bounds[axis] for axis in table.bounds]
    return scalars.vector(entries)


def _choose(launch: Launch, variants: Sequence[Variant]) -> Value:
    """1 + the index of the variant whose largest share is least among those that may run; 0 if none may.

    Shares are compared as numbers of steps. Where their product wraps, the choice may be the slower one, never a wrong
    one.
    """
    if len(variants) == 1:
        return scalars.select(_may_run(launch, variants[0].split), 1, 0)
    best, least = scalars.constant(0), scalars.constant(I32_MAX)
    for number, variant in enumerate(variants, start=1):
        cost = _largest_share(launch, variant, variants)
        better = scalars.compare(cost, "LT", least)
        if variant.guarded:
            better = scalars.both(better, _may_run(launch, variant.split))
        best, least = scalars.select(better, number, best), scalars.select(better, cost, least)
    return best


def _may_run(launch: Launch, split: Split) -> Value:
    """Whether every core has a step, and no step count wraps."""
    dynamic = [launch.bounds[axis] for axis in split.dynamic_axes]
    static = [split.grid[axis].bound or 1 for axis in split.axes if axis not in split.dynamic_axes]
    limit: Value | int = functools.reduce(lambda left, bound: left // max(bound, 1), static, split.step_limit)
    conditions: list[Value] = []
    for bound in dynamic[:-1]:
        # n * m <= limit is n <= limit / m where both are positive
        conditions.append(scalars.compare(bound, "GE", 1))
        limit = scalars.divide(scalars.constant(limit) if isinstance(limit, int) else limit, scalars.maximum(bound, 1))
    conditions.append(scalars.compare(dynamic[-1], "LE", limit))
    if len(dynamic) > 1:
        conditions.append(scalars.compare(dynamic[-1], "GE", 1))
    conditions.append(scalars.compare(_steps(split, launch.bounds), "GE", split.cores))
    return functools.reduce(scalars.both, conditions)


def _largest_share(launch: Launch, variant: Variant, variants: Sequence[Variant]) -> Value:
    """The steps of the core that has most of them, over all dimensions that some variant shares."""
    split = variant.split
    steps = _steps(split, launch.bounds)
    share = scalars.ceil_divide(steps, split.cores)
    compared = {axis for other in variants for axis in other.split.axes} - set(split.axes)
    for axis in sorted(compared):
        share = scalars.multiply(share, launch.bounds.get(axis, split.grid[axis].bound or 1))
    if variant.extra_cost:
        share = scalars.add(share, scalars.divide(scalars.multiply(share, variant.extra_cost), 100))
    return share
