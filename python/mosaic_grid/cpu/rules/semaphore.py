"""Semaphores: counters in memory. A core that waits in vain says so; there is nobody who could still signal it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.build import Index
from mosaic_grid.cpu.faults import What
from mosaic_grid.cpu.inside import check_inside
from mosaic_grid.cpu.lowering import Lowering, Rule, UnsupportedError
from mosaic_grid.cpu.roots import Kind, Root
from mosaic_grid.cpu.rules.views import allocate
from mosaic_grid.cpu.steps import Slice
from mosaic_grid.cpu.touches import nested
from mosaic_grid.cpu.views import View
from mosaic_grid.dataflow.effects import named
from mosaic_grid.ir_types import Value

BARRIER = "the barrier semaphore"
"""The name of the root that is the one semaphore that `tpu.sem_barrier` always gives."""

_OWN = {"device_id": "tpu.device_id", "core_id": "tpu.core_id", "subcore_id": "tpu.subcore_id"}


def start(low: Lowering, body: ir.Operation) -> None:
    """Makes the barrier semaphore if a kernel asks for it; to be called before the kernel's first step."""
    if any(op.name == "tpu.sem_barrier" for op in nested(body)):
        low.memory.state[Root(BARRIER, (), build.i32_type(), Kind.STATE)] = build.i32(0)


def refuse_elsewhere(op: ir.Operation, what: str, whom: Sequence[str] = tuple(_OWN)) -> None:
    """Raises `UnsupportedError` if an operation reaches out to another device or core, or may do so."""
    for name in whom:
        value, own = named(op, name), _OWN[name]
        if value is not None:
            owner = value.owner
            if not isinstance(owner, ir.Operation | ir.OpView) or owner.name != own:
                raise UnsupportedError(f"{what} another {name.removesuffix('_id')}")


def signal(low: Lowering, op: ir.Operation, semaphore: View, amount: Value) -> None:
    """Adds to a semaphore."""
    check_inside(low, op, semaphore, writes=True)
    low.memory.modify(semaphore, lambda count: hlo.add(count, build.reshape(amount, build.shape_of(count))))


def wait(low: Lowering, op: ir.Operation, semaphore: View, amount: Value) -> None:
    """Takes from a semaphore. If that is less than the amount, it is a fault, and then nothing is left."""
    check_inside(low, op, semaphore)
    shape = semaphore.shape
    count = build.reshape(low.memory.read(semaphore, fenced=False), ())
    if low.faults is not None:
        low.faults.note(
            low, build.compare(count, amount, "LT"), What.STUCK, op, semaphore.root, details=[count, amount]
        )
    if low.watch is not None:
        low.watch.waited(semaphore)
    left = hlo.maximum(hlo.subtract(count, amount), build.i32(0))
    low.memory.write(semaphore, build.reshape(left, shape))


def _signal(low: Lowering, op: ir.Operation) -> None:
    semaphore = low.view(op.operands[0])
    core = named(op, "core_id")
    if core is not None and semaphore.root in (low.semaphores_of_cores or ()):
        refuse_elsewhere(op, "a signal to", ("device_id", "subcore_id"))
        semaphore = _of_core(semaphore, low.index(core))
    else:
        refuse_elsewhere(op, "a signal to")
    signal(low, op, semaphore, low.value(op.operands[1]))
    if low.watch is not None:
        low.watch.signalled(semaphore)


def _of_core(semaphore: View, core: Index) -> View:
    """The same semaphore of another core: the row of the root that holds it is what the view begins with."""
    row, *steps = semaphore.steps
    assert isinstance(row, Slice)
    return dataclasses.replace(semaphore, steps=(dataclasses.replace(row, offsets=(core, *row.offsets[1:])), *steps))


def _wait(low: Lowering, op: ir.Operation) -> None:
    wait(low, op, low.view(op.operands[0]), low.value(op.operands[1]))


def _read(low: Lowering, op: ir.Operation) -> Value:
    semaphore = low.view(op.operands[0])
    check_inside(low, op, semaphore)
    return build.reshape(low.memory.read(semaphore), ())


def _barrier_semaphore(low: Lowering, _: ir.Operation) -> View:
    for root in low.memory.state:
        if root.kind is Kind.STATE and root.name == BARRIER:
            return View(root)
    raise UnsupportedError("a barrier semaphore outside of a launch")


def _barrier(low: Lowering, _: ir.Operation) -> None:
    """Nothing where all cores have come as far as this before one goes on."""
    if low.semaphores_of_cores is None:
        raise UnsupportedError("a barrier between subcores, which run one after the other")


RULES: dict[str, Rule] = {
    "tpu.barrier": _barrier,
    "tpu.sem_alloc": allocate,
    "tpu.sem_barrier": _barrier_semaphore,
    "tpu.sem_read": _read,
    "tpu.sem_signal": _signal,
    "tpu.sem_wait": _wait,
}
