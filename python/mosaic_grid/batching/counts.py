"""How many steps the elements of a batch have, and where each begins: computed once, by the outer program."""

from __future__ import annotations

import math

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from mosaic_grid.batching import vectors
from mosaic_grid.batching.loop import Loop
from mosaic_grid.batching.outside import Outside
from mosaic_grid.batching.plan import Plan
from mosaic_grid.batching.ragged import Table
from mosaic_grid.grid import I32_MAX
from mosaic_grid.ir_types import Value
from mosaic_grid.partition import scalars

_COUNTABLE = 2.0**30
"""Far enough below the largest i32 that adding up f32 numbers, each rounded, can't hide that it is exceeded."""


def _bound(loop: Loop, axis: int, outside: Outside) -> Value:
    """The bound of a dynamic dimension for each element, `tensor<Nxi32>`; less than nothing is nothing."""
    number = loop.launch.kernel.dynamic_dimensions.index(axis)
    bounds = vectors.flat(outside.batched(loop.operands[number]))
    zero = vectors.constant(bounds.type, 0)
    result: Value = stablehlo.maximum(bounds, zero)
    return result


def make_table(loop: Loop, fused: int, table: Table, outside: Outside) -> tuple[Value, Value]:
    """The kernel's table, and the number of steps of all elements together."""
    grid = loop.launch.kernel.grid
    bounds = {axis: _bound(loop, axis, outside) for axis in range(fused) if grid[axis].bound is None}
    static = math.prod(grid[axis].bound or 0 for axis in range(fused) if axis not in bounds)
    steps, *others = bounds.values()
    for each in others:
        steps = stablehlo.multiply(steps, each)
    if static != 1:
        steps = stablehlo.multiply(steps, vectors.constant(steps.type, static))
    ends = vectors.running_sums(steps)
    starts = stablehlo.subtract(ends, steps)
    parts = [vectors.padded(starts, table.starts, I32_MAX), *(bounds[axis] for axis in table.axes)]
    if table.steps:
        parts.insert(0, vectors.last_not_above(starts, table.steps))
    entries = parts[0] if len(parts) == 1 else stablehlo.concatenate(parts, dimension=0)
    return entries, vectors.last(ends)


def fits(plan: Plan) -> Value:
    """Whether the table has all steps, and 32 bits can count them; computed with f32 numbers, which don't wrap."""
    loop, form, outside = plan.loop, plan.form, Outside(plan.loop)
    grid = loop.launch.kernel.grid
    axes = range(len(grid))
    counted = _total(loop, axes, outside)
    fits = _less(counted, _COUNTABLE)
    if form.steps:
        # numbers of steps below 2**24 are exact
        known = counted if form.fused == len(grid) else _total(loop, range(form.fused), outside)
        fits = scalars.both(fits, _less(known, form.steps + 1.0))
    return fits


def _total(loop: Loop, axes: range, outside: Outside) -> Value:
    """The product of the bounds of these dimensions, added up over all elements, as an f32."""
    grid = loop.launch.kernel.grid
    static = float(math.prod(max(grid[axis].bound or 0, 0) for axis in axes if grid[axis].bound is not None))
    steps = vectors.constant(ir.RankedTensorType.get([loop.size], ir.F32Type.get()), static)
    for axis in axes:
        if grid[axis].bound is None:
            steps = stablehlo.multiply(steps, vectors.to_f32(_bound(loop, axis, outside)))
    return vectors.last(vectors.running_sums(steps))


def _less(value: Value, limit: float) -> Value:
    result: Value = stablehlo.compare(
        value, vectors.constant(value.type, limit), stablehlo.ComparisonDirectionAttr.get("LT")
    )
    return result
