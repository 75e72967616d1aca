"""A split: which dimensions are shared between the cores, and what the partitioned grid is.

The steps of the shared dimensions, in row-major order, are cut into one contiguous share a core. Shares differ by at
most one: on two cores they are `ceil(n/2)` and the rest; on more, the first `n mod cores` cores have one more than the
others.

Static dimensions right behind the shared ones whose bounds are powers of two are *fused* with them: one loop counts the
steps of all of them, and a shift and a mask take the count apart. Compared with a loop of its own, each saves scalar
instructions in every index map, and the clamp at the end of a share needs no selection for them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from mosaic_grid.grid import I32_MAX, Dimension, Semantics

MOST_FUSED = 2**16
"""Fused steps to one shared step: with more of them, few shared steps could be counted in 32 bits."""


@dataclasses.dataclass(frozen=True)
class Split:
    """Grid dimensions `axes` (adjacent) shared between `cores`, with the adjacent dimensions `fused` counted along.

    `even` says that the number of shared steps is a multiple of the cores, so that no step lies beyond a share's end.
    """

    grid: tuple[Dimension, ...]
    cores: int
    axes: tuple[int, ...]
    fused: tuple[int, ...]
    even: bool

    @property
    def outer(self) -> tuple[int, ...]:
        """The dimensions around the shared ones: every core runs all of their steps."""
        return tuple(range(self.axes[0]))

    @property
    def inner(self) -> tuple[int, ...]:
        """The dimensions inside the shared and fused ones."""
        return tuple(range(self.axes[-1] + len(self.fused) + 1, len(self.grid)))

    @property
    def counted(self) -> int:
        """The position of the loop over a core's share in the partitioned grid."""
        return 1 + len(self.outer)

    def position(self, axis: int) -> int:
        """Where an outer or inner dimension stands in the partitioned grid."""
        return axis + 1 if axis < self.axes[0] else axis - len(self.axes) - len(self.fused) + 2

    @property
    def fused_steps(self) -> int:
        """How many steps of the fused dimensions make one step of the shared ones: a power of two."""
        return math.prod(self.grid[axis].bound or 1 for axis in self.fused)

    @property
    def static_steps(self) -> int | None:
        """The number of shared steps, where every shared bound is static."""
        bounds = [self.grid[axis].bound for axis in self.axes]
        return math.prod(bound for bound in bounds if bound is not None) if None not in bounds else None

    @property
    def dynamic_axes(self) -> tuple[int, ...]:
        """The shared dimensions with a dynamic bound."""
        return tuple(axis for axis in self.axes if self.grid[axis].bound is None)

    @property
    def step_limit(self) -> int:
        """The most shared steps for which 32-bit arithmetic on step counts can't wrap, in any core's last step."""
        return I32_MAX // self.fused_steps - self.cores

    @property
    def partitioned_grid(self) -> tuple[Dimension, ...]:
        """The new grid: cores, outer dimensions, a core's share, inner dimensions."""
        steps = self.static_steps
        share = None if steps is None else -(-steps // self.cores) * self.fused_steps
        others = {axis: Dimension(self.grid[axis].bound, Semantics.ARBITRARY) for axis in self.outer + self.inner}
        return (
            Dimension(self.cores, Semantics.CORE_PARALLEL),
            *(others[axis] for axis in self.outer),
            Dimension(share, Semantics.ARBITRARY),
            *(others[axis] for axis in self.inner),
        )

    def __str__(self) -> str:
        old = ", ".join(str(dimension) for dimension in self.grid)
        new = ", ".join(str(dimension) for dimension in self.partitioned_grid)
        shared = " and ".join(str(axis) for axis in self.axes)
        return f"({old}) -> ({new}), sharing dimension {shared}"


def fusable(grid: Sequence[Dimension], axes: Sequence[int]) -> tuple[int, ...]:
    """The longest run of dimensions behind `axes` whose bounds are static powers of two, `MOST_FUSED` steps in all."""
    fused: list[int] = []
    steps = 1
    for axis in range(axes[-1] + 1, len(grid)):
        bound = grid[axis].bound
        if bound is None or bound < 1 or bound & (bound - 1) or steps * bound > MOST_FUSED:
            break
        fused.append(axis)
        steps *= bound
    return tuple(fused)
