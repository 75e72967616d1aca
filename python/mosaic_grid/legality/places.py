"""Places of memory that the cores share which a kernel reads and writes itself, mostly by copies."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.collisions import Blocks, Collision, collide
from mosaic_grid.dataflow.effects import Effect, effect_of
from mosaic_grid.dataflow.freshness import Steps
from mosaic_grid.dataflow.scalars import is_stable
from mosaic_grid.dataflow.step import Access
from mosaic_grid.legality.sharing import Sharing, listed

# an unrolled loop gives many accesses; a race shows between the first of them
_MOST = 4


@dataclasses.dataclass(frozen=True)
class Clash:
    """Two steps that may run on different cores touch one place, and one of them writes it."""

    reason: str
    location: ir.Location
    steps: tuple[tuple[int, ...], tuple[int, ...]]


def clashes(sharing: Sharing, argument: int, steps: Steps) -> Iterator[Clash]:
    """The clashes that are certain: both accesses run, at a place that is known, and touch all of it."""
    name = sharing.name(argument)
    writes, reads = (
        {blocks: access for access in accesses if (blocks := _blocks(access, argument)) is not None}
        for accesses in (steps.later.writes, steps.later.reads)
    )
    some = list(itertools.islice(writes.items(), _MOST))
    for (one, write), (other, _) in itertools.combinations_with_replacement(some, 2):
        match collide(sharing.bounds, one, other, sharing.axes, most=sharing.most):
            case Collision(first, second, _):
                reason = f"{sharing.race(first, second)} write overlapping places of {name}"
                yield Clash(reason, write.op.location, (first, second))
    for (one, write), other in itertools.product(some, itertools.islice(reads, _MOST)):
        match collide(sharing.bounds, one, other, sharing.axes, most=sharing.most):
            case Collision(first, second, _):
                told = f"step {listed(second)} reads a place of {name} that step {listed(first)} writes"
                yield Clash(told, write.op.location, (first, second))


def _blocks(access: Access, argument: int) -> Blocks | None:
    """All that an access touches at each step; None where some of it can't be told, or is only possible."""
    if access.root.argument != argument or access.box is None or not touches_all(access.op):
        return None
    starts = tuple(span.start for span in access.box)
    sizes = [size for span in access.box if (size := sym.constant_of(span.size)) is not None]
    if len(sizes) < len(starts) or not all(map(is_stable, (*starts, *access.guards))):
        return None
    rank = len(starts)
    return Blocks(starts, (1,) * rank, tuple(sizes), (0,) * rank, access.guards)


def touches_all(op: ir.Operation) -> bool:
    """Whether an access leaves out no element of its box, and a write replaces what was there."""
    if "add" in op.attributes and bool(ir.BoolAttr(op.attributes["add"]).value):
        return False
    match effect_of(op):
        case Effect.COPY_START:
            return op.name == "tpu.enqueue_dma"
        case Effect.READ:
            first_index, memref = 1, op.operands[0]
        case Effect.WRITE:
            first_index, memref = 2, op.operands[1]
        case _:
            return False
    masked = len(op.operands) > first_index + ir.MemRefType(memref.type).rank
    strides = tuple(ir.DenseI32ArrayAttr(op.attributes["strides"])) if "strides" in op.attributes else ()
    return not masked and all(stride == 1 for stride in strides)
