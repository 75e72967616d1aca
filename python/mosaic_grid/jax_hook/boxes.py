"""Sharing a grid between cores, a box for each: the numbers, without JAX.

A *split* says for each dimension into how many parts it is cut; their product is the number of cores. A part is as many
steps as the others or one more, and the larger ones come first. The digits of a core's number, to the base of the
parts, say which part of each dimension is its own: so boxes are disjoint and cover the grid, whatever the bounds are,
and the largest has the product of `ceil(bound / parts)` steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

Split = tuple[int, ...]


def factorisations(number: int, count: int) -> Iterator[Split]:
    """All ways to write a number as a product of `count` factors, in order: (2, 1) and (1, 2) are two."""
    if count == 0:
        if number == 1:
            yield ()
        return
    for factor in range(number, 0, -1):
        if number % factor == 0:
            for rest in factorisations(number // factor, count - 1):
                yield (factor, *rest)


def best_splits(cores: int, bounds: Sequence[int | None], parallel: Sequence[bool]) -> tuple[Split, ...]:
    """The splits of the parallel dimensions one of which has the smallest largest box, whatever the dynamic bounds are.

    A bound of `None` is dynamic. There is one split where it doesn't matter what those are. Of equals the first is to
    be taken: it has the fewest sizes that differ from core to core, then the fewest dimensions cut, then the outermost.
    """
    places = [axis for axis, shared in enumerate(parallel) if shared]
    splits = [_placed(parts, places, len(bounds)) for parts in factorisations(cores, len(places))]
    splits.sort(key=lambda split: _static_cost(split, bounds))  # stable: the outermost first
    for split in splits:
        if _is_exact(split, bounds):
            return (split,)  # each box has its part of all steps: none can be smaller
    # of splits that cut the dynamic dimensions alike the cheapest in the static ones is best
    kept: dict[Split, Split] = {}
    for split in splits:
        kept.setdefault(tuple(part for part, bound in zip(split, bounds, strict=True) if bound is None), split)
    return tuple(kept.values())


def _placed(parts: Split, places: Sequence[int], rank: int) -> Split:
    by_axis = dict(zip(places, parts, strict=True))
    return tuple(by_axis.get(axis, 1) for axis in range(rank))


def _static_cost(split: Split, bounds: Sequence[int | None]) -> tuple[int, int, int]:
    pairs = list(zip(split, bounds, strict=True))
    largest = math.prod(-(-bound // parts) for parts, bound in pairs if bound is not None)
    uneven = sum(parts > 1 and (bound is None or bound % parts != 0) for parts, bound in pairs)
    return largest, uneven, sum(parts > 1 for parts in split)


def _is_exact(split: Split, bounds: Sequence[int | None]) -> bool:
    return all(parts == 1 or (bound is not None and bound % parts == 0)
               for parts, bound in zip(split, bounds, strict=True))  # fmt: skip
