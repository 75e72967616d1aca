"""Windows as Mosaic's pipeline moves them.

An input's block comes in when its index changes. An output's goes out when its index changes, and at the end.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from mosaic_grid.program import Window
from oracle.code import Code, Frame
from oracle.machine import Machine, OracleError
from oracle.values import Array, dtype_of, poisoned, shape_of


@dataclasses.dataclass(frozen=True)
class Shape:
    """What is fixed about a window: its block, its buffer's shape in the kernel, and its index map."""

    block: tuple[int, ...]
    buffer: tuple[int, ...]
    index_map: Code
    in_elements: bool

    def region(self, at: tuple[int, ...], operand: tuple[int, ...]) -> tuple[slice, ...]:
        """The block's part of the operand, cut at its edge. Raises `OracleError` where nothing of it is inside."""
        starts = at if self.in_elements else tuple(i * n for i, n in zip(at, self.block, strict=True))
        if any(start < 0 or start >= size for start, size in zip(starts, operand, strict=True)):
            raise OracleError(f"block {at} of {self.block} lies beyond an operand of {operand}")
        ends = (min(start + n, size) for start, n, size in zip(starts, self.block, operand, strict=True))
        return tuple(slice(start, end) for start, end in zip(starts, ends, strict=True))


def shape_of_window(window: Window, index_map: Code) -> Shape:
    """Reads a window that has an index map."""
    if window.kind is not None and not _without_padding(window.kind):
        raise NotImplementedError(f"the oracle has no window kind {window.kind}")
    assert window.shape is not None
    return Shape(window.shape, shape_of(window.type), index_map, in_elements=window.kind is not None)


@dataclasses.dataclass
class Buffer:
    """One core's buffer of a window: which block is in it now, if any."""

    shape: Shape
    operand: Array
    is_output: bool
    machine: Machine
    at: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """Makes the buffer, which nobody wrote yet."""
        self.memory = poisoned(self.shape.block, self.operand.dtype)

    @property
    def memref(self) -> Array:
        """The buffer as the kernel sees it: squeezed dimensions are gone."""
        return self.memory.reshape(self.shape.buffer)

    def move_to(self, indices: tuple[Array, ...], bounds: tuple[int, ...]) -> None:
        """Makes the buffer hold the block of this step; `indices` are the index map's arguments."""
        at = tuple(int(index) for index in self.shape.index_map.run(Frame({}, bounds), indices))
        if at == self.at:
            return
        self.flush()
        self.at = at
        self.memory[...] = poisoned(self.shape.block, self.operand.dtype)
        if not self.is_output:
            self._transfer(self.operand[self.shape.region(at, self.operand.shape)])
        else:
            self.shape.region(at, self.operand.shape)

    def flush(self) -> None:
        """Writes an output's block back."""
        if self.is_output and self.at is not None:
            part = self.operand[self.shape.region(self.at, self.operand.shape)]
            part[...] = self.memory[tuple(slice(n) for n in part.shape)]
            self.machine.traffic["written back"] += 1

    def _transfer(self, part: Array) -> None:
        self.memory[tuple(slice(n) for n in part.shape)] = part
        self.machine.traffic["fetched"] += 1


@dataclasses.dataclass
class Whole:
    """An operand that the kernel gets as it is, in HBM or SMEM."""

    operand: Array
    kind: ir.MemRefType

    @property
    def memref(self) -> Array:
        """The operand itself."""
        return self.operand.reshape(shape_of(self.kind))

    def move_to(self, indices: tuple[Array, ...], bounds: tuple[int, ...]) -> None:
        """It has nothing to move."""

    def flush(self) -> None:
        """What is written to it is there already."""


def scratch_of(argument: ir.Value[Any]) -> Array:
    """Fresh scratch."""
    return poisoned(shape_of(argument.type), np.dtype(dtype_of(argument.type)))


def _without_padding(kind: ir.Attribute) -> bool:
    return set(str(kind).removeprefix("#tpu.element_window<").removesuffix(">")) <= set("[], 0")
