"""Loads and stores of elements that are no box: by index vectors, packed to those a mask has set, or row by row."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.build import Index, add_index
from mosaic_grid.cpu.fill import uninitialized
from mosaic_grid.cpu.indexed import gather, only_where, ranks, scatter
from mosaic_grid.cpu.inside import check_indices, check_inside
from mosaic_grid.cpu.lowering import Lowering, Rule, UnsupportedError
from mosaic_grid.cpu.rules.attributes import flag, integer, integers
from mosaic_grid.cpu.rules.memory import base_of, indices_of, part_of, read, store, strided_load, strided_store
from mosaic_grid.cpu.rules.semaphore import in_row_of
from mosaic_grid.cpu.rules.shape import shape_of_result
from mosaic_grid.cpu.rules.views import core_type_of
from mosaic_grid.cpu.views import View
from mosaic_grid.dataflow.effects import named
from mosaic_grid.ir_types import Value


def _vector_load(low: Lowering, op: ir.Operation) -> Value:
    """On a SparseCore a mask means that the elements are packed, as in `tpu.vector_expand_load`."""
    return _expand_load(low, op) if _is_packed(op) else strided_load(low, op)


def _vector_store(low: Lowering, op: ir.Operation) -> None:
    """On a SparseCore a mask means that the elements are packed, as in `tpu.vector_compress_store`."""
    if _is_packed(op):
        _compress_store(low, op)
    else:
        strided_store(low, op)


def _load_idx(low: Lowering, op: ir.Operation) -> Value:
    """One element for each place of the index vectors; what the mask leaves out is undefined, and shows as such."""
    base, indices = base_of(op)
    return _picked(low, op, base, [low.value(index) for index in indices], _mask(low, op))


def _store_idx(low: Lowering, op: ir.Operation) -> None:
    """Of several elements for one place the last one stays, or all are added."""
    base, indices = base_of(op)
    _put(low, op, base, [low.value(index) for index in indices], _mask(low, op))


def _expand_load(low: Lowering, op: ir.Operation) -> Value:
    """The n-th element that the mask has set, along a dimension, is the n-th in memory."""
    base, start = base_of(op)
    mask = _mask(low, op)
    assert mask is not None
    indices, full = _packed_indices(op, low.view(base), indices_of(low, start), mask)
    return build.reshape(_picked(low, op, base, indices, full), shape_of_result(op))


def _compress_store(low: Lowering, op: ir.Operation) -> None:
    """The n-th element that the mask has set, along a dimension, becomes the n-th in memory."""
    base, start = base_of(op)
    mask = _mask(low, op)
    assert mask is not None
    indices, full = _packed_indices(op, low.view(base), indices_of(low, start), mask)
    _put(low, op, base, indices, full)


def _load_rows(low: Lowering, op: ir.Operation) -> Value:
    """Row k is the one `offsets[k]` further on; rows that the mask leaves out are undefined, and show as such."""
    base, indices = base_of(op)
    offsets, mask, shape = _row_offsets(op), booleans(op, "sublane_mask"), shape_of_result(op)
    view, start = low.view(base), indices_of(low, indices)
    if all(mask) and offsets == list(range(len(mask))):
        return build.reshape(read(low, op, base, part_of(view, start, shape)), shape)
    _check_rows(view, shape, mask)
    element = view.element
    rows = []
    for offset, wanted in zip(offsets, mask, strict=True):
        part = part_of(view, [*start[:-2], add_index(start[-2], offset), start[-1]], (1, shape[1]))
        value = read(low, op, base, part) if wanted else uninitialized(part.shape, element, low.options)
        rows.append(build.reshape(value, (1, shape[1])))
    return build.concatenate(rows, 0)


def _store_rows(low: Lowering, op: ir.Operation) -> None:
    """Row k goes `offsets[k]` further on, if the mask has it."""
    base, indices = base_of(op)
    value, lanes = low.value(op.operands[0]), _mask(low, op)
    offsets, mask, shape = _row_offsets(op), booleans(op, "sublane_mask"), build.shape_of(value)
    view, start = low.view(base), indices_of(low, indices)
    if all(mask) and offsets == list(range(len(mask))):
        part = part_of(view, start, shape)
        check_inside(low, op, part, writes=True)
        where = None if lanes is None else build.reshape(lanes, part.shape)
        store(low, part, build.reshape(value, part.shape), where, add=flag(op, "add"))
        return
    _check_rows(view, shape, mask)
    for number, offset in enumerate(offsets):
        if mask[number]:
            part = part_of(view, [*start[:-2], add_index(start[-2], offset), start[-1]], (1, shape[1]))
            row, where = (
                None if each is None else build.reshape(build.slice_(each, [number, 0], [1, shape[1]]), part.shape)
                for each in (value, lanes)
            )
            assert row is not None
            check_inside(low, op, part, writes=True)
            store(low, part, row, where, add=flag(op, "add"))


def _fetch_and_add(low: Lowering, op: ir.Operation) -> Value:
    """On this subcore, of which the operation's own number is the proof, or on another one of the same core."""
    *place, amount, subcore = op.operands
    memref, *indices = place
    view, owner = low.view(memref), subcore.owner
    if not isinstance(owner, ir.Operation | ir.OpView) or owner.name != "tpu.subcore_id":
        if view.root not in (low.semaphores_of_cores or ()):
            raise UnsupportedError("a counter of another subcore")
        view = in_row_of(low, view, None, low.index(subcore))
    part = part_of(view, indices_of(low, indices), ())
    old = read(low, op, memref, part)
    low.memory.write(part, hlo.add(old, build.reshape(low.value(amount), part.shape)))
    return build.reshape(old, ())


