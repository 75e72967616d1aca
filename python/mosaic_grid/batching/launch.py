"""The one launch: operands of all elements, the table of where each begins, and the loop for too many steps."""

from __future__ import annotations

import json
from collections.abc import Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from mosaic_grid import backend_config
from mosaic_grid.batching import vectors
from mosaic_grid.batching.counts import fits, make_table
from mosaic_grid.batching.iterations import entries_of
from mosaic_grid.batching.kernel import batched_shape
from mosaic_grid.batching.outside import Outside
from mosaic_grid.batching.plan import Plan
from mosaic_grid.ir_types import Value
from mosaic_grid.launch_edit import ALIASES, BOUNDS, LAYOUTS
from mosaic_grid.partition import scalars
from mosaic_grid.program import BACKEND_CONFIG, KERNEL, ProgramError

RESULT_LAYOUTS = "result_layouts"


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
        values = _collected(plan, kernel)
    for old, new in zip(collected, values, strict=True):
        old.replace_all_uses_with(new)
    loop.op.erase()


def _choose(plan: Plan, kernel: str, collected: Sequence[Value]) -> None:
    """Makes a choice between the loop, which moves there and gives what it has `collected`, and the launch."""
    loop = plan.loop.op
    case = ir.Operation.create(
        "stablehlo.case",
        results=[result.type for result in collected],
        operands=[scalars.to_i32(fits(plan))],
        regions=2,
    )
    one, other = (ir.Block.create_at_start(region, []) for region in case.regions)
    with ir.InsertionPoint(other):
        stablehlo.return_(_collected(plan, kernel))
    for old, new in zip(collected, case.results, strict=True):
        old.replace_all_uses_with(new)
    one.append(loop)
    with ir.InsertionPoint(one):
        stablehlo.return_(collected)


def _collected(plan: Plan, kernel: str) -> list[Value]:
    """The launch's results as the loop collects them."""
    old, new = plan.loop.launch.op.results, _launch(plan, kernel).results
    given: list[Value] = []
    for one, every, axes in zip(old, new, plan.loop.axes, strict=True):
        stacked = vectors.reshaped(every, [plan.loop.size, *ir.RankedTensorType(one.type).shape])
        given.append(vectors.unstacked(stacked, axes, plan.loop.sizes))
    return given


def _launch(plan: Plan, kernel: str) -> ir.Operation:
    """The launch of the batched kernel."""
    loop, form, old = plan.loop, plan.form, plan.loop.launch
    grid, dynamic, prefetch = old.kernel.grid, old.kernel.dynamic_dimensions, old.kernel.prefetch_count
    first_input = len(dynamic) + prefetch
    outside = Outside(loop)
    operands: list[tuple[int | None, Value]] = []
    table = form.table(grid)
    entries: Value | None = None
    if table is not None:
        entries, steps = make_table(loop, form.fused, table, outside)
        operands.append((None, steps))
    for number, operand in enumerate(loop.operands):
        if number == first_input and entries is not None:
            operands.append((None, entries))
            entries = None
        if number < len(dynamic):
            if dynamic[number] >= form.fused:
                operands.append((number, outside.shared(operand)))
        elif number < first_input:
            batched = number - len(dynamic) in form.prefetch
            operands.append((number, outside.table(operand) if batched else outside.shared(operand)))
        else:
            batched = number - first_input in form.windows
            operands.append((number, outside.array(operand) if batched else outside.shared(operand)))
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
    kinds = [ir.RankedTensorType(result.type) for result in old.op.results]
    results = [ir.RankedTensorType.get(batched_shape(size, kind.shape), kind.element_type) for kind in kinds]
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
    """An array's layout, minor to major: new dimensions are its outermost ones, a new array's is row-major."""
    rank = ir.RankedTensorType(kind).rank
    order = list(reversed(range(rank)))
    if old is not None:
        given = entries_of(ir.DenseIntElementsAttr(old))
        new = rank - len(given)
        if new >= 0:
            order = [*(axis + new for axis in given), *reversed(range(new))]
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
