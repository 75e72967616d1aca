"""Loads and stores of scalars and of boxes of elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.build import Index
from mosaic_grid.cpu.fences import feeds_next_write
from mosaic_grid.cpu.fill import uninitialized
from mosaic_grid.cpu.inside import check_inside
from mosaic_grid.cpu.lowering import Lowering, Rule, UnsupportedError
from mosaic_grid.cpu.memory import Used
from mosaic_grid.cpu.rules.attributes import flag, integers
from mosaic_grid.cpu.rules.shape import shape_of_result
from mosaic_grid.cpu.views import View
from mosaic_grid.dataflow.effects import named
from mosaic_grid.ir_types import Value


def read(low: Lowering, op: ir.Operation, memref: Value, part: View, used: Used | None = None) -> Value:
    """What a part of a memref holds; fenced if more than the next write of the memref depends on it.

    `used` is that of `Memory.read`.
    """
    check_inside(low, op, part)
    return _read(low, op, memref, part, used)


def _read(low: Lowering, op: ir.Operation, memref: Value, part: View, used: Used | None = None) -> Value:
    fenced = part.root in low.memory.rewritten and not feeds_next_write(op, memref)
    return low.memory.read(part, fenced=fenced, used=used)


def base_of(op: ir.Operation) -> tuple[Value, list[Value]]:
    """The memref of a load or store of the `tpu` dialect, and the indices."""
    view: Any = op.opview
    return view.base, list(view.indices)


def indices_of(low: Lowering, values: Sequence[Value]) -> list[Index]:
    """Indices, as integers where they are known."""
    return [low.index(value) for value in values]


def part_of(view: View, offsets: Sequence[Index], sizes: Sequence[int]) -> View:
    """The box of this size; where it has fewer dimensions than the memory, they are the last ones."""
    whole = [1] * (len(view.shape) - len(sizes)) + list(sizes)
    if len(whole) != len(view.shape) or any(size > most for size, most in zip(whole, view.shape, strict=True)):
        raise UnsupportedError("a vector that is larger than the memory")
    return view.slice(offsets, whole)


def _load_scalar(low: Lowering, op: ir.Operation) -> Value:
    memref, *indices = op.operands
    return build.reshape(read(low, op, memref, part_of(low.view(memref), indices_of(low, indices), ())), ())


def _store_scalar(low: Lowering, op: ir.Operation) -> None:
    value, memref, *indices = op.operands
    part = part_of(low.view(memref), indices_of(low, indices), ())
    check_inside(low, op, part, writes=True)
    low.memory.write(part, build.reshape(low.value(value), part.shape))


def _load(low: Lowering, op: ir.Operation) -> Value:
    memref, *indices = op.operands
    shape = shape_of_result(op)
    return build.reshape(read(low, op, memref, part_of(low.view(memref), indices_of(low, indices), shape)), shape)


def _store(low: Lowering, op: ir.Operation) -> None:
    value, memref, *indices = op.operands
    vector = low.value(value)
    part = part_of(low.view(memref), indices_of(low, indices), build.shape_of(vector))
    check_inside(low, op, part, writes=True)
    low.memory.write(part, build.reshape(vector, part.shape))


def strided_load(low: Lowering, op: ir.Operation) -> Value:
    """Every so many elements; what the mask leaves out is undefined, and shows as such."""
    base, indices = base_of(op)
    shape, strides = shape_of_result(op), integers(op, "strides")
    box, part, sizes = _span(low.view(base), indices_of(low, indices), shape, strides)
    check_inside(low, op, box)
    value = _read(low, op, base, part)
    if math.prod(part.shape) != math.prod(sizes):
        value = build.slice_(value, [0] * len(sizes), sizes, strides)
    value = build.reshape(value, shape)
    mask = named(op, "mask")
    if mask is None:
        return value
    return build.select(low.value(mask), value, uninitialized(shape, build.element_of(value), low.options))


def strided_store(low: Lowering, op: ir.Operation) -> None:
    """To every so many elements, where the mask holds; `add` adds to what is there."""
    base, indices = base_of(op)
    vector = low.value(op.operands[0])
    strides = integers(op, "strides")
    box, part, sizes = _span(low.view(base), indices_of(low, indices), build.shape_of(vector), strides)
    check_inside(low, op, box, writes=True)
    mask = named(op, "mask")
    spread = math.prod(part.shape) != math.prod(sizes)
    shape = sizes if spread else part.shape
    value = build.reshape(vector, shape)
    where = None if mask is None else build.reshape(low.value(mask), shape)
    if spread:
        where = build.constant(1, sizes, build.i1_type()) if where is None else where
        value, where = (_spread(each, strides) for each in (value, where))
    store(low, part, value, where, add=flag(op, "add"))


def store(low: Lowering, part: View, value: Value, mask: Value | None, *, add: bool) -> None:
    """Writes a value of the part's shape, where the mask holds."""
    if mask is None and not add:
        low.memory.write(part, value)
        return

    def change(old: Value) -> Value:
        new = hlo.add(old, value) if add else value
        return new if mask is None else build.select(mask, new, old)

    low.memory.modify(part, change)


def _span(
    view: View, offsets: Sequence[Index], shape: Sequence[int], strides: Sequence[int]
) -> tuple[View, View, Sequence[int]]:
    """The box from the first element to the last, what to read or write, and how many of its elements are meant.

    What to read or write is the box too, of which every so many elements are meant. Where they are one of each round
    through the memory, it is a box of a reshaped view, of which all are.
    """
    sizes = [1] * (len(view.shape) - len(shape)) + list(shape)
    steps = list(strides) or [1] * len(sizes)
    if len(steps) != len(sizes) or any(step < 1 for step in steps):
        raise UnsupportedError("strides that are not one for each dimension, or not positive")
    box = part_of(view, offsets, [(size - 1) * step + 1 for size, step in zip(sizes, steps, strict=True)])
    rounds = [step > 1 and size * step == whole for size, step, whole in zip(sizes, steps, view.shape, strict=True)]
    if not view.is_static or not all(step == 1 or whole for step, whole in zip(steps, rounds, strict=True)):
        return box, box, sizes
    places: list[Index] = []
    shape, taken = [], []
    for offset, size, step, whole, found in zip(offsets, sizes, steps, view.shape, rounds, strict=True):
        places += [0, offset] if found else [offset]
        shape += [size, step] if found else [whole]
        taken += [size, 1] if found else [size]
    return box, view.reshape(shape).slice(places, taken), sizes


def _spread(value: Value, strides: Sequence[int]) -> Value:
    """The elements, so many apart, with zeros between them."""
    none = [0] * len(strides)
    zero = build.constant(0, (), build.element_of(value))
    return build.pad(value, none, none, zero, [stride - 1 for stride in strides])


RULES: dict[str, Rule] = {
    "memref.load": _load_scalar,
    "memref.store": _store_scalar,
    "vector.load": _load,
    "vector.store": _store,
    "tpu.strided_load": strided_load,
    "tpu.strided_store": strided_store,
}
