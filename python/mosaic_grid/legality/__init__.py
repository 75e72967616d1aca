"""Whether dimensions of a grid may be shared between cores: what speaks against it, and what is taken on trust.

Each core runs its share of the split dimensions, and every step of the others. A kernel stands in the way of that where
it looks at other cores, hands something from one step of a split dimension to another, or writes one place from two.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import cast

from jaxlib.mlir import ir

from mosaic_grid import backend_config
from mosaic_grid.dataflow.body import events_in
from mosaic_grid.dataflow.effects import Effect, leaves_the_core
from mosaic_grid.dataflow.freshness import Steps, follow, relied_on
from mosaic_grid.legality.handover import CARRIED, carried_state, unfinished_copies
from mosaic_grid.legality.sharing import Sharing, is_own_memory, is_semaphore
from mosaic_grid.objections import Assumption, Judgement, Objection
from mosaic_grid.program import Kernel, Launch, ProgramError

__all__ = ["Assumption", "Judgement", "Objection", "assumptions", "examine", "hands_on", "judge", "objections"]


def objections(kernel: Kernel, axes: tuple[int, ...], launches: Sequence[Launch]) -> tuple[Objection, ...]:
    """What speaks against sharing the grid's dimensions `axes` between cores; nothing where they may be shared.

    `axes` are neighbours, in order. `launches` are those of `kernel`: with several, each must allow it.
    """
    return judge(kernel, axes, launches).objections


def assumptions(kernel: Kernel, axes: tuple[int, ...], launches: Sequence[Launch]) -> tuple[Assumption, ...]:
    """What isn't proved but taken from the author's word that the dimensions are parallel."""
    return judge(kernel, axes, launches).assumptions


def judge(
    kernel: Kernel, axes: tuple[int, ...], launches: Sequence[Launch], most: Mapping[int, int] | None = None
) -> Judgement:
    """Both answers at once. Raises `ProgramError` for a kernel whose parts don't fit together.

    `most` says of dynamic dimensions how many steps they have at most, where that is known of every launch. Of a
    dimension that nobody called parallel nothing is taken on trust: what isn't proved is an objection.
    """
    examined = examine(kernel, axes, launches, most)
    unsaid = [axis for axis in axes if not kernel.grid[axis].is_parallel]
    if not unsaid:
        return examined
    reason = f"grid dimension {unsaid[0]} is {kernel.grid[unsaid[0]].semantics.value}"
    unproved = (
        Objection(f"{reason}, and {a.claim} isn't proved", a.location, False, a.name) for a in examined.assumptions
    )
    return Judgement((*examined.objections, *unproved))


def examine(
    kernel: Kernel, axes: tuple[int, ...], launches: Sequence[Launch], most: Mapping[int, int] | None = None
) -> Judgement:
    """As `judge`, whatever the dimensions are called: what is neither proved nor refuted is an assumption."""
    key = (examine, axes, tuple(launch.op for launch in launches), frozenset((most or {}).items()))
    if key not in kernel.memo:
        kernel.memo[key] = _examined(kernel, axes, launches, most)
    return cast("Judgement", kernel.memo[key])


def _examined(
    kernel: Kernel, axes: tuple[int, ...], launches: Sequence[Launch], most: Mapping[int, int] | None
) -> Judgement:
    effects = _effects(kernel, launches)
    if effects:
        return Judgement(tuple(effects))
    steps = follow(kernel, max(axes))
    unknown = [op for found in steps.walks for op in found.unknown]
    if unknown:
        return Judgement(tuple(_not_followed(op) for op in dict.fromkeys(unknown)))
    return _of_the_memory(Sharing.of(kernel, axes, launches, most), steps)


def hands_on(kernel: Kernel, axis: int, launches: Sequence[Launch]) -> bool:
    """Whether something surely speaks against sharing this dimension, and any later one, alone.

    False says nothing. That is found with less work than `judge` takes, which has the reasons.
    """
    if _effects(kernel, launches):
        return True
    first = len(kernel.arguments) - kernel.scratch_count
    own = {k for k, argument in enumerate(kernel.arguments[first:], first) if is_own_memory(argument)}
    own -= {k for k in own if is_semaphore(kernel.arguments[k])}
    return bool(own) and any(root.argument in own for root in relied_on(kernel, axis))


def _effects(kernel: Kernel, launches: Sequence[Launch]) -> list[Objection]:
    """What speaks against sharing any dimension."""
    if examine not in kernel.memo:
        kernel.memo[examine] = _of_the_body(kernel)
    return [*_of_the_launches(launches), *kernel.memo[examine]]


def _of_the_memory(sharing: Sharing, steps: Steps) -> Judgement:
    from mosaic_grid.legality.races import races  # isl is loaded only when a question needs it

    races_found = races(sharing, steps)
    handed_over = [*carried_state(sharing, steps, races_found.private), *unfinished_copies(sharing, steps)]
    return Judgement((*handed_over, *races_found.objections), tuple(races_found.assumptions))


def _of_the_launches(launches: Sequence[Launch]) -> list[Objection]:
    """A launch that says its kernel communicates. Raises `ProgramError` where its configuration can't be read."""
    found: list[Objection] = []
    for launch in launches:
        try:
            communicates = _communicates(launch.config)
        except backend_config.ConfigError as error:
            raise ProgramError(str(error), launch.op) from None
        if communicates:
            reason = "the launch says that its kernel communicates"
            found.append(Objection(reason, launch.op.location, True, "cross-core"))
    return found


@functools.lru_cache(maxsize=256)
def _communicates(config: str) -> bool:
    """Whether a launch's configuration says so."""
    section = backend_config.parse(config)[backend_config.SECTION]
    return bool(section.get("has_communication")) or "collective_id" in section


def _of_the_body(kernel: Kernel) -> list[Objection]:
    """Operations that may not run on several cores, and code whose order can't be followed."""
    body = kernel.body
    if not kernel.on_tensor_core:
        core = body.attributes["tpu.core_type"]
        return [Objection(f"the kernel isn't for a TensorCore but for {core}", body.location, True, "cross-core")]
    if len(body.regions[0].blocks) != 1:
        reason = "the kernel's body has several blocks, whose order isn't followed"
        return [Objection(reason, body.location, False, "unknown-op")]
    found = (_of_the_op(event.op, event.effect) for event in events_in(kernel))
    return [objection for objection in found if objection is not None]


def _of_the_op(op: ir.Operation, effect: Effect) -> Objection | None:
    match effect:
        case Effect.CORES:
            return Objection(f"{op.name} {effect.value}", op.location, True, "cross-core")
        case Effect.PRIVATE if not all(map(is_own_memory, op.results)):
            reason = f"what {op.name} makes lies in memory that the cores share"
            return Objection(reason, op.location, False, CARRIED)
        case Effect.HARDWARE:
            return Objection(f"{op.name} {effect.value}", op.location, False, "unknown-op")
        case Effect.UNKNOWN:
            return _not_followed(op)
        case Effect.COPY_START | Effect.COPY_WAIT if leaves_the_core(op):
            return Objection(f"{op.name} copies to or from another device or core", op.location, True, "cross-core")
        case Effect.SIGNAL | Effect.SEM_WAIT if leaves_the_core(op):
            return Objection(f"{op.name} signals another device or core", op.location, True, "cross-core")
    return None


def _not_followed(op: ir.Operation) -> Objection:
    return Objection(f"{op.name} does something to memory that isn't followed", op.location, False, "unknown-op")
