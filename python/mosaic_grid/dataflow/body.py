"""A kernel's body as it is read once for all who ask: its listing, and what it does beyond computing values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from jaxlib.mlir import ir

from mosaic_grid.dataflow.events import Event
from mosaic_grid.dataflow.listing import Listing
from mosaic_grid.program import Kernel


def listing_of(kernel: Kernel) -> Listing:
    """The listing of the body and of index maps, which all walks over them share."""
    return cast("Listing", kernel.memo.setdefault(Listing, Listing()))


def events_in(kernel: Kernel) -> tuple[Event, ...]:
    """Every operation of the body, in regions too, that isn't pure, a hint or a block's end, as the text has them."""
    if events_in not in kernel.memo:
        kernel.memo[events_in] = tuple(_events(kernel.body, listing_of(kernel)))
    return cast("tuple[Event, ...]", kernel.memo[events_in])


def _events(op: ir.Operation, listing: Listing) -> Iterator[Event]:
    for region in op.regions:
        for block in region.blocks:
            for event in listing.of(block).events:
                yield event
                yield from _events(event.op, listing)