def _is_packed(op: ir.Operation) -> bool:
    return named(op, "mask") is not None and core_type_of(op) != "tc"


def _mask(low: Lowering, op: ir.Operation) -> Value | None:
    mask = named(op, "mask")
    return None if mask is None else low.value(mask)


def _picked(low: Lowering, op: ir.Operation, base: Value, indices: Sequence[Value], mask: Value | None) -> Value:
    view = low.view(base)
    check_indices(low, op, view, indices, mask)
    value = gather(read(low, op, base, view, lambda numbers: _only(gather(numbers, indices), mask)), indices)
    if mask is None:
        return value
    return build.select(mask, value, uninitialized(build.shape_of(value), build.element_of(value), low.options))


def _put(low: Lowering, op: ir.Operation, base: Value, indices: Sequence[Value], mask: Value | None) -> None:
    value = build.reshape(low.value(op.operands[0]), build.shape_of(indices[0]))
    places, add = only_where(mask, indices), flag(op, "add")
    check_indices(low, op, low.view(base), indices, mask, writes=True)
    low.memory.modify(low.view(base), lambda old: scatter(old, places, value, add=add))


def _only(numbers: Value, mask: Value | None) -> Value:
    """The numbers where the mask holds, else zeros."""
    return numbers if mask is None else build.select(mask, numbers, build.zeros_like(numbers))


def _packed_indices(op: ir.Operation, view: View, start: Sequence[Index], mask: Value) -> tuple[list[Value], Value]:
    """The indices of all elements, packed along the last dimension unless it says so; and the mask in full rank."""
    shape = build.shape_of(mask)
    rank = len(view.shape)
    if len(shape) > rank:
        raise UnsupportedError("a vector of several elements in each lane")
    full = build.reshape(mask, [1] * (rank - len(shape)) + list(shape))
    sizes = build.shape_of(full)
    said = [name for name in ("expand_dim", "compress_dim") if name in op.attributes]
    axis = integer(op, said[0]) + rank - len(shape) if said else rank - 1
    indices = []
    for number, first in enumerate(start):
        own = ranks(full, number) if number == axis else build.iota(sizes, number)
        indices.append(hlo.add(own, build.splat(build.as_value(first), sizes)))
    return indices, full


def _row_offsets(op: ir.Operation) -> list[int]:
    if "sublane_offsets" in op.attributes:
        return integers(op, "sublane_offsets")
    stride = integer(op, "sublane_stride") if "sublane_stride" in op.attributes else 1
    return [number * stride for number in range(len(booleans(op, "sublane_mask")))]


def _check_rows(view: View, shape: Sequence[int], mask: Sequence[bool]) -> None:
    if len(shape) != 2 or len(view.shape) < 2 or shape[0] != len(mask):
        raise UnsupportedError("a vector that has no row for each sublane")


def booleans(op: ir.Operation, name: str) -> list[bool]:
    """A list of booleans."""
    return [bool(each) for each in ir.DenseBoolArrayAttr(op.attributes[name])]


RULES: dict[str, Rule] = {
    "tpu.compress_store_vreg": _compress_store,
    "tpu.expand_load_vreg": _expand_load,
    "tpu.fetch_and_add_sync": _fetch_and_add,
    "tpu.load": _load_rows,
    "tpu.shuffled_load": _load_rows,
    "tpu.shuffled_store": _store_rows,
    "tpu.store": _store_rows,
    "tpu.vector_compress_store": _compress_store,
    "tpu.vector_expand_load": _expand_load,
    "tpu.vector_load": _vector_load,
    "tpu.vector_load_idx": _load_idx,
    "tpu.vector_store": _vector_store,
    "tpu.vector_store_idx": _store_idx,
}
