"""A kernel's body as it is read once for all who ask: its listing, and what it does beyond computing values."""

from __future__ import annotations

from typing import cast

from mosaic_grid.dataflow.events import Event
from mosaic_grid.dataflow.listing import Listing
from mosaic_grid.program import Kernel


def listing_of(kernel: Kernel) -> Listing:
    """The listing of the body, which all walks over it share."""
    if Listing not in kernel.memo:
        kernel.memo[Listing] = Listing(kernel.body)
    return cast("Listing", kernel.memo[Listing])


def events_in(kernel: Kernel) -> tuple[Event, ...]:
    """Every operation of the body, in regions too, that isn't pure, a hint or a block's end, as the text has them."""
    return listing_of(kernel).events
