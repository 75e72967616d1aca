"""The steps of several grids, one grid after the other, counted through: where the step of a number is.

Bounds are Python's integers or traced i32 scalars. There is a grid for each element of a batch; a search by comparison
takes one operation for each, and no memory.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import jax.numpy as jnp
from jax import lax

Number: TypeAlias = Any


@dataclasses.dataclass(frozen=True)
class Position:
    """A step: the grid it is in, its indices there, outermost first, and that grid's bounds."""

    grid: Number
    indices: tuple[Number, ...]
    bounds: tuple[Number, ...]
    behind: tuple[Number, ...]
    """For each grid but the first whether the step is in it or in a later one."""

    def of(self, values: Sequence[Number]) -> Number:
        """The value for the step's grid, of one for each."""
        if all(value is values[0] for value in values):
            return values[0]
        found = values[0]
        for behind, value in zip(self.behind, values[1:], strict=True):
            found = jnp.where(behind, value, found)
        return found


@dataclasses.dataclass(frozen=True)
class Ragged:
    """The bounds of each grid; all have the same rank, of at least one."""

    bounds: tuple[tuple[Number, ...], ...]
    starts: tuple[Number, ...]
    """The number of the first step of each grid, and behind them that of all steps."""

    @classmethod
    def of(cls, bounds: Sequence[tuple[Number, ...]]) -> Ragged:
        """Adds up the steps."""
        steps = [math.prod(each) for each in bounds]
        return cls(tuple(bounds), tuple(itertools.accumulate(steps, operator.add, initial=0)))

    @property
    def total(self) -> Number:
        """The number of all steps."""
        return jnp.int32(self.starts[-1])

    def locate(self, step: Number) -> Position:
        """Where a step is; `step` is at least 0 and less than `total`. A grid without steps is never the answer."""
        behind = tuple(step >= start for start in self.starts[1:-1])
        grid = sum((each.astype(jnp.int32) for each in behind), start=jnp.int32(0))
        found = Position(grid, (), (), behind)
        rest = step - found.of(self.starts[:-1])
        bounds = tuple(found.of(each) for each in zip(*self.bounds, strict=True))
        indices: list[Number] = []
        for bound in reversed(bounds[1:]):
            indices.insert(0, lax.rem(rest, jnp.int32(bound)))
            rest = lax.div(rest, jnp.int32(bound))
        return dataclasses.replace(found, indices=(rest, *indices), bounds=bounds)
