"""Windows: what part of an array a step sees, and where in the array it lies."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from jaxlib.mlir import ir

from mosaic_grid.cpu import build
from mosaic_grid.cpu.build import Index, multiply_index
from mosaic_grid.cpu.lowering import Lowering, constant_of
from mosaic_grid.cpu.roots import Root
from mosaic_grid.cpu.views import View
from mosaic_grid.ir_types import Value
from mosaic_grid.program import Kernel, ProgramError, Window

_NUMBER = re.compile(r"-?\d+")


@dataclasses.dataclass(frozen=True)
class Block:
    """A window with a buffer of its own: the block's shape, squeezed dimensions included, and its index map.

    `low` and `high` pad the array where blocks are counted in elements; `None` is a block whose index is 0 throughout.
    """

    shape: tuple[int, ...]
    index_map: ir.Operation | None
    in_elements: bool
    low: tuple[int, ...]
    high: tuple[int, ...]

    def overhang(self, array: Sequence[int]) -> tuple[int, ...]:
        """How much has to follow an array of this shape for every block to be whole that has a part in it."""
        sizes = [low + size + high for low, size, high in zip(self.low, array, self.high, strict=True)]
        step = [1] * len(sizes) if self.in_elements else self.shape
        whole = [max(-(-size // by) * by, n) for size, by, n in zip(sizes, step, self.shape, strict=True)]
        return tuple(end - low - size for end, low, size in zip(whole, self.low, array, strict=True))

    def indices(self, low: Lowering, grid: Sequence[Value], prefetch: Sequence[View]) -> list[Index]:
        """The block's index at a step."""
        if self.index_map is None:
            return [0] * len(self.shape)
        body = self.index_map.regions[0].blocks[0]
        known = [constant_of(end) for end in block_end(body).operands]
        if self.is_constant:
            return [index for index in known if index is not None]
        values = low.block(body, [*grid, *prefetch])
        found: list[Index] = []
        for constant, value in zip(known, values, strict=True):
            assert not isinstance(value, View)
            found.append(build.convert(value, build.i32_type()) if constant is None else constant)
        return found

    def offsets(self, indices: Sequence[Index]) -> list[Index]:
        """Where the block of this index begins, in elements from where that of index 0 does."""
        if self.in_elements:
            return list(indices)
        return [multiply_index(index, size) for index, size in zip(indices, self.shape, strict=True)]

    @property
    def is_constant(self) -> bool:
        """Whether every step has the same block, by the look of the index map."""
        return self.index_map is None or all(
            constant_of(end) is not None for end in block_end(self.index_map.regions[0].blocks[0]).operands
        )

    def depends_on(self, axis: int) -> bool:
        """Whether the index may change with a dimension of the grid, by the look of the index map."""
        if self.index_map is None:
            return False
        body = self.index_map.regions[0].blocks[0]
        argument = body.arguments[axis]
        pending, seen = list(block_end(body).operands), set[Value]()
        while pending:
            value = pending.pop()
            if value == argument:
                return True
            owner = value.owner
            if value in seen or isinstance(owner, ir.Block):
                continue
            seen.add(value)
            if any(len(region.blocks) for region in owner.regions):
                return True  # what its regions use isn't looked into
            pending.extend(owner.operands)
        return False

    def follows(self, axis: int) -> bool:
        """Whether some component of the index is that of the grid, so that it changes with every step along `axis`."""
        if self.index_map is None:
            return False
        body = self.index_map.regions[0].blocks[0]
        return any(end == body.arguments[axis] for end in block_end(body).operands)


@dataclasses.dataclass(frozen=True)
class Operand:
    """An argument of the kernel that is a window of an array, or (`block` is `None`) the array itself.

    `origin` is where in the root the window's index 0 lies, or the array begins: there may be padding before it.
    """

    argument: Value
    array: Root
    origin: tuple[int, ...]
    block: Block | None
    is_output: bool


def block_of_window(kernel: Kernel, window: Window, array: Sequence[int], *, placed: bool = False) -> Block | None:
    """The block of a window over an array of this shape; `None` for an operand that stays where it is.

    A window without bounds is the whole array: handed over in place where its memory is HBM or the array is `placed` in
    that memory, else as one block.
    Raises `ProgramError` where the window doesn't fit the array.
    """
    rank = len(array)
    none = (0,) * rank
    shape = window.shape
    if shape is None:
        if window.type.shape != list(array):
            kinds = f"{window.type} of an array of {list(array)}"
            raise ProgramError(
                f"a whole operand of @{kernel.symbol} has another shape than its array: {kinds}", kernel.body
            )
        return None if placed or _stays(window.type) else Block(tuple(array), None, False, none, none)
    if len(shape) != rank:
        raise ProgramError(f"a window of {list(shape)} can't be one of an array of {list(array)}", kernel.body)
    low, high = none, none
    if window.kind is not None:
        numbers = [int(number) for number in _NUMBER.findall(str(window.kind))]
        if not str(window.kind).startswith("#tpu.element_window") or len(numbers) not in (0, 2 * rank):
            raise ProgramError(f"the window kind {window.kind} is not known", kernel.body)
        low, high = (tuple(numbers[:rank]), tuple(numbers[rank:])) if numbers else (none, none)
    index_map = kernel.functions.get(window.transform or "")
    if window.transform and index_map is None:
        raise ProgramError(f"the index map @{window.transform} is not in the kernel", kernel.body)
    return Block(shape, index_map, window.kind is not None, low, high)


def block_end(block: ir.Block) -> ir.Operation:
    """A block's terminator."""
    *_, end = block.operations
    return end.operation


def _stays(kind: ir.MemRefType) -> bool:
    return any(space in str(kind.memory_space) for space in ("<any>", "<hbm>", "<semaphore_mem>"))
