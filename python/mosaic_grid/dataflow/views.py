"""From the operations on memrefs to boxes: what a view shows, and which part of it a load or a store touches."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.memory import ONE, Box, View
from mosaic_grid.dataflow.scalars import Scalars
from mosaic_grid.ir_types import Value


@dataclasses.dataclass(frozen=True)
class Part:
    """What an access touches: `box` holds all of it; a `complete` write leaves no element of the box as it was."""

    box: Box | None
    complete: bool
    accumulates: bool = False


def view_of(op: ir.Operation, base: View, scalars: Scalars) -> View:
    """What the result of an operation on a memref shows."""
    kind = ir.MemRefType(op.results[0].type)
    if op.name == "tpu.memref_slice":
        # a start for each dimension, then a size for each dynamic one
        numbers = [scalars.of(number) for number in list(op.operands)[1:]]
        rank = len(base.shape)
        return base.slice(numbers[:rank], _shape(kind, scalars, numbers[rank:]))
    if op.name == "tpu.memref_squeeze":
        # dynamic sizes stay in their order; those of a static size of 1 go
        sizes = [size for size in base.shape if sym.constant_of(size) is None]
        return base.squeeze(_shape(kind, scalars, sizes))
    shape = _shape(kind, scalars, [])
    return base.lost(shape) if op.name == "tpu.reinterpret_cast" else base.recast(shape)


def access(op: ir.Operation, base: View, first_index: int, scalars: Scalars) -> Part:
    """The part of a view that a load or a store touches; its indices are operands from `first_index` on."""
    rank = len(base.shape)
    starts = [scalars.of(index) for index in list(op.operands)[first_index : first_index + rank]]
    moved = op.operands[0].type if first_index == 2 else op.results[0].type
    lengths = tuple(ir.VectorType(moved).shape) if isinstance(moved, ir.VectorType) else ()
    lengths = (*(1,) * (rank - len(lengths)), *lengths)
    strides = _integers(op, "strides") or (1,) * rank
    # n elements, s apart, lie within (n - 1) * s + 1
    extents = [sym.constant((n - 1) * s + 1) for n, s in zip(lengths, strides, strict=True)]
    masked = len(op.operands) > first_index + rank
    adds = "add" in op.attributes and bool(ir.BoolAttr(op.attributes["add"]).value)
    complete = not masked and not adds and all(s == 1 for s in strides)
    return Part(base.part(starts, extents), complete, adds)


def amount_of(memref: Value, view: View) -> tuple[object, ...]:
    """How much a copy to a view counts on its semaphore: the type and the sizes other than 1, which a reshape keeps."""
    kind = ir.MemRefType(memref.type)
    return (str(kind.element_type), *(size for size in view.shape if size != ONE))


def _shape(kind: ir.MemRefType, scalars: Scalars, dynamic: Sequence[sym.Expr]) -> tuple[sym.Expr, ...]:
    """A memref's shape, its dynamic sizes taken from `dynamic` in order, unknown where there are none left."""
    left = iter(dynamic)
    unknown = (scalars.unknown(ir.IndexType.get()) for _ in kind.shape)
    return tuple(sym.constant(n) if n >= 0 else next(left, None) or next(unknown) for n in kind.shape)


def _integers(op: ir.Operation, name: str) -> tuple[int, ...]:
    return tuple(ir.DenseI32ArrayAttr(op.attributes[name])) if name in op.attributes else ()
