"""Which step of a grid wrote an element of a launch's result last.

A window's place follows from its index map alone, so the grid is run once more without the kernel: a loop over its
steps that evaluates the map, and keeps the last step whose block has the element in it. What the map reads, prefetch
operands and bounds, is what the program computes before the launch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.arrays import Array
from mosaic_grid.cpu.build import Index
from mosaic_grid.cpu.convert import lower_to_cpu
from mosaic_grid.cpu.execute import compile_program
from mosaic_grid.cpu.launch import LaunchBody
from mosaic_grid.cpu.lowering import Lowering
from mosaic_grid.cpu.options import Options
from mosaic_grid.cpu.rules import RULES
from mosaic_grid.cpu.views import View
from mosaic_grid.cpu.windows import Block
from mosaic_grid.grid import Semantics
from mosaic_grid.ir_types import Value
from mosaic_grid.program import Kernel, Launch
from mosaic_grid.runner.origin import Element, NotKnownError, origin
from mosaic_grid.runner.programs import Opened, main_of, type_of

_CORES = (Semantics.CORE_PARALLEL, Semantics.SUBCORE_PARALLEL)


@dataclasses.dataclass(frozen=True)
class Step:
    """A step of a kernel's grid, by its indices, outermost first."""

    kernel: str
    indices: tuple[int, ...]

    def __str__(self) -> str:
        return f"step ({', '.join(map(str, self.indices))}) of '{self.kernel}'"


def last_write(opened: Opened, result: int, element: Element, inputs: Sequence[Array], options: Options) -> Step:
    """The step that wrote this element of a result of `@main` last, on these inputs. The program is left as it is.

    Cores count as running one after the other. Raises `NotKnownError` where it can't be told.
    """
    copy = opened.module.clone(ip=False).operation
    main = main_of(copy, opened.name)
    launch, number, place = origin(copy, main, result, element)
    kernel = launch.kernel.name
    with launch.op.location, ir.InsertionPoint(launch.op):
        found = _search(launch, number, place, options)
    _return_instead(main, launch.op, found)
    lower_to_cpu(copy, options)
    (answer,) = compile_program(copy)(*inputs)
    hit, *indices = (int(k) for k in answer)
    if not hit:
        raise NotKnownError(f"no step of '{kernel}' wrote it")
    return Step(kernel, tuple(indices))


def _search(launch: Launch, number: int, element: Element, options: Options) -> Value:
    """An i32 tensor: 1 if some step writes the element, else 0; then the indices of the last such step."""
    kernel, low = launch.kernel, Lowering(RULES, options)
    assignment = LaunchBody(launch, kernel, low).assignment
    block = [operand.block for operand in assignment.operands if operand.is_output][number]
    if block is None:
        raise NotKnownError(f"'{kernel.name}' copies this result to its array by itself, without a window")
    wanted = [k + before for k, before in zip(element, assignment.results[number].low, strict=True)]
    given = launch.bounds
    bounds = [given[axis] if each.bound is None else each.bound for axis, each in enumerate(kernel.grid)]
    low.bounds = list(bounds)
    for array in assignment.prefetch:
        array.bring_in(low.memory, list(launch.op.operands), options)
    prefetch = [View(array.root) for array in assignment.prefetch]
    total: Index = 1
    for bound in bounds:
        total = build.multiply_index(total, build.max_index(bound, 0))
    nothing = build.constant(0, (len(bounds) + 1,), build.i32_type())

    def step(carried: Sequence[Value]) -> list[Value]:
        count, found = carried
        indices = _indices(kernel, count, bounds)
        low.indices = indices
        here = _covers(block, block.indices(low, indices, prefetch), wanted)
        listed = build.concatenate([build.reshape(index, (1,)) for index in (build.i32(1), *indices)], 0)
        return [hlo.add(count, build.i32(1)), build.select(here, listed, found)]

    def more(carried: Sequence[Value]) -> Value:
        return build.compare(carried[0], build.as_value(total), "LT")

    _, found = low.while_([build.i32(0), nothing], more, step, [])
    if low.unsupported:
        raise NotKnownError(f"an index map of '{kernel.name}' can't be run: {low.unsupported[0].op}")
    return found


def _indices(kernel: Kernel, count: Value, bounds: Sequence[Index]) -> list[Value]:
    """The grid indices of step number `count`: cores outermost, then the other dimensions, the last one fastest."""
    axes = range(len(bounds))
    order = sorted(axes, key=lambda axis: kernel.grid[axis].semantics not in _CORES)
    indices: dict[int, Value] = {}
    for axis in reversed(order):
        bound = build.as_value(bounds[axis])
        indices[axis] = hlo.remainder(count, bound)
        count = hlo.divide(count, bound)
    return [indices[axis] for axis in axes]


def _covers(block: Block, indices: Sequence[Index], element: Sequence[int]) -> Value:
    """Whether the block of this index holds the element."""
    inside = []
    for start, size, k in zip(block.offsets(indices), block.shape, element, strict=True):
        first, wanted = build.as_value(start), build.i32(k)
        inside.append(build.compare(first, wanted, "LE"))
        inside.append(build.compare(wanted, hlo.add(first, build.i32(size)), "LT"))
    return build.all_of(inside)


def _return_instead(main: ir.Operation, last: ir.Operation, value: Value) -> None:
    """Has the function return `value`, and drops `last`, an operation of its block, and all that follow."""
    block = main.regions[0].blocks[0]
    operations = [op.operation for op in block.operations]
    for op in reversed(operations[operations.index(last) :]):
        op.erase()
    inputs = type_of(main).inputs
    main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, [value.type]))
    if "res_attrs" in main.attributes:
        del main.attributes["res_attrs"]
    with main.location, ir.InsertionPoint(block):
        func.ReturnOp([value])
