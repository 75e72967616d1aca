"""The element and the grid indices of a step, where one dimension counts the steps of all elements of a batch.

Index maps are functions of the step and of tables in SMEM only, so nothing can be carried from one step to the next for
them. Either the table has the element of every step, or the element is found by bisection in the first steps of all
elements, with a load for each halving.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from jaxlib.mlir import ir

from mosaic_grid.grid import Dimension
from mosaic_grid.ir_types import Value
from mosaic_grid.partition import kernel_scalars as scalars


@dataclasses.dataclass(frozen=True)
class Table:
    """The entries: the elements of the first `steps` steps, where the kernel has no more; the first step of each
    element; then for each of `axes`, whose bounds are dynamic, the bound of each element.

    With `steps` of 0 there are no first entries, and the first steps are followed by the largest i32 up to a power of
    two of them, for the bisection.
    """

    elements: int
    steps: int
    axes: tuple[int, ...]

    @property
    def starts(self) -> int:
        """How many entries say where elements begin."""
        return self.elements if self.steps else 1 << (self.elements - 1).bit_length()

    @property
    def size(self) -> int:
        """The number of i32 entries."""
        return self.steps + self.starts + len(self.axes) * self.elements

    @property
    def type(self) -> ir.Type:
        """The prefetch operand in the kernel."""
        return ir.Type.parse(f"memref<{self.size}xi32, #tpu.memory_space<smem>>")

    def bounds_at(self, axis: int) -> int:
        """The entry with the first element's bound."""
        return self.steps + self.starts + self.axes.index(axis) * self.elements


class Elements:
    """Computes, at the current insertion point, which element a step is of; `grid` are the dimensions counted with it.

    An element without a step begins where the next one does, and the last that begins at or before the step is its
    element.
    """

    def __init__(self, table: Table, grid: Sequence[Dimension], step: Value, entries: Value) -> None:
        self._table, self._grid, self._entries = table, grid, entries
        if table.steps:
            self.element: Value = self._entry(0, step)
            start = self._entry(table.steps, self.element)
        else:
            self.element, start = self._bisect(step)
        self._within = scalars.subtract(step, start)

    def _bisect(self, step: Value) -> tuple[Value, Value]:
        """The last element that begins at or before a step, and the step at which it begins."""
        element, start = scalars.constant(0), scalars.constant(0)
        distance = self._table.starts
        while distance > 1:
            distance //= 2
            candidate = scalars.add(element, scalars.constant(distance))
            begins = self._entry(0, candidate)
            reached = scalars.compare("sle", begins, step)
            element = scalars.select(reached, candidate, element)
            start = scalars.select(reached, begins, start)
        return element, start

    def indices(self, needed: frozenset[int]) -> dict[int, Value]:
        """The indices of the counted dimensions `needed`: the step within the element, taken apart."""
        found: dict[int, Value] = {}
        step = self._within
        for axis in reversed(range(len(self._grid))):
            if not needed & frozenset(range(axis + 1)):
                break
            if not axis:
                found[axis] = step
            elif self._grid[axis].bound == 1:
                found[axis] = scalars.constant(0)
            else:
                bound = self.bound(axis)
                quotient = scalars.divide(step, bound)
                found[axis] = scalars.subtract(step, scalars.multiply(quotient, bound))
                step = quotient
        return found

    def bound(self, axis: int) -> Value:
        """The element's bound of a counted dimension."""
        static = self._grid[axis].bound
        if static is not None:
            return scalars.constant(static)
        return self._entry(self._table.bounds_at(axis), self.element)

    def _entry(self, first: int, number: Value) -> Value:
        """The entry `number` behind the one at `first`."""
        place = scalars.to_index(number)
        return scalars.load(self._entries, scalars.add(place, scalars.index(first)) if first else place)
