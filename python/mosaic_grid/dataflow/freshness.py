"""What the steps of a grid leave behind for each other, where some dimensions are shared between cores.

A core runs every step of the other dimensions for its share of the split ones. What a step leaves in memory may be
used by the steps that have the same indices in all dimensions up to the last split one, for these run on the same core
in the same order as before; by no other step. That is proved by two walks: over the first step of such a run, where the
indices of all inner dimensions are 0, starting with nothing written; and over any step, starting with what the first
has written. Every read must find its memory written.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar, cast

from jaxlib.mlir import ir

from mosaic_grid import memory
from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.body import listing_of
from mosaic_grid.dataflow.events import Event
from mosaic_grid.dataflow.memory import Box, Root, View, whole
from mosaic_grid.dataflow.scalars import Scalars, grid_index, is_stable
from mosaic_grid.dataflow.step import Findings
from mosaic_grid.dataflow.step_state import State, Transfer, Written
from mosaic_grid.dataflow.walk import Walk
from mosaic_grid.ir_types import Value
from mosaic_grid.program import Kernel

_Walk = TypeVar("_Walk", bound=Walk)
_Start: TypeAlias = tuple[ir.Block, dict[Value, sym.Expr], dict[Value, View]]
"""A kernel's body, the indices of any step, and what arguments show at its begin."""

_MOST_STEPS = 64
"""A run of more steps isn't followed step by step."""


@dataclasses.dataclass(frozen=True)
class Steps:
    """What the two walks found; `later` is `first` where the inner dimensions have one step only."""

    first: Findings
    later: Findings

    @property
    def walks(self) -> tuple[Findings, ...]:
        """Each walk once."""
        return (self.first,) if self.later is self.first else (self.first, self.later)


def follow(kernel: Kernel, last_split: int) -> Steps:
    """Walks over the steps of a kernel whose body is one block; dimensions after `last_split` are the inner ones.

    A kernel is walked no more often than it takes: answers that are known to be the same are.
    """
    if not _has_scratch(kernel):  # seldom written anew by each step, so that this walk would be for nothing
        alone = any_step(kernel)
        if _is_self_contained(Steps(alone, alone)):
            # a step that relies on no other one does so whatever is known of its indices
            return Steps(alone, alone)
    # what may be split further in, mostly together with this one, may be split here: fewer steps rely on each other
    together = max((axis for axis, each in enumerate(kernel.grid) if each.is_parallel), default=last_split)
    if together > last_split and _is_self_contained(steps := _followed(kernel, together)):
        return steps
    return _followed(kernel, last_split)


def _followed(kernel: Kernel, last_split: int) -> Steps:
    inner = [axis for axis in range(last_split + 1, len(kernel.grid)) if kernel.grid[axis].bound != 1]
    if not inner:
        alone = any_step(kernel)
        return Steps(alone, alone)
    used = _used(kernel, inner)
    known = kernel.memo.get((follow, used))
    if known is None:
        first = _first(kernel, used)
        known = Steps(first.found, walk_step(kernel, _kept(first.state), {}, Walk).found)
        if not _is_self_contained(known) and is_run_self_contained(kernel, inner, _written(known)):
            known = Steps(*(dataclasses.replace(found, uncovered=[], unmatched=[]) for found in known.walks))
        kernel.memo[follow, used] = known
    return cast("Steps", known)


def _has_scratch(kernel: Kernel) -> bool:
    """Whether there is memory that mostly holds something from one step to the next."""
    kinds = (each.type for each in kernel.scratch)
    return any(isinstance(kind, ir.MemRefType) and memory.space_of(kind) != memory.SEMAPHORES for kind in kinds)


def _first(kernel: Kernel, used: tuple[int, ...]) -> Walk:
    """The walk over a step whose indices in these dimensions are 0, with nothing written."""
    if (_first, used) not in kernel.memo:
        kernel.memo[_first, used] = walk_step(kernel, State(), dict.fromkeys(used, 0), Walk)
    return cast("Walk", kernel.memo[_first, used])


def _used(kernel: Kernel, axes: Iterable[int]) -> tuple[int, ...]:
    """Without the dimensions whose index the body doesn't use: that may as well be anything."""
    return tuple(axis for axis in axes if any(True for _ in kernel.arguments[axis].uses))


def relied_on(kernel: Kernel, last_split: int) -> frozenset[Root]:
    """What the first step of a run may read before it has written it, and writes: the run before has left it there.

    What is relied on there is so as well where a later dimension is the last split one, for the same step then is the
    first of a run. The kernel's body is one block.
    """
    inner = [axis for axis in range(last_split + 1, len(kernel.grid)) if kernel.grid[axis].bound != 1]
    found = _first(kernel, _used(kernel, inner)).found
    return frozenset(access.root for access, _ in found.uncovered) & frozenset(access.root for access in found.writes)


