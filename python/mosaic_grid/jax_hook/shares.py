"""The part of a pipeline's grid that a core works on, in the function that is being traced.

Bounds and cores are Python's integers where they are known, and i32 scalars where they aren't.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import jax.numpy as jnp
from jax import lax

from mosaic_grid.jax_hook.boxes import Split, best_splits

Number: TypeAlias = Any
"""A Python integer or a traced i32 scalar."""
Share: TypeAlias = tuple[tuple[Number, ...], tuple[Number, ...]]
"""How many steps each dimension of a core's box has, and where they begin."""


def share_of(grid: Sequence[Number], parallel: Sequence[bool], cores: Number, core: Number) -> Share:
    """The box of `core`, one of `cores`.

    Of all ways to cut the parallel dimensions that with the smallest largest box: chosen now where the bounds are
    known, else when the kernel runs. A number of cores that isn't known cuts one dimension. Without a parallel
    dimension core 0 has all steps. `grid` has at least one dimension.
    """
    core = jnp.int32(core)
    if not any(parallel):
        alone = jnp.where(core == 0, jnp.int32(grid[0]), jnp.int32(0))
        return (alone, *grid[1:]), (0,) * len(grid)
    splits: Sequence[Sequence[Number]]
    if isinstance(cores, int):
        splits = best_splits(cores, [bound if isinstance(bound, int) else None for bound in grid], parallel)
    else:
        splits = [[cores if axis == cut else 1 for axis in range(len(grid))] for cut, p in enumerate(parallel) if p]
    best, *others = [(_largest(grid, split), _box(grid, split, core)) for split in splits]
    for other in others:
        best = _smaller(best, other)
    return best[1]


def _largest(grid: Sequence[Number], split: Sequence[Number]) -> Number:
    return math.prod(_quotient(bound + parts - 1, parts) for bound, parts in zip(grid, split, strict=True))


def _box(grid: Sequence[Number], split: Sequence[Number] | Split, core: Number) -> Share:
    sizes, starts = list(grid), [0] * len(grid)
    for axis in reversed(range(len(grid))):
        parts = split[axis]
        if isinstance(parts, int) and parts == 1:
            continue
        part, core = lax.rem(core, jnp.int32(parts)), lax.div(core, jnp.int32(parts))
        sizes[axis], starts[axis] = _part(grid[axis], parts, part)
    return tuple(sizes), tuple(starts)


def _part(bound: Number, parts: Number, part: Number) -> tuple[Number, Number]:
    """The size and the beginning of one part of a dimension."""
    size = _quotient(bound, parts)
    rest = bound - size * parts
    if isinstance(rest, int) and rest == 0:
        return size, part * size
    return jnp.int32(size + (part < rest)), jnp.int32(part * size + jnp.minimum(part, rest))


def _quotient(number: Number, divisor: Number) -> Number:
    """Of numbers that aren't negative, without the operations that care for such."""
    if isinstance(number, int) and isinstance(divisor, int):
        return number // divisor
    return lax.div(jnp.int32(number), jnp.int32(divisor))


def _smaller(best: tuple[Number, Share], other: tuple[Number, Share]) -> tuple[Number, Share]:
    """The split with the smaller largest box; the first, where they are equal."""
    better = other[0] < best[0]
    sizes, starts = (
        tuple(_select(better, new, old) for new, old in zip(news, olds, strict=True))
        for news, olds in zip(other[1], best[1], strict=True)
    )
    return _select(better, other[0], best[0]), (sizes, starts)


def _select(condition: Number, true: Number, false: Number) -> Number:
    if true is false or (isinstance(true, int) and isinstance(false, int) and true == false):
        return true
    return jnp.where(condition, jnp.int32(true), jnp.int32(false))
