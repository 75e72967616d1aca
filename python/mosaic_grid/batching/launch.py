"""The one launch: operands of all elements, the table of where each begins, and the loop where steps may be too many."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from mosaic_grid import backend_config
from mosaic_grid.batching import vectors
from mosaic_grid.batching.loop import PURE, Batched, Loop, Operand
from mosaic_grid.batching.plan import Plan
from mosaic_grid.batching.ragged import Table
from mosaic_grid.dataflow.control import defining
from mosaic_grid.grid import I32_MAX
from mosaic_grid.ir_types import Value
from mosaic_grid.launch_edit import ALIASES, BOUNDS, LAYOUTS
from mosaic_grid.partition import scalars
from mosaic_grid.program import BACKEND_CONFIG, KERNEL, ProgramError

RESULT_LAYOUTS = "result_layouts"
_COUNTABLE = 2.0**30
"""Far enough below the largest i32 that adding up f32 numbers, each rounded, can't hide that it is exceeded."""


def launch_once(plan: Plan, kernel: str) -> None:
    """Replaces a loop by a launch of `@kernel`, at run time where the plan is guarded."""
    loop = plan.loop
    results = loop.op.results
    with loop.op.location, ir.InsertionPoint(loop.op):
        for number, value in loop.rest.items():
            last = vectors.constant(results[number].type, value) if isinstance(value, int) else value
            results[number].replace_all_uses_with(last)
        collected = [results[number] for number in loop.outputs]
        if plan.guarded:
            _choose(plan, kernel, collected)
            return
        launch = _launch(plan, kernel)
    for old, new in zip(collected, launch.results, strict=True):
        old.replace_all_uses_with(new)
    loop.op.erase()


def _choose(plan: Plan, kernel: str, collected: Sequence[Value]) -> None:
    """Makes a choice between the loop, which moves there and gives what it has `collected`, and the launch."""
    loop = plan.loop.op
    case = ir.Operation.create(
        "stablehlo.case",
        results=[result.type for result in collected],
        operands=[scalars.to_i32(_fits(plan))],
        regions=2,
    )
    one, other = (ir.Block.create_at_start(region, []) for region in case.regions)
    with ir.InsertionPoint(other):
        stablehlo.return_(list(_launch(plan, kernel).results))
    for old, new in zip(collected, case.results, strict=True):
        old.replace_all_uses_with(new)
    one.append(loop)
    with ir.InsertionPoint(one):
        stablehlo.return_(collected)


def _launch(plan: Plan, kernel: str) -> ir.Operation:
    """The launch of the batched kernel."""
    loop, form, old = plan.loop, plan.form, plan.loop.launch
    grid, dynamic, prefetch = old.kernel.grid, old.kernel.dynamic_dimensions, old.kernel.prefetch_count
    first_input = len(dynamic) + prefetch
    hoisted = _Hoisted(loop)
    operands: list[tuple[int | None, Value]] = []
    table = form.table(grid)
    entries: Value | None = None
    if table is not None:
        entries, steps = _table(loop, form.fused, table, hoisted)
        operands.append((None, steps))
    for number, operand in enumerate(loop.operands):
        if number == first_input and entries is not None:
            operands.append((None, entries))
            entries = None
        if number < len(dynamic):
            if dynamic[number] >= form.fused:
                operands.append((number, hoisted.shared(operand)))
        elif number < first_input:
            batched = number - len(dynamic) in form.prefetch
            operands.append((number, hoisted.table(operand) if batched else hoisted.shared(operand)))
        else:
            batched = number - first_input in form.windows
            operands.append((number, hoisted.batched(operand) if batched else hoisted.shared(operand)))
    if entries is not None:
        operands.append((None, entries))
    return _created(plan, kernel, operands)


def _created(plan: Plan, kernel: str, operands: Sequence[tuple[int | None, Value]]) -> ir.Operation:
    """A launch with these operands, each with its old number if it has one; what counts operands follows."""
    old, size = plan.loop.launch, plan.loop.size
    numbers = {number: new for new, (number, _) in enumerate(operands) if number is not None}
    attributes = {name: old.op.attributes[name] for name in old.op.attributes if name != BOUNDS}
    attributes[KERNEL] = ir.FlatSymbolRefAttr.get(kernel)
    try:
        config = backend_config.renumber_operands(old.config, numbers, len(operands))
    except backend_config.ConfigError as error:
        raise ProgramError(str(error), old.op) from None
    attributes[BACKEND_CONFIG] = ir.StringAttr.get(_costs(config, size))
    if LAYOUTS in attributes:
        layouts = list(ir.ArrayAttr(attributes[LAYOUTS]))
        attributes[LAYOUTS] = ir.ArrayAttr.get(
            [_layout(None if number is None else layouts[number], value.type) for number, value in operands]
        )
    results = [vectors.stacked_type(result.type, size) for result in old.op.results]
    if RESULT_LAYOUTS in attributes:
        layouts = list(ir.ArrayAttr(attributes[RESULT_LAYOUTS]))
        attributes[RESULT_LAYOUTS] = ir.ArrayAttr.get([_layout(*pair) for pair in zip(layouts, results, strict=True)])
    if ALIASES in attributes:
        attributes[ALIASES] = ir.ArrayAttr.get(
            [
                stablehlo.OutputOperandAlias.get(
                    output_tuple_indices=alias.output_tuple_indices,
                    operand_index=numbers[alias.operand_index],
                    operand_tuple_indices=alias.operand_tuple_indices,
                )
                for alias in map(stablehlo.OutputOperandAlias, ir.ArrayAttr(attributes[ALIASES]))
            ]
        )
    return ir.Operation.create(
        old.op.name, results=results, operands=[v for _, v in operands], attributes=attributes, loc=old.op.location
    )


