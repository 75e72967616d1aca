"""Loops of the outer program that launch kernels, also where their body is a function, as JAX 0.10 makes it."""

from __future__ import annotations

from collections.abc import Mapping

from jaxlib.mlir import ir

from mosaic_grid.dataflow.control import Function, functions_of
from mosaic_grid.program import Program, block_of, symbol_of

_WHILE = "stablehlo.while"


def loop_around(op: ir.Operation) -> ir.Operation | None:
    """The innermost loop whose body an operation is in, however deep; calls are not followed to their callers."""
    while op.parent is not None:
        inside, op = op.block.region, op.parent.operation
        if op.name == _WHILE and inside == op.regions[1]:
            return op
    return None


def with_bodies(program: Program, functions: Mapping[str, Function]) -> Program:
    """A program with each launch in the loop that runs it: a copy where one of its functions had to be moved.

    A function goes where its one call is, if a loop is around that and a launch is in the function, or in one that it
    calls so. Where nothing has to be moved this is the program itself.
    """
    outside = [launch.op for launch in program.launches if loop_around(launch.op) is None]
    moved = _functions_in_loops(outside, functions)
    if not moved:
        return program
    copy = program.module.clone(ip=False).operation
    copied = functions_of(copy)
    for symbol in sorted(moved):
        _move(copied[symbol])
    return Program(copy)


def replace_contents(program: ir.Operation, new: ir.Operation) -> None:
    """Gives a module the contents of another, which is empty afterwards."""
    for op in list(block_of(program)):
        op.operation.erase()
    block = program.regions[0].blocks[0]
    for op in list(block_of(new)):
        block.append(op)
    for name in new.attributes:
        program.attributes[name] = new.attributes[name]


def _functions_in_loops(launches: list[ir.Operation], functions: Mapping[str, Function]) -> set[str]:
    found = set[str]()
    for launch in launches:
        chain: list[str] = []
        op = launch
        while loop_around(op) is None:
            symbol = _function_around(op)
            function = functions.get(symbol or "")
            if symbol is None or symbol in chain or function is None or not _has_one_place(function):
                break
            chain.append(symbol)
            op = function.calls[0]
        else:
            found.update(chain)
    return found


def _function_around(op: ir.Operation) -> str | None:
    while op.parent is not None and op.name != "func.func":
        op = op.parent.operation
    return symbol_of(op)


def _has_one_place(function: Function) -> bool:
    return function.closed and len(function.calls) == 1 and function.results is not None


def _move(function: Function) -> None:
    """Puts a function's operations in the place of its one call."""
    (call,) = function.calls
    block = function.op.regions[0].blocks[0]
    *operations, end = (op.operation for op in block.operations)
    for argument, given in zip(list(block.arguments), list(call.operands), strict=True):
        argument.replace_all_uses_with(given)
    for op in operations:
        op.move_before(call)
    for result, returned in zip(list(call.results), list(end.operands), strict=True):
        result.replace_all_uses_with(returned)
    call.erase()
    function.op.erase()
