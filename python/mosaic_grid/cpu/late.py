"""Copies that land as late as they may: when they are waited for. A wait that is missing shows in what is read.

A copy in flight is kept in a shadow of the memory that it goes to: the contents that will be there, as they were read
when it was started, and for each element the semaphore that the copy was started with. A wait for a semaphore lands
all that is in flight with it, whichever copy it names: which of them the hardware has done by then is its own affair.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from jaxlib.mlir import ir

from mosaic_grid.cpu import build
from mosaic_grid.cpu.build import Index, add_index
from mosaic_grid.cpu.extents import by_parts
from mosaic_grid.cpu.indices import row_major
from mosaic_grid.cpu.memory import Memory, steps_of
from mosaic_grid.cpu.roots import Kind, Root
from mosaic_grid.cpu.steps import Bitcast, Slice
from mosaic_grid.cpu.touches import nested, source_of
from mosaic_grid.cpu.views import View
from mosaic_grid.dataflow.effects import EFFECTS, Effect, named
from mosaic_grid.ir_types import Value

if TYPE_CHECKING:
    from mosaic_grid.cpu.lowering import Lowering


@dataclasses.dataclass(frozen=True)
class Shadow:
    """What will be in a root, and who brings it: the number of a semaphore, 0 where nothing is in flight."""

    contents: Root
    owner: Root


class Late:
    """The copies in flight of one kernel, `body`.

    Memory that copies go to must get its shadow before the loops that start them: `prepare` for each argument, before
    the grid's first step. `restart` is for each core's beginning.
    """

    def __init__(self, body: ir.Operation) -> None:
        self._pairs: dict[Value, dict[Value, None]] = {}
        self._shadows: dict[Root, Shadow] = {}
        self._numbers: dict[Root, int] = {}
        self._following = 1
        for op in nested(body):
            if EFFECTS.get(op.name) is Effect.COPY_START:
                for semaphore in _semaphores(op):
                    target = named(op, "target")
                    assert target is not None
                    self._pairs.setdefault(source_of(semaphore), {})[source_of(target)] = None

    def prepare(self, memory: Memory, memref: Value, root: Root) -> None:
        """Makes the shadow of a root, which `memref` is in the kernel, if some copy goes to it."""
        if root in self._shadows or not any(memref in targets for targets in self._pairs.values()):
            return
        contents = Root(f"what is in flight to {root.name}", root.shape, root.element, Kind.STATE)
        owner = Root(f"who brings it to {root.name}", root.shape, build.i32_type(), Kind.STATE)
        for made in (contents, owner):
            memory.state[made] = build.constant(0, made.shape, made.element)
        self._shadows[root] = Shadow(contents, owner)
        memory.shadows[root] = (*memory.shadows.get(root, ()), contents, owner)

    def restart(self, memory: Memory) -> None:
        """Forgets what is in flight: another core begins."""
        for shadow in self._shadows.values():
            if shadow.owner in memory.state:
                memory.state[shadow.owner] = build.zeros_like(memory.state[shadow.owner])

    def start(self, memory: Memory, source: View, target: View, semaphore: View) -> str | None:
        """Takes a copy on its way. Returns why it can't be done, if so."""
        shadow = self._shadows.get(target.root)
        if shadow is None or shadow.contents not in memory.state:
            return "a late copy to memory that has no shadow"
        number = self._number(semaphore)
        why: list[str] = []

        def move(part: View, place: View) -> None:
            memory.write(place.on(shadow.contents), memory.read(part, fenced=False))
            covered = elements_of(place)
            if covered is None:
                why.append("a late copy to scattered elements of another width")
                return
            mark = build.splat(build.as_value(number), covered.shape)
            memory.write(covered.on(shadow.owner), mark)

        by_parts(memory, source, target, move, [shadow.contents, shadow.owner])
        memory.order(shadow.contents, source.root)
        return why[0] if why else None

    def land(self, low: Lowering, semaphore: View) -> None:
        """Lands all that is in flight with a semaphore."""
        memory = low.memory
        number = build.as_value(self._number(semaphore))
        for root in self._reached(low, semaphore.root):
            shadow = self._shadows[root]
            owner = memory.state[shadow.owner]
            landed = build.compare(owner, build.splat(number, root.shape), "EQ")
            memory.state[root] = build.select(landed, memory.state[shadow.contents], memory.state[root])
            memory.state[shadow.owner] = build.select(landed, build.zeros_like(owner), owner)

    def landing(self, op: ir.Operation) -> list[Value]:
        """The memrefs that an operation may land copies in."""
        if EFFECTS.get(op.name) is not Effect.COPY_WAIT:
            return []
        return [target for semaphore in _semaphores(op) for target in self._pairs.get(source_of(semaphore), {})]

    def _reached(self, low: Lowering, semaphore: Root) -> list[Root]:
        """The roots to which copies with this semaphore go."""
        found: dict[Root, None] = {}
        for source, targets in self._pairs.items():
            if low.knows(source) and low.view(source).root is semaphore:
                found |= {low.view(target).root: None for target in targets if low.knows(target)}
        return [root for root in found if root in self._shadows and self._shadows[root].owner in low.memory.state]

    def _number(self, semaphore: View) -> Index:
        """What a semaphore is called: positive, and another one for each."""
        root = semaphore.root
        if root not in self._numbers:
            self._numbers[root] = self._following
            self._following += math.prod(root.shape)
        offsets: Sequence[Index] = next(
            (step.offsets for step in steps_of(semaphore) if isinstance(step, Slice)), [0] * len(root.shape)
        )
        return add_index(self._numbers[root], row_major(offsets, root.shape))


def _semaphores(op: ir.Operation) -> Iterator[Value]:
    for name in ("semaphore", "target_semaphore", "source_semaphore"):
        value = named(op, name)
        if value is not None:
            yield value


def elements_of(view: View) -> View | None:
    """The elements of the root that a view of known shape has bits of; `None` where they are no box."""
    if not any(isinstance(step, Bitcast) for step in view.steps):
        return view
    steps = steps_of(view)
    if any(isinstance(step, Slice) for step in steps[1:]):
        return None
    return View(view.root, tuple(step for step in steps[:1] if isinstance(step, Slice)))
