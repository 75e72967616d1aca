"""Bit casts between widths: neighbours along one dimension share a wider element, the first of them in its low bits.

On the TensorCore that dimension is the second last, as the vector unit packs rows; on the SparseCore it is the last.
"""

from __future__ import annotations

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.build import Shape
from mosaic_grid.ir_types import Value


def width_of(element: ir.Type) -> int:
    """The bits of a number."""
    width: int = ir.IntegerType(element).width if isinstance(element, ir.IntegerType) else ir.FloatType(element).width
    return width


def packed_axis(before: Shape, after: Shape) -> int | None:
    """The one dimension in which two shapes of equal rank differ; `None` if there isn't exactly one."""
    if len(before) != len(after):
        return None
    differing = [axis for axis, sizes in enumerate(zip(before, after, strict=True)) if sizes[0] != sizes[1]]
    return differing[0] if len(differing) == 1 else None


def repack(value: Value, element: ir.Type, shape: Shape) -> Value:
    """`value` as elements of another width, packed along the one dimension in which `shape` differs from its own.

    A wide element `r` of that dimension holds the narrow ones `r * packing` and following, the first in the low bits.
    Between elements of one width the shape may be any with as many elements.
    """
    before = build.shape_of(value)
    narrow, wide = width_of(build.element_of(value)), width_of(element)
    if narrow == wide:
        return build.reshape(build.bitcast(value, element), shape)
    axis = packed_axis(before, shape)
    assert axis is not None, f"{before} can't be repacked as {tuple(shape)}"
    assert before[axis] * narrow == shape[axis] * wide, f"{before} doesn't fill {tuple(shape)}"
    return _pack(value, element, shape, axis) if narrow < wide else _unpack(value, element, shape, axis)


def _pack(value: Value, element: ir.Type, shape: Shape, axis: int) -> Value:
    before = build.shape_of(value)
    rank = len(before)
    split = build.reshape(value, (*before[:axis], shape[axis], before[axis] // shape[axis], *before[axis + 1 :]))
    order = [*range(axis + 1), *range(axis + 2, rank + 1), axis + 1]
    return hlo.bitcast_convert(build.tensor(shape, element), build.transpose(split, order))


def _unpack(value: Value, element: ir.Type, shape: Shape, axis: int) -> Value:
    before = build.shape_of(value)
    rank = len(before)
    if isinstance(value.owner, ir.Operation | ir.OpView) and value.owner.name == "stablehlo.bitcast_convert":
        [value] = build.barrier(value)  # XLA joins the two, and fails where they are between three widths
    parts = hlo.bitcast_convert(build.tensor((*before, shape[axis] // before[axis]), element), value)
    order = [*range(axis + 1), rank, *range(axis + 1, rank)]
    return build.reshape(build.transpose(parts, order), shape)
