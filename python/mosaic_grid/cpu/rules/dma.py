"""Copies by DMA: done when they are started, or when they are waited for (`late.py`). Their semaphores count bytes."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.bits import width_of
from mosaic_grid.cpu.build import min_index
from mosaic_grid.cpu.indexed import gather, only_where, scatter
from mosaic_grid.cpu.indices import divide, product
from mosaic_grid.cpu.inside import check_indices, check_inside
from mosaic_grid.cpu.lowering import Lowering, Rule, UnsupportedError
from mosaic_grid.cpu.rules.attributes import flag
from mosaic_grid.cpu.rules.semaphore import OWN, of_core, refuse_elsewhere, signal, wait
from mosaic_grid.cpu.views import View
from mosaic_grid.dataflow.effects import named
from mosaic_grid.ir_types import Value


def _enqueue(low: Lowering, op: ir.Operation) -> None:
    """Copies what both views have. Each semaphore that is given gets the bytes of the target."""
    source, target = _views(low, op, "source", "target")
    semaphores = _views(low, op, "source_semaphore", "target_semaphore")
    counted = of_core(low, op, semaphores[-1]) if semaphores else None
    refuse_elsewhere(low, op, "a copy to", OWN if counted is None else ("device_id",))
    if counted is not None:
        semaphores[-1] = counted
        target = of_core(low, op, target) or target
    check_inside(low, op, source)
    check_inside(low, op, target, writes=True)
    if low.late is None or not semaphores:
        low.memory.copy(source, target)
    else:
        problem = low.late.start(low.memory, source, target, semaphores[-1])
        if problem is not None:
            raise UnsupportedError(problem)
    for semaphore in semaphores:
        signal(low, op, semaphore, _bytes(target))
        if low.watch is not None:
            low.watch.started(semaphore, source, target)


def _wait(low: Lowering, op: ir.Operation) -> None:
    """Waits until the target is written, or until the source is read: for the bytes of that one."""
    refuse_elsewhere(low, op, "a wait for a copy to", ("device_id",))  # a core waits with its own semaphores
    side = "target" if flag(op, "wait_target", default=True) else "source"
    semaphores = _views(low, op, f"{side}_semaphore")
    if not semaphores:
        raise UnsupportedError("a wait without a semaphore")
    (view,) = _views(low, op, side)
    _land(low, op, semaphores[0], view)


def _wait2(low: Lowering, op: ir.Operation) -> None:
    """Waits until the destination is written."""
    refuse_elsewhere(low, op, "a wait for a copy to", ("device_id",))
    semaphore, target = _views(low, op, "semaphore", "dst")
    _land(low, op, semaphore, target)


def _enqueue_indirect(low: Lowering, op: ir.Operation) -> None:
    """Gathers rows of the source, or scatters to rows of the target, whichever isn't in VMEM.

    The rows are those of the first dimension; offsets of the value `offset_filter` are left out. It is done at once,
    even where copies are late.
    """
    source, target, semaphore = _views(low, op, "source", "target", "semaphore")
    gathers = _gathers(op, "source", "target")
    rows, picked = (source, target) if gathers else (target, source)
    listed = _views(low, op, "offsets") if _is_listed(op) else []
    if picked.is_static and all(view.is_static for view in listed):
        check_inside(low, op, source)
        check_inside(low, op, target, writes=True)
        _move_rows(low, op, source, target, _offsets(low, op))
    else:
        if not listed or not rows.is_static or len(listed[0].shape) != 1:
            raise UnsupportedError("rows of dynamic size, or whose number isn't that of the offsets")
        if low.watch is not None:
            raise UnsupportedError("a number of rows that is only known at run time, in a kernel that is watched")
        _move_each_row(low, op, source, target, listed[0])
    signal(low, op, semaphore, _bytes(picked))
    if low.watch is not None:
        low.watch.started_scattered(semaphore, picked, writes=gathers)


def _move_rows(low: Lowering, op: ir.Operation, source: View, target: View, offsets: Value) -> None:
    """The rows at the offsets, all at once."""
    gathers, add = _gathers(op, "source", "target"), flag(op, "add")
    unwanted = named(op, "offset_filter")
    mask = None
    if unwanted is not None:
        mask = build.compare(offsets, build.splat(low.value(unwanted), build.shape_of(offsets)), "NE")
    rows, picked = (source, target) if gathers else (target, source)
    if picked.shape != (*build.shape_of(offsets), *rows.shape[1:]) or not rows.is_static:
        raise UnsupportedError("a shape that isn't one row for each offset")
    check_indices(low, op, rows, [offsets], mask, writes=not gathers)
    if gathers:
        _gather(low, source, target, offsets, mask, add=add)
    else:
        value = low.memory.read(source)
        low.memory.modify(target, lambda old: scatter(old, only_where(mask, [offsets]), value, add=add))


def _move_each_row(low: Lowering, op: ir.Operation, source: View, target: View, offsets: View) -> None:
    """The rows at the offsets, one by one: as many as there are offsets and places for them."""
    gathers = _gathers(op, "source", "target")
    picked = target if gathers else source
    if picked.reach and any(picked.reach[1:]):
        raise UnsupportedError("rows of dynamic size")

    def move(number: Value) -> None:
        part = picked.slice([number, *[0] * (len(picked.shape) - 1)], [1, *picked.shape[1:]])
        ends = (source, part) if gathers else (part, target)
        _move_rows(low, op, *ends, low.memory.read(offsets.slice([number], [1])))

    count = build.as_value(min_index(offsets.available[0], picked.available[0]))
    low.memory.for_each(count, move, [target.root])
    for root in (source.root, offsets.root):
        low.memory.order(target.root, root)


def _gather(low: Lowering, source: View, target: View, offsets: Value, mask: Value | None, *, add: bool) -> None:
    value = gather(low.memory.read(source, used=lambda numbers: gather(numbers, [offsets])), [offsets])

    def change(old: Value) -> Value:
        new = hlo.add(old, value) if add else value
        if mask is None:
            return new
        return build.select(build.broadcast(mask, build.shape_of(old), range(len(build.shape_of(mask)))), new, old)

    low.memory.modify(target, change)


def _wait_indirect(low: Lowering, op: ir.Operation) -> None:
    semaphore, source, target = _views(low, op, "semaphore", "src", "dst")
    wait(low, op, semaphore, _bytes(target if _gathers(op, "src", "dst") else source))


def _land(low: Lowering, op: ir.Operation, semaphore: View, view: View) -> None:
    wait(low, op, semaphore, _bytes(view))
    if low.late is not None:
        low.late.land(low, semaphore)


def _views(low: Lowering, op: ir.Operation, *names: str) -> list[View]:
    """The memrefs among the named operands; those that are left out are skipped."""
    values = [named(op, name) for name in names]
    return [low.view(value) for value in values if value is not None]


def _offsets(low: Lowering, op: ir.Operation) -> Value:
    """The offsets, a vector or memory that holds them."""
    offsets = named(op, "offsets")
    assert offsets is not None
    return low.memory.read(low.view(offsets)) if _is_listed(op) else low.value(offsets)


def _is_listed(op: ir.Operation) -> bool:
    """Whether the offsets are in memory."""
    offsets = named(op, "offsets")
    return offsets is not None and isinstance(offsets.type, ir.MemRefType)


def _gathers(op: ir.Operation, *names: str) -> bool:
    """Whether an indirect copy is a gather, to VMEM, or a scatter, from VMEM."""
    values: Sequence[Value | None] = [named(op, name) for name in names]
    spaces = [str(ir.MemRefType(value.type).memory_space) for value in values if value is not None]
    local = ["<vmem>" in space or "<vmem," in space for space in spaces]
    if sum(local) != 1:
        raise UnsupportedError("an indirect copy that isn't between VMEM and other memory")
    return local[1]


def _bytes(view: View) -> Value:
    """How many bytes a view has at run time."""
    bits = width_of(view.element)
    count = product(view.extents)
    if bits >= 8:
        return build.as_value(product([count, bits // 8]))
    return build.as_value(divide(build.add_index(product([count, bits]), 7), 8))


RULES: dict[str, Rule] = {
    "tpu.enqueue_dma": _enqueue,
    "tpu.enqueue_indirect_dma": _enqueue_indirect,
    "tpu.wait_dma": _wait,
    "tpu.wait_dma2": _wait2,
    "tpu.wait_indirect_dma": _wait_indirect,
}
