"""Copies between views whose sizes are only known at run time.

They go row by row. No row leaves the memory, so that none is moved back at its end: exactly what is asked for is
copied. XLA makes such a loop as fast as one large copy, and needs a tenth of the time for it that a choice between
copies of different sizes takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from mosaic_grid.cpu import build
from mosaic_grid.cpu.build import Index, min_index
from mosaic_grid.cpu.contents import Contents
from mosaic_grid.cpu.roots import Root
from mosaic_grid.cpu.views import View

Move: TypeAlias = Callable[[View, View], None]
Places: TypeAlias = dict[int, tuple[Index, int]]


def by_parts(contents: Contents, source: View, target: View, move: Move, written: Sequence[Root]) -> None:
    """Calls `move` for parts of known size of the source and of the target that together are all that both have.

    `move` may write the roots `written`.
    """
    sizes = [min(pair) for pair in zip(source.shape, target.shape, strict=True)]
    counts = _counts(source, target, sizes)
    known: Places = {axis: (0, count) for axis, count in enumerate(counts) if isinstance(count, int)}

    def along(axes: Sequence[int], places: Places) -> None:
        """What is left to decide are the places along `axes`."""
        if not axes:
            offsets = [places[axis][0] for axis in range(len(sizes))]
            shape = [places[axis][1] for axis in range(len(sizes))]
            move(source.slice(offsets, shape), target.slice(offsets, shape))
            return
        axis, *others = axes
        count, size = build.as_value(counts[axis]), sizes[axis]

        def rows() -> None:
            contents.for_each(count, lambda index: along(others, {**places, axis: (index, 1)}), written)

        if all(places[outer][1] == 1 for outer in range(axis)):
            rows()
            return
        whole = build.compare(count, build.i32(size), "EQ")
        contents.choose(whole, lambda: along(others, {**places, axis: (0, size)}), rows, written)

    if math.prod(sizes):
        along([axis for axis, count in enumerate(counts) if not isinstance(count, int)], known)


def _counts(source: View, target: View, sizes: Sequence[int]) -> list[Index]:
    """How many elements there are in both, at most `sizes`; a negative number means none."""
    bounds = zip(source.available, target.available, sizes, strict=True)
    return [min_index(min_index(have, want), size) for have, want, size in bounds]
