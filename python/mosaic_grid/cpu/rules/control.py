"""`scf`, and the regions of `tpu`: structured control flow, with the memory it may write threaded through."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.lowering import Lowered, Lowering, Rule, UnsupportedError, constant_of
from mosaic_grid.cpu.types import lowered
from mosaic_grid.cpu.views import View
from mosaic_grid.cpu.writes import written_roots
from mosaic_grid.ir_types import Value


def _if(low: Lowering, op: ir.Operation) -> Sequence[Lowered]:
    predicate = low.value(op.operands[0])
    yes, no = op.regions
    if not len(op.results):
        _when(low, predicate, yes)
        _when(low, hlo.not_(predicate), no)
        return []
    types = [lowered(result.type) for result in op.results]

    def branch(region: ir.Region) -> list[Value]:
        return _tensors(low.block(region.blocks[0]))

    return low.if_(predicate, types, lambda: branch(yes), lambda: branch(no), written_roots(low, [op]))


def _when(low: Lowering, predicate: Value, region: ir.Region) -> None:
    if not len(region.blocks):
        return
    block = region.blocks[0]

    def act() -> None:
        low.block(block)

    low.when(predicate, act, written_roots(low, [op.operation for op in block.operations]))


def _for(low: Lowering, op: ir.Operation) -> Sequence[Lowered]:
    """Counts upwards in i32; the bound is exclusive and the step positive, as scf says."""
    start, stop, step, *initial = low.operands(op)
    known = constant_of(op.operands[2])
    if known is not None and known <= 0:
        raise UnsupportedError(f"a step of {known}, with which the loop never ends")
    body = op.regions[0].blocks[0]

    def repeat(values: Sequence[Value]) -> list[Value]:
        index, *carried = values
        after = _tensors(low.block(body, [index, *carried]))
        return [hlo.add(index, step), *after]

    def more(values: Sequence[Value]) -> Value:
        return build.compare(values[0], stop, "LT")

    return low.while_([start, *initial], more, repeat, written_roots(low, [op]))[1:]


def _while(low: Lowering, op: ir.Operation) -> Sequence[Lowered]:
    """The condition's region may do anything, so it runs once before the loop and then at the end of each round."""
    before, after = (region.blocks[0] for region in op.regions)

    def test(arguments: Sequence[Value]) -> list[Value]:
        return _tensors(low.block(before, arguments))

    def repeat(values: Sequence[Value]) -> list[Value]:
        return test(_tensors(low.block(after, values[1:])))

    return low.while_(test(low.operands(op)), lambda values: values[0], repeat, written_roots(low, [op]))[1:]


def _region(low: Lowering, op: ir.Operation) -> Sequence[Lowered]:
    """What is allocated inside ends with it."""
    outside = set(low.memory.state)
    results = low.block(op.regions[0].blocks[0])
    if low.watch is not None:
        low.watch.end(*(root for root in low.memory.state if root not in outside))
    low.memory.state = {root: value for root, value in low.memory.state.items() if root in outside}
    return results


def _tensors(values: Sequence[Lowered]) -> list[Value]:
    tensors = [value for value in values if not isinstance(value, View)]
    assert len(tensors) == len(values), "a region hands on memory"
    return tensors


RULES: dict[str, Rule] = {
    "scf.if": _if,
    "scf.for": _for,
    "scf.while": _while,
    "scf.execute_region": _region,
    "tpu.region": _region,
    "tpu.trace": _region,
}
