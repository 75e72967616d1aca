"""What a partitioned kernel must know of its bounds: a small i32 table, its last scalar-prefetch operand, in SMEM.

The launch computes it once, so that a grid step pays a load instead of arithmetic. Two cores need only the number of
the last step of all, since the first core's loop ends at its share's end; more cores need where each share begins.
"""

from __future__ import annotations

import dataclasses

from mosaic_grid.partition.split import Split


@dataclasses.dataclass(frozen=True)
class Table:
    """The entries of the table, in order: `last`, or `first 0` ... `first cores`; then the bounds the kernel asks for.

    Steps are counted over the shared and fused dimensions together. `first c + 1` is one past the last step of core c.
    """

    last: bool
    firsts: int
    bounds: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of i32 entries; a table of none is no operand at all."""
        return int(self.last) + self.firsts + len(self.bounds)

    @property
    def first_at(self) -> int:
        """The index of `first 0`."""
        return int(self.last)

    def bound_at(self, axis: int) -> int:
        """The index of a shared dimension's bound."""
        return int(self.last) + self.firsts + self.bounds.index(axis)


def table_of(split: Split, asked: frozenset[int]) -> Table:
    """The table for a split of a kernel that asks for the bounds of the shared dimensions `asked`.

    Dividing a step count by the bound of every shared dimension but the first gives the indices, so these are in it
    too.
    """
    dynamic = split.dynamic_axes
    guarded = bool(dynamic) and not split.even
    bounds = tuple(axis for axis in dynamic if axis in asked or axis in split.axes[1:])
    return Table(
        last=guarded and split.cores == 2,
        firsts=split.cores + 1 if guarded and split.cores > 2 else 0,
        bounds=bounds,
    )
