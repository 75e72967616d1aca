"""A kernel whose static bound may exceed the true one: its steps beyond that do nothing.

In an index map such a step gives the indices of the last step before it that does something, as in a partitioned
kernel: no block changes, nothing is fetched, and no garbage is written back.
"""

from __future__ import annotations

from jaxlib.mlir import ir

from mosaic_grid.ir_types import Value
from mosaic_grid.kernel_edit import (
    drop_arguments,
    insert_argument,
    iteration_bounds,
    replace_leading_arguments,
    run_only_if,
)
from mosaic_grid.partition import kernel_scalars as scalars
from mosaic_grid.program import Kernel


def guard(module: ir.Operation, axis: int) -> None:
    """Gives a kernel the last step of a dynamic dimension as its last scalar-prefetch operand, `memref<1xi32>`.

    That is the true bound, at least 1, less one. The grid is left to the caller, who writes a static bound of at least
    the true one.
    """
    kernel = Kernel(module)
    maps = {window.transform for window in kernel.windows} - {None}
    prefetch = kernel.prefetch_count
    for symbol, function in kernel.functions.items():
        if symbol in maps or function == kernel.body:
            _guard_function(kernel, function, axis, is_body=function == kernel.body)
    kernel.body.attributes["scalar_prefetch"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), prefetch + 1)


def _guard_function(kernel: Kernel, function: ir.Operation, axis: int, *, is_body: bool) -> None:
    rank = len(kernel.grid)
    block = function.regions[0].blocks[0]
    original = [op.operation for op in block.operations]
    asked = [op for op, dimension in iteration_bounds(function) if dimension == axis]
    table = ir.Type.parse("memref<1xi32, #tpu.memory_space<smem>>")
    with function.location, ir.InsertionPoint.at_block_begin(block):
        where = rank + kernel.prefetch_count
        argument = insert_argument(function, where, table, ir.Location.name("last"))
        last = scalars.load(argument, scalars.index(0))
        for op in asked:
            op.results[0].replace_all_uses_with(scalars.add(last, scalars.constant(1)))
        if is_body:
            run_only_if(scalars.compare("sle", block.arguments[axis], last), original)
        else:
            _keep_the_last(kernel, function, axis, last)
    for op in asked:
        op.erase()


def _keep_the_last(kernel: Kernel, function: ir.Operation, axis: int, last: Value) -> None:
    """Replaces the grid indices of an index map, beyond the last step, by those of the last step within."""
    rank = len(kernel.grid)
    block = function.regions[0].blocks[0]
    replace_leading_arguments(function, rank, [scalars.i32()] * rank)
    fresh, old = list(block.arguments)[:rank], list(block.arguments)[rank : 2 * rank]
    used = [next(iter(argument.uses), None) is not None for argument in old]
    for position, (index, argument) in enumerate(zip(fresh, old, strict=True)):
        if not used[position]:
            continue
        value: Value = index
        if position == axis:
            value = scalars.minimum(index, last)
        elif position > axis and kernel.grid[position].bound != 1:
            valid = scalars.compare("sle", fresh[axis], last)
            value = scalars.select(valid, index, _last_of(kernel, position))
        argument.replace_all_uses_with(value)
    drop_arguments(function, rank, rank)


def _last_of(kernel: Kernel, axis: int) -> Value:
    """The last index of a dimension inside the guarded one."""
    bound = kernel.grid[axis].bound
    if bound is not None:
        return scalars.constant(bound - 1)
    return scalars.subtract(scalars.iteration_bound(axis), scalars.constant(1))
