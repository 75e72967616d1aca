"""What a step reads of an output's block before it has written it: where the block has come back, that is lost."""

from __future__ import annotations

import dataclasses
from collections.abc import Set
from typing import cast

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.body import listing_of
from mosaic_grid.dataflow.control import defining
from mosaic_grid.dataflow.effects import Effect, effect_of, is_memory
from mosaic_grid.dataflow.geometry import Geometry
from mosaic_grid.dataflow.step import Access, Findings
from mosaic_grid.dataflow.uses import may_be_chosen_away
from mosaic_grid.ir_types import Value
from mosaic_grid.legality.sharing import behind
from mosaic_grid.program import Kernel

_NO_READS = frozenset(
    {
        Effect.CONTROL,
        Effect.PRIVATE,
        Effect.VIEW,
        Effect.COPY_WAIT,
        Effect.SIGNAL,
        Effect.SEM_WAIT,
        Effect.SEM_READ,
        Effect.SEED,
        Effect.RANDOM,
    }
)


@dataclasses.dataclass(frozen=True)
class Read:
    """A read that finds nothing written by its step where the truth values `when` are 1; None where nobody knows."""

    when: tuple[sym.Expr, ...] | None
    location: ir.Location


def may_read(kernel: Kernel, argument: int) -> bool:
    """Whether a step may read a buffer of the kernel, as the text of its body has it; no walk is needed for that."""
    if may_read not in kernel.memo:
        kernel.memo[may_read] = _buffers_read(kernel)
    known = cast("Set[Value] | None", kernel.memo[may_read])
    return known is None or kernel.arguments[argument] in known


def _buffers_read(kernel: Kernel) -> set[Value] | None:
    """The buffers that operations read; None where one of them may read any."""
    listing = listing_of(kernel)
    found: set[Value] = set()
    for event in listing.events:
        match event.effect:
            case Effect.READ | Effect.READ_SCATTERED:
                given = event.operands[:1] if listing.is_dead(event) is not True else ()
            case Effect.WRITE:
                given = event.operands[1:2] if event.adds else ()
            case Effect.COPY_START:
                given = tuple(filter(is_memory, event.operands))
            case effect if effect in _NO_READS:
                given = ()
            case _:
                return None
        for buffer in map(behind, given):
            if not _is_known(kernel, buffer):
                return None
            found.add(buffer)
    return found


def _is_known(kernel: Kernel, buffer: Value) -> bool:
    """Whether it is an argument of the kernel, or a buffer that a step makes for itself."""
    if isinstance(buffer, ir.BlockArgument):
        return bool(buffer.owner == kernel.body.regions[0].blocks[0])
    return effect_of(defining(buffer)[0]) is Effect.PRIVATE


def reads_on_return(step: Findings, argument: int, geometry: Geometry) -> tuple[Read, ...]:
    """The reads of a window, the kernel's `argument`, at a step by itself, which a walk has found."""
    return tuple(
        Read(None if step.unknown else _conditions(access, before, geometry), access.op.location)
        for access, before in step.uncovered
        if access.root.argument == argument
    )


def _conditions(access: Access, before: tuple[Access, ...], geometry: Geometry) -> tuple[sym.Expr, ...] | None:
    """When it runs and no write before it has; None where that can't be told."""
    if may_be_chosen_away(access.op) or not all(write.guards for write in before):
        return None
    unwritten = [sym.negation(sym.conjunction(*write.guards)) for write in before]
    placed = [geometry.of_a_step(truth) for truth in (*access.guards, *unwritten)]
    known = tuple(truth for truth in placed if truth is not None)
    return known if len(known) == len(placed) else None
