"""Changing a kernel's grid in place: the arguments of its functions, and the attributes that count dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir

from mosaic_grid.grid import DYNAMIC, Dimension
from mosaic_grid.ir_types import Argument, Value

ITERATION_BOUND = "tpu.iteration_bound"


def set_grid(function: ir.Operation, grid: Sequence[Dimension]) -> None:
    """Writes a kernel function's bounds and semantics."""
    bounds = [DYNAMIC if dimension.bound is None else dimension.bound for dimension in grid]
    function.attributes["iteration_bounds"] = ir.DenseI64ArrayAttr.get(bounds)
    words = [dimension.semantics.attribute for dimension in grid]
    function.attributes["dimension_semantics"] = ir.ArrayAttr.get(words)


def replace_leading_arguments(function: ir.Operation, count: int, types: Sequence[ir.Type]) -> list[Argument]:
    """Puts arguments of `types` before the first `count` arguments of `function` and returns them.

    The old ones stay, behind the new ones, until `drop_arguments` removes them, so that the caller can compute what
    replaces their uses.
    """
    block = function.regions[0].blocks[0]
    attrs = _arg_attrs(function)
    old = list(block.arguments)
    locations = [argument.location for argument in old]
    fresh = [block.add_argument(kind, locations[min(i, count - 1)]) for i, kind in enumerate(types)]
    moved = [block.add_argument(argument.type, location) for argument, location in zip(old, locations, strict=True)]
    for argument, copy in zip(old, moved, strict=True):
        argument.replace_all_uses_with(copy)
    for _ in old:
        block.erase_argument(0)
    _set_type(function, None if attrs is None else _no_attrs(len(fresh)) + attrs)
    return list(block.arguments)[: len(fresh)]


def insert_argument(function: ir.Operation, index: int, kind: ir.Type, location: ir.Location) -> Argument:
    """Inserts one argument before the one at `index`."""
    block = function.regions[0].blocks[0]
    attrs = _arg_attrs(function)
    tail = list(block.arguments)[index:]
    block.add_argument(kind, location)
    for argument in tail:
        argument.replace_all_uses_with(block.add_argument(argument.type, argument.location))
    for _ in tail:
        block.erase_argument(index)
    _set_type(function, None if attrs is None else attrs[:index] + _no_attrs(1) + attrs[index:])
    inserted: Argument = block.arguments[index]
    return inserted


def drop_arguments(function: ir.Operation, start: int, count: int) -> None:
    """Removes `count` unused arguments from `start` on."""
    block = function.regions[0].blocks[0]
    attrs = _arg_attrs(function)
    for _ in range(count):
        block.erase_argument(start)
    _set_type(function, None if attrs is None else attrs[:start] + attrs[start + count :])


def run_only_if(valid: Value, ops: Sequence[ir.Operation]) -> None:
    """Moves a function's `ops`, all but its return, under a condition, at the current insertion point."""
    guard = ir.Operation.create("scf.if", operands=[valid], regions=2)
    then = ir.Block.create_at_start(guard.regions[0], [])
    for op in ops[:-1]:
        then.append(op)
    ir.Operation.create("scf.yield", ip=ir.InsertionPoint(then))


def iteration_bounds(kernel: ir.Operation) -> list[tuple[ir.Operation, int]]:
    """Every `tpu.iteration_bound` below an op, with the dimension it asks for."""
    found: list[tuple[ir.Operation, int]] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == ITERATION_BOUND:
            found.append((op, ir.IntegerAttr(op.attributes["dim"]).value))
        return ir.WalkResult.ADVANCE

    kernel.walk(visit)
    return found


def _set_type(function: ir.Operation, arg_attrs: Sequence[ir.Attribute] | None) -> None:
    """Brings a function's type and argument attributes in line with its block's arguments."""
    kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    inputs = [argument.type for argument in function.regions[0].blocks[0].arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, list(kind.results)))
    if arg_attrs is not None:
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(arg_attrs)


def _arg_attrs(function: ir.Operation) -> list[ir.Attribute] | None:
    return list(ir.ArrayAttr(function.attributes["arg_attrs"])) if "arg_attrs" in function.attributes else None


def _no_attrs(count: int) -> list[ir.Attribute]:
    return [ir.DictAttr.get({})] * count