def _is_self_contained(steps: Steps) -> bool:
    """Whether no step relies on another but those that were said to be before it."""
    if any(found.unmatched or found.unknown for found in steps.walks):
        return False
    written = _written(steps)
    return not any(access.root in written for found in steps.walks for access, _ in found.uncovered)


def _written(steps: Steps) -> set[Root]:
    """The memory that some step may write."""
    return {access.root for found in steps.walks for access in found.writes}


def any_step(kernel: Kernel) -> Findings:
    """What a walk over a step finds that relies on no other one; the kernel's body is one block."""
    return _first(kernel, ()).found


def does_nothing(kernel: Kernel, indices: Mapping[int, int]) -> bool:
    """Whether the steps with these indices in some dimensions surely write, copy and signal nothing.

    The kernel's body is one block.
    """
    try:
        found = walk_step(kernel, State(), indices, _UntilSomething).found
    except _SomethingError:
        return False
    return not (found.unknown or found.unmatched)


class _SomethingError(Exception):
    """A step does something."""


class _InRun(Walk):
    """A walk over a step at whose end copies may be under way."""

    def finish(self) -> None:
        """Leaves them to the next step."""


def is_run_self_contained(kernel: Kernel, inner: Sequence[int], written: Collection[Root]) -> bool:
    """Whether the steps that have the same indices but in `inner` are proved to rely on no others, one after the other.

    So it is where each waits for copies that the one before has started, and the last one starts none. `written` is the
    memory that may hold something of another run. False where there are too many steps to follow, or nobody knows how
    many.
    """
    bounds = [kernel.grid[axis].bound or 0 for axis in inner]
    if not 1 < math.prod(bounds) <= _MOST_STEPS:
        return False
    state = State()
    for indices in itertools.product(*map(range, bounds)):
        step = walk_step(kernel, state, dict(zip(inner, indices, strict=True)), _InRun)
        found = step.found
        if found.unmatched or found.unknown or any(access.root in written for access, _ in found.uncovered):
            return False
        state = _kept(step.state)
        if not all(map(_lasts, step.state.transfers)):
            return False
        state.transfers = tuple(dataclasses.replace(each, number=-n - 1) for n, each in enumerate(step.state.transfers))
    return not state.transfers


def _lasts(transfer: Transfer) -> bool:
    """Whether what is known of a copy under way means the same to the next step."""
    views = [view for view in (transfer.target,) if view is not None]
    roots = [transfer.semaphore, *(view.root for view in views)]
    boxes = [transfer.part, *(view.box for view in views)]
    spans = [span for box in boxes if box is not None for span in box]
    exprs = [*(end for span in spans for end in (span.start, span.size)), *transfer.guards]
    exprs += [each for each in transfer.amount if isinstance(each, sym.Expr)]
    return all(root.argument is not None for root in roots) and all(map(is_stable, exprs))


class _UntilSomething(Walk):
    """A walk that ends at the first write."""

    def write(self, event: Event, root: Root, box: Box | None, covers: bool) -> None:
        """Raises `_SomethingError`."""
        raise _SomethingError


def walk_step(kernel: Kernel, state: State, indices: Mapping[int, int], kind: type[_Walk]) -> _Walk:
    """The walk of this kind over a step with these indices in some dimensions, from what is written before."""
    if walk_step not in kernel.memo:
        kernel.memo[walk_step] = _start_of(kernel)
    body, grid, views = cast("_Start", kernel.memo[walk_step])
    listing = listing_of(kernel)
    scalars = Scalars((dimension.bound for dimension in kernel.grid), listing)
    scalars.set(grid)
    scalars.set({body.arguments[number]: sym.constant(index) for number, index in indices.items()})
    step = kind(scalars, state, dict(views), listing)
    step.walk(body)
    step.finish()
    return step


def _start_of(kernel: Kernel) -> _Start:
    grid: dict[Value, sym.Expr] = {}
    views: dict[Value, View] = {}
    for number, argument in enumerate(kernel.arguments):
        if number < len(kernel.grid):
            grid[argument] = grid_index(number, kernel.grid[number].bound)
        elif isinstance(argument.type, ir.MemRefType):
            views[argument] = whole(Root(number, tuple(argument.type.shape)))
    return kernel.body.regions[0].blocks[0], grid, views


def _kept(state: State) -> State:
    """What later steps may rely on: boxes, and conditions, that mean the same to them."""
    return State({root: tuple(w for w in written if _means_the_same(w)) for root, written in state.writes.items()})


def _means_the_same(written: Written) -> bool:
    spans = all(is_stable(span.start) and is_stable(span.size) for span in written.box)
    return spans and all(is_stable(guard) for guard in written.guards)
