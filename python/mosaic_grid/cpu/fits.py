"""Whether a launch and its kernel fit together: what the lowering takes for granted is looked at once, before it."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir

from mosaic_grid.cpu.types import lowered_element
from mosaic_grid.grid import I32_MAX
from mosaic_grid.ir_types import Value
from mosaic_grid.program import Kernel, Launch, ProgramError, Window

PLACEHOLDER = "tpu.dynamic_dimension_mapping_"


def check_fit(launch: Launch, kernel: Kernel) -> None:
    """Raises `ProgramError` where the launch's operands and results, the grid, the windows or index maps don't fit.

    `kernel` may be a copy of the launch's own.
    """
    op = launch.op
    _check_form(kernel)
    dynamic, prefetch = kernel.dynamic_dimensions, kernel.prefetch
    for axis, operand in zip(dynamic, op.operands, strict=False):
        if not _is_bound(operand.type):
            wanted = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))
            raise ProgramError(f"the bound of dimension {axis} of @{kernel.symbol} is {operand.type}, not {wanted}", op)
    given = list(op.operands)[len(dynamic) :]
    for number, (operand, argument) in enumerate(zip(given, prefetch, strict=False)):
        _check_operand(launch, f"prefetch operand {number}", operand, argument.type)
        if list(ir.RankedTensorType(operand.type).shape) != list(ir.MemRefType(argument.type).shape):
            raise ProgramError(f"prefetch operand {number} is {operand.type}, not {argument.type}", op)
    inputs = given[len(prefetch) :]
    windows = kernel.windows
    if len(windows) != len(inputs) + len(op.results):
        found = f"{len(inputs)} inputs and {len(op.results)} results for {len(windows)} windows"
        raise ProgramError(f"this launch doesn't fit @{kernel.symbol}: {found}", op)
    for number, (value, window) in enumerate(zip([*inputs, *op.results], windows, strict=True)):
        count = number - len(inputs)
        _check_operand(launch, f"input {number}" if count < 0 else f"output {count}", value, window.argument.type)
        _check_window(kernel, window)


def _check_form(kernel: Kernel) -> None:
    for name in (*kernel.module.attributes, *kernel.body.attributes):
        if name.startswith(PLACEHOLDER):
            raise ProgramError(
                f"@{kernel.symbol} was exported for symbolic shapes, and its grid is not known", kernel.body,
                ["lower the program for concrete shapes"],
            )  # fmt: skip
    for symbol, function in kernel.functions.items():
        if len(function.regions[0].blocks) != 1:
            raise ProgramError(f"@{symbol} has branches between blocks, which no kernel of JAX's has", function)
    for axis, dimension in enumerate(kernel.grid):
        if dimension.bound is not None and not 0 <= dimension.bound <= I32_MAX:
            raise ProgramError(f"dimension {axis} of @{kernel.symbol} can't have {dimension.bound} steps", kernel.body)


def _is_bound(kind: ir.Type) -> bool:
    """Whether it is one integer: JAX also takes arrays of one element for bounds."""
    if not isinstance(kind, ir.RankedTensorType) or any(size != 1 for size in kind.shape):
        return False
    return kind.element_type in [ir.IntegerType.get_signless(width) for width in (32, 64)]


def _check_operand(launch: Launch, what: str, value: Value, memref: ir.Type) -> None:
    """The element types are the same but for the sign, which the kernel's have not."""
    if not isinstance(value.type, ir.RankedTensorType):
        raise ProgramError(f"{what} of this launch is {value.type}, and no array: buffers that are pinned in memory "
                           "can't be run on the CPU", launch.op)  # fmt: skip
    outer = ir.RankedTensorType(value.type).element_type
    inner = lowered_element(ir.MemRefType(memref).element_type)
    same = outer == inner
    if isinstance(outer, ir.IntegerType) and isinstance(inner, ir.IntegerType):
        same = outer.width == inner.width
    if not same:
        raise ProgramError(f"{what} of this launch is {value.type}, and {memref} in the kernel", launch.op)


def _check_window(kernel: Kernel, window: Window) -> None:
    shape = window.shape
    if shape is None:
        return
    buffer = list(window.type.shape)
    if any(size < 1 for size in shape):
        raise ProgramError(f"a window of @{kernel.symbol} is {list(shape)}: its sizes must be positive", kernel.body)
    if not _squeezes_to(shape, buffer):
        raise ProgramError(f"a window of {list(shape)} can't be seen as {window.type}", kernel.body)
    index_map = kernel.functions.get(window.transform or "")
    if index_map is None:
        return
    if index_map == kernel.body:
        raise ProgramError(f"the index map @{window.transform} is the kernel itself", kernel.body)
    kind = ir.FunctionType(ir.TypeAttr(index_map.attributes["function_type"]).value)
    i32, index = ir.IntegerType.get_signless(32), ir.IndexType.get()
    grid, tables = kind.inputs[: len(kernel.grid)], kind.inputs[len(kernel.grid) :]
    integers = (i32, index, ir.IntegerType.get_signless(64))  # in 64-bit mode a literal of the author's is an i64
    takes = all(each in (i32, index) for each in grid) and [*tables] == [table.type for table in kernel.prefetch]
    gives = len(kind.results) == len(shape) and all(each in integers for each in kind.results)
    if not takes or len(grid) != len(kernel.grid) or not gives:
        wanted = f"the {len(kernel.grid)} grid indices and the prefetch operands to {len(shape)} indices of i32"
        raise ProgramError(f"the index map @{window.transform} is {kind}, and not from {wanted}", index_map)


def _squeezes_to(shape: Sequence[int], buffer: Sequence[int]) -> bool:
    """Whether dropping some dimensions of size 1 from `shape` gives `buffer`."""
    kept = [size for size in shape if size != 1]
    return kept == [size for size in buffer if size != 1] and len(buffer) <= len(shape)
