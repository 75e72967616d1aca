"""Semaphores: counters in memory. A core that waits in vain says so; there is nobody who could still signal it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.build import Index, add_index, multiply_index
from mosaic_grid.cpu.devices import is_own
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
OWN = tuple(_OWN)
"""The operands that name another device or core."""


def start(low: Lowering, body: ir.Operation) -> None:
    """Makes the barrier semaphore if a kernel asks for it; to be called before the kernel's first step."""
    if any(op.name == "tpu.sem_barrier" for op in nested(body)):
        low.memory.state[Root(BARRIER, (), build.i32_type(), Kind.REGISTER)] = build.i32(0)


def refuse_elsewhere(low: Lowering, op: ir.Operation, what: str, whom: Sequence[str] = OWN) -> None:
    """Raises `UnsupportedError` if an operation reaches out to another device or core, or may do so."""
    for name in whom:
        value = named(op, name)
        if value is None or (name == "device_id" and is_own(op, value)):
            continue
        if not is_own_core(op, name):
            why = "" if name == "device_id" else _because(low)
            raise UnsupportedError(f"{what} another {name.removesuffix('_id')}{why}")


def _because(low: Lowering) -> str:
    """Why cores don't go on together, to be said behind what they then can't do."""
    return "" if low.apart is None else f"; {low.apart}"


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
    elsewhere = of_core(low, op, semaphore)
    refuse_elsewhere(low, op, "a signal to", OWN if elsewhere is None else ("device_id",))
    semaphore = elsewhere or semaphore
    signal(low, op, semaphore, low.value(op.operands[1]))
    if low.watch is not None:
        low.watch.signalled(semaphore)


def of_core(low: Lowering, op: ir.Operation, view: View) -> View | None:
    """The same memory of the core that an operation names; `None` if it names none, or there is no such memory."""
    core, subcore = (None if is_own_core(op, name) else named(op, name) for name in ("core_id", "subcore_id"))
    if (core is None and subcore is None) or view.root not in (low.semaphores_of_cores or ()):
        return None
    return in_row_of(
        low, view, None if core is None else low.index(core), None if subcore is None else low.index(subcore)
    )


def in_row_of(low: Lowering, view: View, core: Index | None, subcore: Index | None) -> View:
    """The same memory of another core: the row of the root that holds it is what the view begins with."""
    row, *steps = view.steps
    assert isinstance(row, Slice)
    own = row.offsets[0]
    assert isinstance(own, int)
    of_cores, of_subcores = divmod(own, low.subcores)
    first = multiply_index(of_cores if core is None else core, low.subcores)
    other = add_index(first, of_subcores if subcore is None else subcore)
    return dataclasses.replace(view, steps=(dataclasses.replace(row, offsets=(other, *row.offsets[1:])), *steps))


def is_own_core(op: ir.Operation, name: str) -> bool:
    """Whether the operand that names a core or subcore, if there is one, is the number that the core itself has."""
    value = named(op, name)
    return value is not None and isinstance(value.owner, ir.Operation | ir.OpView) and value.owner.name == _OWN[name]


def _wait(low: Lowering, op: ir.Operation) -> None:
    wait(low, op, low.view(op.operands[0]), low.value(op.operands[1]))


def _read(low: Lowering, op: ir.Operation) -> Value:
    semaphore = low.view(op.operands[0])
    check_inside(low, op, semaphore)
    return build.reshape(low.memory.read(semaphore), ())


def _barrier_semaphore(low: Lowering, _: ir.Operation) -> View:
    for root in low.memory.state:
        if root.kind is Kind.REGISTER and root.name == BARRIER:
            return View(root)
    raise UnsupportedError("a barrier semaphore outside of a launch")


def _barrier(low: Lowering, _: ir.Operation) -> None:
    """Nothing where all cores have come as far as this before one goes on."""
    if low.semaphores_of_cores is None:
        raise UnsupportedError(f"a barrier between subcores{_because(low)}")


RULES: dict[str, Rule] = {
    "tpu.barrier": _barrier,
    "tpu.sem_alloc": allocate,
    "tpu.sem_barrier": _barrier_semaphore,
    "tpu.sem_read": _read,
    "tpu.sem_signal": _signal,
    "tpu.sem_wait": _wait,
}
