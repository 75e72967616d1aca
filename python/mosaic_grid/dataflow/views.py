"""From the operations on memrefs to boxes: what a view shows, and which part of it a load or a store touches."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.events import Event
from mosaic_grid.dataflow.memory import ONE, Box, View
from mosaic_grid.dataflow.scalars import Scalars


def view_of(event: Event, base: View, scalars: Scalars) -> View:
    """What the result of an operation on a memref shows."""
    if event.name == "tpu.memref_slice":
        # a start for each dimension, then a size for each dynamic one
        numbers = [scalars.of(number) for number in event.operands[1:]]
        rank = len(base.shape)
        return base.slice(numbers[:rank], _shape(event, scalars, numbers[rank:]))
    if event.name == "tpu.memref_squeeze":
        # dynamic sizes stay in their order; those of a static size of 1 go
        sizes = [size for size in base.shape if sym.constant_of(size) is None] if event.shape is None else []
        return base.squeeze(_shape(event, scalars, sizes))
    shape = _shape(event, scalars, [])
    return base.lost(shape) if event.name == "tpu.reinterpret_cast" else base.recast(shape)


def box_of(event: Event, base: View, scalars: Scalars) -> Box | None:
    """The part of a view that a load or a store of a box touches; None where it can't be told."""
    touch = event.touch
    starts = touch.starts
    return base.part([scalars.of(index) for index in touch.indices] if starts is None else starts, touch.extents)


def amount_of(event: Event, view: View) -> tuple[object, ...]:
    """How much a copy to a view counts on its semaphore: the type and the sizes other than 1, which a reshape keeps."""
    return (event.element, *(size for size in view.shape if size != ONE))


def _shape(event: Event, scalars: Scalars, dynamic: Sequence[sym.Expr]) -> tuple[sym.Expr, ...]:
    """A memref's shape, its dynamic sizes taken from `dynamic` in order, unknown where there are none left."""
    if event.shape is not None:
        return event.shape
    left = iter(dynamic)
    return tuple(
        size if size is not None else next(left, None) or scalars.unknown(ir.IndexType.get()) for size in event.sizes
    )
