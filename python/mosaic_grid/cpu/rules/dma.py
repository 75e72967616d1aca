"""Copies by DMA: done when they are started, or when they are waited for (`late.py`). Their semaphores count bytes."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.bits import width_of
from mosaic_grid.cpu.indexed import gather, only_where, scatter
from mosaic_grid.cpu.indices import divide, product
from mosaic_grid.cpu.inside import check_indices, check_inside
from mosaic_grid.cpu.lowering import Lowering, Rule, UnsupportedError
from mosaic_grid.cpu.rules.attributes import flag
from mosaic_grid.cpu.rules.semaphore import refuse_elsewhere, signal, wait
from mosaic_grid.cpu.views import View
from mosaic_grid.dataflow.effects import named
from mosaic_grid.ir_types import Value


def _enqueue(low: Lowering, op: ir.Operation) -> None:
    """Copies what both views have. Each semaphore that is given gets the bytes of the target."""
    refuse_elsewhere(op, "a copy to")
    source, target = _views(low, op, "source", "target")
    check_inside(low, op, source)
    check_inside(low, op, target, writes=True)
    semaphores = _views(low, op, "source_semaphore", "target_semaphore")
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
    refuse_elsewhere(op, "a wait for a copy to")
    side = "target" if flag(op, "wait_target", default=True) else "source"
    semaphores = _views(low, op, f"{side}_semaphore")
    if not semaphores:
        raise UnsupportedError("a wait without a semaphore")
    (view,) = _views(low, op, side)
    _land(low, op, semaphores[0], view)


def _wait2(low: Lowering, op: ir.Operation) -> None:
    """Waits until the destination is written."""
    refuse_elsewhere(op, "a wait for a copy to")
    semaphore, target = _views(low, op, "semaphore", "dst")
    _land(low, op, semaphore, target)


def _enqueue_indirect(low: Lowering, op: ir.Operation) -> None:
    """Gathers rows of the source, or scatters to rows of the target, whichever isn't in VMEM.

    The rows are those of the first dimension; offsets of the value `offset_filter` are left out. It is done at once,
    even where copies are late.
    """
    source, target, semaphore = _views(low, op, "source", "target", "semaphore")
    offsets = _offsets(low, op)
    unwanted = named(op, "offset_filter")
    mask = None
    if unwanted is not None:
        mask = build.compare(offsets, build.splat(low.value(unwanted), build.shape_of(offsets)), "NE")
    gathers = _gathers(op, "source", "target")
    rows, picked = (source, target) if gathers else (target, source)
    if picked.shape != (*build.shape_of(offsets), *rows.shape[1:]) or not (rows.is_static and picked.is_static):
        raise UnsupportedError("a shape that isn't one row for each offset")
    add = flag(op, "add")
    check_inside(low, op, source)
    check_inside(low, op, target, writes=True)
    check_indices(low, op, rows, [offsets], mask, writes=not gathers)
    if gathers:
        _gather(low, source, target, offsets, mask, add=add)
    else:
        value = low.memory.read(source)
        low.memory.modify(target, lambda old: scatter(old, only_where(mask, [offsets]), value, add=add))
    signal(low, op, semaphore, _bytes(picked))
    if low.watch is not None:
        low.watch.started_scattered(semaphore, picked, writes=gathers)


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
    return low.memory.read(low.view(offsets)) if isinstance(offsets.type, ir.MemRefType) else low.value(offsets)


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
