"""Reading and writing elements, or rows, of a tensor wherever index tensors say."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.ir_types import Value


def gather(value: Value, indices: Sequence[Value]) -> Value:
    """What `value` has at the indices, i32 tensors of one shape for its first dimensions; the others come as they are.

    An index that is out of range is moved to the nearest that is not.
    """
    shape, count = build.shape_of(value), len(indices)
    places = _stacked(indices)
    rank = len(build.shape_of(indices[0]))
    numbers = hlo.GatherDimensionNumbers.get(
        offset_dims=list(range(rank, rank + len(shape) - count)),
        collapsed_slice_dims=list(range(count)),
        operand_batching_dims=[],
        start_indices_batching_dims=[],
        start_index_map=list(range(count)),
        index_vector_dim=rank,
    )
    sizes = [*[1] * count, *shape[count:]]
    result: Value = hlo.gather(value, places, numbers, ir.DenseI64ArrayAttr.get(sizes))
    return result


def scatter(value: Value, indices: Sequence[Value], updates: Value, *, add: bool) -> Value:
    """`value` with the updates at the indices, or added to what is there; see `gather`.

    An update whose index is out of range is left out. Of several at one place the last one stays, or all are added.
    """
    shape, count = build.shape_of(value), len(indices)
    places = _stacked(indices)
    rank = len(build.shape_of(indices[0]))
    numbers = hlo.ScatterDimensionNumbers.get(
        update_window_dims=list(range(rank, rank + len(shape) - count)),
        inserted_window_dims=list(range(count)),
        input_batching_dims=[],
        scatter_indices_batching_dims=[],
        scattered_dims_to_operand_dims=list(range(count)),
        index_vector_dim=rank,
    )
    op = hlo.ScatterOp([value.type], [value], places, [updates], numbers)
    scalar = build.tensor((), build.element_of(value))
    block = op.regions[0].blocks.append(scalar, scalar)
    with ir.InsertionPoint(block):
        old, new = block.arguments
        hlo.return_([hlo.add(old, new) if add else new])
    result: Value = op.results[0]
    return result


def only_where(mask: Value | None, indices: Sequence[Value]) -> list[Value]:
    """The indices, out of range where the mask doesn't hold."""
    if mask is None:
        return list(indices)
    nowhere = build.constant(-1, build.shape_of(mask), build.i32_type())
    return [build.select(mask, indices[0], nowhere), *indices[1:]]


def ranks(mask: Value, axis: int) -> Value:
    """For each element, how many before it along a dimension have the mask set, as i32."""
    own = build.convert(mask, build.i32_type())
    shape = build.shape_of(mask)
    size = shape[axis]
    zero, zeros = build.i32(0), [0] * len(shape)
    counts, step = own, 1
    while step < size:
        kept = [size - step if k == axis else n for k, n in enumerate(shape)]
        low = [step if k == axis else 0 for k in range(len(shape))]
        moved = build.pad(build.slice_(counts, zeros, kept), low, zeros, zero)
        counts, step = hlo.add(counts, moved), 2 * step
    result: Value = hlo.subtract(counts, own)
    return result


def _stacked(indices: Sequence[Value]) -> Value:
    shape = build.shape_of(indices[0])
    return build.concatenate([build.reshape(index, (*shape, 1)) for index in indices], len(shape))