def _layout(old: ir.Attribute | None, kind: ir.Type) -> ir.Attribute:
    """An array's layout, minor to major: the batch is its outermost dimension, a new array's is row-major."""
    rank = ir.RankedTensorType(kind).rank
    order = list(reversed(range(rank)))
    if old is not None:
        given = [int(axis) for axis in ir.DenseIntElementsAttr(old)]
        if len(given) == rank:
            order = given
        elif len(given) == rank - 1:
            order = [*(axis + 1 for axis in given), 0]
    return ir.Attribute.parse(
        f"dense<[{', '.join(map(str, order))}]> : tensor<{rank}xindex>" if rank else "dense<> : tensor<0xindex>"
    )


def _costs(config: str, size: int) -> str:
    """The configuration with the author's estimate of a launch's costs, if there is one, for all elements."""
    parsed = backend_config.parse(config)
    section = parsed[backend_config.SECTION]
    costs = section.get("cost_estimate")
    if not isinstance(costs, dict):
        return config
    section["cost_estimate"] = {
        name: cost * size if isinstance(cost, int) and cost > 0 else cost for name, cost in costs.items()
    }
    return json.dumps(parsed)


@dataclasses.dataclass
class _Hoisted:
    """The loop's operands as values in front of it, at the current insertion point."""

    loop: Loop

    def __post_init__(self) -> None:
        """Nothing is hoisted yet."""
        self._made: dict[Value, Value] = {}

    def shared(self, operand: Operand) -> Value:
        """What all elements have in common."""
        assert not isinstance(operand, Batched), "the operand differs between elements"
        return self._outside(operand.value)

    def batched(self, operand: Operand) -> Value:
        """The operands of all elements, stacked along the first axis."""
        if isinstance(operand, Batched):
            return vectors.moved_to_front(operand.source, operand.axis)
        return vectors.repeated(self._outside(operand.value), self.loop.size)

    def table(self, operand: Operand) -> Value:
        """The tables of all elements behind each other."""
        return vectors.flat(self.batched(operand))

    def _outside(self, value: Value) -> Value:
        """A value that is the same in each iteration; what the loop computes of constants is computed again."""
        body = self.loop.op.regions[1].blocks[0]
        if isinstance(value, ir.BlockArgument):
            return self.loop.op.operands[value.arg_number] if value.owner == body else value
        if value not in self._made:
            op, number = defining(value)
            inside = op.name in PURE and self._is_inside(op)
            self._made[value] = self._clone(op).results[number] if inside else value
        return self._made[value]

    def _is_inside(self, op: ir.Operation) -> bool:
        """Whether an operation is in the loop's body, or in a function that it calls."""
        block, around = op.block, self.loop.op
        while True:
            if around.block == block:
                return False
            parent = around.parent
            if parent is None or parent.operation.name == "func.func":
                return True
            around = parent.operation

    def _clone(self, op: ir.Operation) -> ir.Operation:
        operands = [self._outside(each) for each in op.operands]
        clone = op.clone().operation
        for number, each in enumerate(operands):
            clone.operands[number] = each
        return clone


def _bound(loop: Loop, axis: int, hoisted: _Hoisted) -> Value:
    """The bound of a dynamic dimension for each element, `tensor<Nxi32>`; less than nothing is nothing."""
    number = loop.launch.kernel.dynamic_dimensions.index(axis)
    bounds = vectors.flat(hoisted.batched(loop.operands[number]))
    zero = vectors.constant(bounds.type, 0)
    result: Value = stablehlo.maximum(bounds, zero)
    return result


def _table(loop: Loop, fused: int, table: Table, hoisted: _Hoisted) -> tuple[Value, Value]:
    """The kernel's table, and the number of steps of all elements together."""
    grid = loop.launch.kernel.grid
    bounds = {axis: _bound(loop, axis, hoisted) for axis in range(fused) if grid[axis].bound is None}
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


def _fits(plan: Plan) -> Value:
    """Whether the table has all steps, and 32 bits can count them; computed with f32 numbers, which don't wrap."""
    loop, form, hoisted = plan.loop, plan.form, _Hoisted(plan.loop)
    grid = loop.launch.kernel.grid
    axes = range(len(grid))
    counted = _total(loop, axes, hoisted)
    fits = _less(counted, _COUNTABLE)
    if form.steps:
        # numbers of steps below 2**24 are exact
        known = counted if form.fused == len(grid) else _total(loop, range(form.fused), hoisted)
        fits = scalars.both(fits, _less(known, form.steps + 1.0))
    return fits


def _total(loop: Loop, axes: range, hoisted: _Hoisted) -> Value:
    """The product of the bounds of these dimensions, added up over all elements, as an f32."""
    grid = loop.launch.kernel.grid
    static = float(math.prod(max(grid[axis].bound or 0, 0) for axis in axes if grid[axis].bound is not None))
    steps = vectors.constant(ir.RankedTensorType.get([loop.size], ir.F32Type.get()), static)
    for axis in axes:
        if grid[axis].bound is None:
            steps = stablehlo.multiply(steps, vectors.to_f32(_bound(loop, axis, hoisted)))
    return vectors.last(vectors.running_sums(steps))


def _less(value: Value, limit: float) -> Value:
    result: Value = stablehlo.compare(
        value, vectors.constant(value.type, limit), stablehlo.ComparisonDirectionAttr.get("LT")
    )
    return result
