"""What each operation on memory and semaphores means for the notes of a step."""

from __future__ import annotations

from collections.abc import Callable

from jaxlib.mlir import ir

from mosaic_grid.dataflow.effects import Effect, effect_of, named
from mosaic_grid.dataflow.memory import PRNG, View
from mosaic_grid.dataflow.step import Step
from mosaic_grid.dataflow.views import access, amount_of, view_of

Handler = Callable[[Step, ir.Operation], None]


def unknown(step: Step, op: ir.Operation) -> None:
    """An operation that can't be followed."""
    step.found.unknown.append(op)
    step.scalars.forget(op.results)
    step.hide(op.results)


def _private(step: Step, op: ir.Operation) -> None:
    step.private(op.results[0])


def _view(step: Step, op: ir.Operation) -> None:
    base = step.view(op.operands[0])
    for result in op.results:
        if base is not None:
            step.show(result, view_of(op, base, step.scalars))


def _read(step: Step, op: ir.Operation) -> None:
    step.scalars.forget(op.results)
    base = step.view(op.operands[0])
    if base is None:
        unknown(step, op)
        return
    box = access(op, base, 1, step.scalars).box if effect_of(op) is Effect.READ else None
    step.read(op, base.root, box)


def _write(step: Step, op: ir.Operation) -> None:
    base = step.view(op.operands[1])
    if base is None:
        unknown(step, op)
        return
    if effect_of(op) is Effect.WRITE_SCATTERED:
        step.write(op, base.root, None, covers=False)
        return
    part = access(op, base, 2, step.scalars)
    if part.accumulates:
        step.read(op, base.root, part.box)
    step.write(op, base.root, part.box, covers=part.complete)


def _copy_start(step: Step, op: ir.Operation) -> None:
    indirect = op.name == "tpu.enqueue_indirect_dma"
    source, target, offsets = (_named_view(step, op, name) for name in ("source", "target", "offsets"))
    counters = _semaphores(step, op)
    moved = named(op, "target")
    if source is None or target is None or moved is None or counters is None:
        unknown(step, op)
        return
    step.read(op, source.root, None if indirect else source.box)
    if offsets is not None:
        step.read(op, offsets.root, offsets.box)
    adds = "add" in op.attributes and bool(ir.BoolAttr(op.attributes["add"]).value)
    if adds:
        step.read(op, target.root, None)
    step.write(op, target.root, None if indirect else target.box, covers=False)
    for counter in counters:
        step.start(op, counter, amount_of(moved, target), None if indirect else target)


def _copy_wait(step: Step, op: ir.Operation) -> None:
    moved = named(op, "target") or named(op, "dst")
    target = step.view(moved) if moved is not None else None
    counters = _semaphores(step, op)
    if moved is None or target is None or counters is None:
        unknown(step, op)
        return
    for counter in counters:
        step.wait(op, counter, amount_of(moved, target))


def _named_view(step: Step, op: ir.Operation, name: str) -> View | None:
    value = named(op, name)
    return step.view(value) if value is not None else None


def _semaphores(step: Step, op: ir.Operation) -> list[View] | None:
    """The semaphores of a copy or a wait; None where one can't be told."""
    given = [named(op, name) for name in ("semaphore", "source_semaphore", "target_semaphore")]
    views = [step.view(value) for value in given if value is not None]
    known = [view for view in views if view is not None]
    return known if len(known) == len(views) else None


def _signal(step: Step, op: ir.Operation) -> None:
    counter = step.view(op.operands[0])
    if counter is None:
        unknown(step, op)
        return
    amount = ("count", step.scalars.of(op.operands[1]))
    if effect_of(op) is Effect.SIGNAL:
        step.start(op, counter, amount, None)
    else:
        step.wait(op, counter, amount)


def _seed(step: Step, op: ir.Operation) -> None:
    step.write(op, PRNG, (), covers=True)


def _random(step: Step, op: ir.Operation) -> None:
    step.read(op, PRNG, ())
    step.write(op, PRNG, (), covers=False)


def _sem_read(step: Step, op: ir.Operation) -> None:
    step.scalars.forget(op.results)


MEMORY_OPS: dict[Effect, Handler] = {
    Effect.PRIVATE: _private,
    Effect.VIEW: _view,
    Effect.READ: _read,
    Effect.READ_SCATTERED: _read,
    Effect.WRITE: _write,
    Effect.WRITE_SCATTERED: _write,
    Effect.COPY_START: _copy_start,
    Effect.COPY_WAIT: _copy_wait,
    Effect.SIGNAL: _signal,
    Effect.SEM_WAIT: _signal,
    Effect.SEM_READ: _sem_read,
    Effect.SEED: _seed,
    Effect.RANDOM: _random,
}
