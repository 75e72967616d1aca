"""Which arguments of the program a value may depend on: everything it could be computed from, and never less."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jaxlib.mlir import ir

from mosaic_grid.dataflow.control import Function, defining, passed_on
from mosaic_grid.ir_types import Value


def arguments_behind(value: Value, main: ir.Operation, functions: Mapping[str, Function]) -> list[int]:
    """The numbers of those arguments of `main` that `value` may depend on; `functions` are those of the program."""
    by_op = {function.op: function for function in functions.values()}
    pending, seen, found = [value], set[Value](), set[int]()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        if isinstance(current, ir.BlockArgument) and current.owner.owner.operation == main:
            found.add(current.arg_number)
        pending.extend(_sources(current.maybe_downcast(), functions, by_op))
    return sorted(found)


def _sources(
    value: Value, functions: Mapping[str, Function], by_op: Mapping[ir.Operation, Function]
) -> Iterable[Value]:
    """The values that one is computed from."""
    if (same := passed_on(value)) is not None:
        return [same]
    if isinstance(value, ir.BlockArgument):
        op = value.owner.owner.operation
        if op in by_op:
            return [call.operands[value.arg_number] for call in by_op[op].calls]
        return _carried(op, value.arg_number) if op.name == "stablehlo.while" else _used(op)
    op, number = defining(value)
    if op.name == "func.call":
        results = functions[ir.FlatSymbolRefAttr(op.attributes["callee"]).value].results
        if results is not None:
            return [results[number]]
    if op.name == "stablehlo.while":
        return _carried(op, number)
    if op.name in ("stablehlo.case", "stablehlo.if"):
        return [*op.operands, *(_returned(region)[number] for region in op.regions)]
    return _used(op)


def _carried(loop: ir.Operation, number: int) -> list[Value]:
    """What a variable of a loop is made from: its first value, its next one, and how often that is taken."""
    condition, body = loop.regions
    return [loop.operands[number], _returned(body)[number], *_returned(condition)]


def _returned(region: ir.Region) -> list[Value]:
    return list(region.blocks[0].operations[-1].operation.operands)


def _used(op: ir.Operation) -> list[Value]:
    """The operands of an operation and of all those nested in it."""
    used = list(op.operands)
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                used.extend(_used(inner.operation))
    return used
