"""What each operation on memory and semaphores means for the notes of a step."""

from __future__ import annotations

from collections.abc import Callable

from mosaic_grid.dataflow.effects import Effect
from mosaic_grid.dataflow.events import Event
from mosaic_grid.dataflow.memory import PRNG, View
from mosaic_grid.dataflow.step import Step
from mosaic_grid.dataflow.views import amount_of, box_of, view_of

Handler = Callable[[Step, Event], None]


def unknown(step: Step, event: Event) -> None:
    """An operation that can't be followed."""
    step.found.unknown.append(event.op)
    step.scalars.forget(event.results)
    step.hide(event.results)


def _private(step: Step, event: Event) -> None:
    step.private(event.results[0])


def _view(step: Step, event: Event) -> None:
    base = step.view(event.operands[0])
    if base is None:
        step.hide(event.results)
    else:
        step.show(event.results[0], view_of(event, base, step.scalars))


def _read(step: Step, event: Event) -> None:
    step.scalars.forget(event.results)
    base = step.view(event.operands[0])
    if base is None:
        unknown(step, event)
        return
    if not step.listing.is_dead(event):
        box = box_of(event, base, step.scalars) if event.effect is Effect.READ else None
        step.read(event, base.root, box)


def _write(step: Step, event: Event) -> None:
    base = step.view(event.operands[1])
    if base is None:
        unknown(step, event)
        return
    if event.effect is Effect.WRITE_SCATTERED:
        step.write(event, base.root, None, covers=False)
        return
    box = box_of(event, base, step.scalars)
    if event.adds:
        step.read(event, base.root, box)
    step.write(event, base.root, box, covers=event.touch.complete)


def _copy_start(step: Step, event: Event) -> None:
    indirect = event.name == "tpu.enqueue_indirect_dma"
    source, target, offsets = (_named_view(step, event, name) for name in ("source", "target", "offsets"))
    counters = _semaphores(step, event)
    if source is None or target is None or counters is None:
        unknown(step, event)
        return
    op = event.op
    step.read(event, source.root, None if indirect else source.box)
    if offsets is not None:
        step.read(event, offsets.root, offsets.box)
    if event.adds:
        step.read(event, target.root, None)
    step.write(event, target.root, None if indirect else target.box, covers=False)
    for counter in counters:
        step.start(op, counter, amount_of(event, target), None if indirect else target)


def _copy_wait(step: Step, event: Event) -> None:
    target = _named_view(step, event, "target") or _named_view(step, event, "dst")
    counters = _semaphores(step, event)
    if target is None or counters is None:
        unknown(step, event)
        return
    for counter in counters:
        step.wait(event.op, counter, amount_of(event, target))


def _named_view(step: Step, event: Event, name: str) -> View | None:
    value = event.named(name)
    return step.view(value) if value is not None else None


def _semaphores(step: Step, event: Event) -> list[View] | None:
    """The semaphores of a copy or a wait; None where one can't be told."""
    given = [event.named(name) for name in ("semaphore", "source_semaphore", "target_semaphore")]
    views = [step.view(value) for value in given if value is not None]
    known = [view for view in views if view is not None]
    return known if len(known) == len(views) else None


def _signal(step: Step, event: Event) -> None:
    counter = step.view(event.operands[0])
    if counter is None:
        unknown(step, event)
        return
    amount = ("count", step.scalars.of(event.operands[1]))
    if event.effect is Effect.SIGNAL:
        step.start(event.op, counter, amount, None)
    else:
        step.wait(event.op, counter, amount)


def _seed(step: Step, event: Event) -> None:
    step.write(event, PRNG, (), covers=True)


def _random(step: Step, event: Event) -> None:
    if not step.listing.is_dead(event):
        step.read(event, PRNG, ())
    step.write(event, PRNG, (), covers=False)


def _sem_read(step: Step, event: Event) -> None:
    step.scalars.forget(event.results)


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
