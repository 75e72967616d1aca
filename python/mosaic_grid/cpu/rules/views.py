"""Memory that a kernel allocates, and the operations that show memory in another shape."""

from __future__ import annotations

import re

from jaxlib.mlir import ir

from mosaic_grid.cpu import build
from mosaic_grid.cpu.bits import width_of
from mosaic_grid.cpu.build import Index
from mosaic_grid.cpu.lowering import Lowered, Lowering, Rule, UnsupportedError
from mosaic_grid.cpu.roots import Kind, Root
from mosaic_grid.cpu.types import is_semaphore, lowered_element
from mosaic_grid.cpu.views import View
from mosaic_grid.dataflow.effects import named
from mosaic_grid.ir_types import Value

_SPACE = re.compile(r"#tpu\.memory_space<(?P<space>\w+)(?:, *(?P<core>\w+))?>")
_CORE = re.compile(r"#tpu\.core_type<(\w+)>")


def memory_of(result: Value) -> ir.MemRefType:
    """The type of a memref."""
    return ir.MemRefType(result.type)


def allocate(low: Lowering, op: ir.Operation) -> View:
    """A new root, with what nobody wrote in it. It ends with the region that it is made in."""
    kind = memory_of(op.results[0])
    if not kind.has_static_shape:
        raise UnsupportedError("an allocation whose size is dynamic")
    what = Kind.SEMAPHORE if is_semaphore(kind.element_type) else Kind.SCRATCH
    root = Root(f"the {kind} allocated here", tuple(kind.shape), lowered_element(kind.element_type), what, op.location)
    low.forget(root)
    low.memory.rewritten.add(root)
    if low.watch is not None:
        low.watch.allocated(op.results[0], root)
    if low.late is not None:
        low.late.prepare(low.memory, op.results[0], root)
    return View(root)


def core_type_of(op: ir.Operation) -> str:
    """The kind of core that the function runs on which an operation is in; a TensorCore unless it says otherwise."""
    outer: ir.Operation | None = op
    while outer is not None:
        if "tpu.core_type" in outer.attributes:
            found = _CORE.search(str(outer.attributes["tpu.core_type"]))
            return found.group(1) if found is not None else "tc"
        parent = outer.parent
        outer = parent.operation if parent is not None else None
    return "tc"


def _slice(low: Lowering, op: ir.Operation) -> View:
    """Dynamic sizes are operands, in order; the memory that is sliced is their upper bound."""
    view, sizes = low.view(op.operands[0]), list(memory_of(op.results[0]).shape)
    rank = len(sizes)
    offsets = [low.index(operand) for operand in op.operands[1 : 1 + rank]]
    dynamic = iter([low.index(operand) for operand in op.operands[1 + rank :]])
    extents: list[Index] = [size if size >= 0 else next(dynamic) for size in sizes]
    bounds = [size if size >= 0 else bound for size, bound in zip(sizes, view.shape, strict=True)]
    if any(size > bound for size, bound in zip(bounds, view.shape, strict=True)):
        raise UnsupportedError("a slice that is larger than the memory")
    return view.slice(offsets, bounds, extents)


def _squeeze(low: Lowering, op: ir.Operation) -> View:
    left = list(memory_of(op.results[0]).shape)
    axes = []
    for axis, size in enumerate(memory_of(op.operands[0]).shape):
        if left and left[0] == size:
            left.pop(0)
        else:
            axes.append(axis)
    if left:
        raise UnsupportedError("a result that has other dimensions than the operand")
    return low.view(op.operands[0]).squeeze(axes)


def _reshape(low: Lowering, op: ir.Operation) -> View:
    view = low.view(op.operands[0])
    if not view.is_static:
        raise UnsupportedError("memory of dynamic size")
    return view.reshape(memory_of(op.results[0]).shape)


def _bitcast(low: Lowering, op: ir.Operation) -> View:
    """Where the width changes, the rows of the second last dimension are packed or unpacked."""
    view, kind = low.view(op.operands[0]), memory_of(op.results[0])
    before, after = width_of(view.element), width_of(kind.element_type)
    shape = list(view.shape)
    if before != after and len(shape) < 2:
        raise UnsupportedError("a change of width in one dimension")
    if before != after:
        shape[-2] = shape[-2] * before // after
    if any(size not in (-1, bound) for size, bound in zip(kind.shape, shape, strict=True)):
        raise UnsupportedError("a result that isn't packed along the second last dimension")
    return view.bitcast(kind.element_type, shape)


def _cast(low: Lowering, op: ir.Operation) -> View:
    """To a type that knows more of the sizes, or less."""
    view, sizes = low.view(op.operands[0]), memory_of(op.results[0]).shape
    if view.is_static or any(size < 0 for size in sizes):
        return view
    return view.slice([0] * len(sizes), sizes)


def _same(low: Lowering, op: ir.Operation) -> Lowered:
    """The operand, memory or a value: what is said of it changes nothing here."""
    operand = op.operands[0]
    return low.view(operand) if isinstance(operand.type, ir.MemRefType) else low.value(operand)


def _reinterpret(low: Lowering, op: ir.Operation) -> View:
    before, after = memory_of(op.operands[0]), memory_of(op.results[0])
    same = before.shape == after.shape and before.element_type == after.element_type
    if len(op.operands) > 1 or not same or before.layout != after.layout:
        raise UnsupportedError("another shape, type or layout")
    return low.view(op.operands[0])


def _dim(low: Lowering, op: ir.Operation) -> Value:
    axis = low.index(op.operands[1])
    if not isinstance(axis, int):
        raise UnsupportedError("a dimension that is only known at run time")
    return build.as_value(low.view(op.operands[0]).extents[axis])


def _is_in(_: Lowering, op: ir.Operation) -> Value:
    """Whether memory is in some memory space, and on some core if that is asked for."""
    source = named(op, "source")
    assert source is not None
    found = _SPACE.search(str(ir.MemRefType(source.type).memory_space))
    asked = _SPACE.search(str(op.attributes["memory_space"]))
    if found is None or asked is None or found["space"] == "any":
        raise UnsupportedError("a memory space that is left open")
    same = found["space"] == asked["space"]
    if same and asked["core"] is not None:
        same = (found["core"] or core_type_of(op)) == asked["core"]
    return build.constant(same, (), build.i1_type())


RULES: dict[str, Rule] = {
    "memref.alloca": allocate,
    "memref.cast": _cast,
    "memref.dim": _dim,
    "memref.memory_space_cast": _same,
    "tpu.annotate": _same,
    "tpu.assume_layout": _same,
    "tpu.erase_memref_layout": _same,
    "tpu.memref_bitcast": _bitcast,
    "tpu.memref_memory_space_is": _is_in,
    "tpu.memref_reshape": _reshape,
    "tpu.memref_slice": _slice,
    "tpu.memref_squeeze": _squeeze,
    "tpu.reinterpret_cast": _reinterpret,
}
