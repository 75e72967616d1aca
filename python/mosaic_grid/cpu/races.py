"""Cores that touch the same elements of an array, at least one of them writing: their order is nobody's.

Steps whose indices differ in a dimension that may be shared between cores count as those of different cores, however
many there are. Beside each array that a kernel writes, who wrote an element last and who read it since are kept, as
the number of a core counted from 1; -1 stands for several.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.build import Index
from mosaic_grid.cpu.faults import Faults, What
from mosaic_grid.cpu.indices import row_major
from mosaic_grid.cpu.late import elements_of
from mosaic_grid.cpu.lowering import Lowering
from mosaic_grid.cpu.roots import Kind, Root
from mosaic_grid.cpu.views import View
from mosaic_grid.ir_types import Value


@dataclasses.dataclass(frozen=True)
class _Touched:
    """Who wrote each element of an array last, and who read it since: roots of its shape."""

    writer: Root
    reader: Root


class Races:
    """Who touched the arrays of one launch; `axes` are the dimensions whose steps may be on different cores."""

    def __init__(self, low: Lowering, faults: Faults, axes: Sequence[int]) -> None:
        self._low = low
        self._faults = faults
        self._axes = axes
        self._touched: dict[Root, _Touched] = {}

    def track(self, array: Root) -> None:
        """Begins to watch an array that nobody has touched yet."""
        if self._axes:
            names = (f"who wrote {array.name}", f"who read {array.name}")
            roots = [Root(name, array.shape, build.i32_type(), Kind.STATE) for name in names]
            self._touched[array] = _Touched(*roots)
            for root in roots:
                self._low.memory.state[root] = build.constant(0, root.shape, root.element)
                self._low.memory.rewritten.add(root)

    def tracks(self, array: Root) -> bool:
        """Whether an array is watched."""
        return array in self._touched

    def state_of(self, array: Root) -> tuple[Root, ...]:
        """The roots that change when an array is touched."""
        touched = self._touched.get(array)
        return (touched.writer, touched.reader) if touched is not None else ()

    def reads(self, op: ir.Operation | None, view: View, unless: Value | None = None) -> None:
        """This step's core reads a view of known shape; `op` is `None` for the grid, which moves a block.

        Nothing is read if the predicate `unless` holds.
        """
        where = elements_of(view)
        if view.root not in self._touched or where is None:
            return
        touched, memory = self._touched[view.root], self._low.memory
        own = build.splat(self._own(), where.shape)
        writer = _others(memory.read(where.on(touched.writer), fenced=False), own)
        if unless is not None:
            writer = build.select(unless, build.zeros_like(writer), writer)
        self._note(op, view.root, writer, build.zeros_like(writer), writes=False)

        def change(reader: Value) -> Value:
            several = build.constant(-1, where.shape, build.i32_type())
            after = build.select(_is_none(_others(reader, own)), own, several)
            return after if unless is None else build.select(unless, reader, after)

        memory.modify(where.on(touched.reader), change)

    def writes(self, op: ir.Operation | None, view: View, only: Value | None = None) -> None:
        """This step's core writes a view of known shape, all of it or `only` where that holds."""
        where = elements_of(view)
        if view.root not in self._touched or where is None:
            return
        if only is None:
            only = build.constant(1, where.shape, build.i1_type())
        if build.shape_of(only) != where.shape:
            return  # scattered bits of other elements
        touched, memory = self._touched[view.root], self._low.memory
        own = build.splat(self._own(), where.shape)
        before = [memory.read(where.on(root)) for root in (touched.writer, touched.reader)]
        writer, reader = (build.select(only, _others(each, own), build.zeros_like(own)) for each in before)
        self._note(op, view.root, writer, reader, writes=True)
        memory.write(where.on(touched.writer), build.select(only, own, before[0]))
        memory.write(where.on(touched.reader), build.select(only, build.zeros_like(own), before[1]))

    def _own(self) -> Value:
        """The number of this step's core."""
        low = self._low
        number = row_major([low.indices[axis] for axis in self._axes], [low.bounds[axis] for axis in self._axes])
        return build.as_value(build.add_index(number, 1))

    def _note(self, op: ir.Operation | None, array: Root, writer: Value, reader: Value, *, writes: bool) -> None:
        """Notes a fault where another core wrote or read some element: its number there, 0 elsewhere."""
        wrote, read = (_any_core(each) for each in (writer, reader))
        is_writer = build.compare(wrote, build.i32(0), "NE")
        other = build.select(is_writer, wrote, read)
        details = [build.convert(is_writer, build.i32_type()), *self._indices(other)]
        raced = build.compare(other, build.i32(0), "NE")
        self._faults.note(self._low, raced, What.RACE, op, array, writes=writes, details=details)

    def _indices(self, core: Value) -> list[Index]:
        """The grid indices that the core of a number has in common; -1 in the other dimensions, and for several."""
        low = self._low
        known = build.compare(core, build.i32(0), "GT")
        rest = hlo.subtract(core, build.i32(1))
        found: dict[int, Value] = {}
        for axis in reversed(self._axes):
            bound = build.as_value(low.bounds[axis])
            found[axis] = build.select(known, hlo.remainder(rest, bound), build.i32(-1))
            rest = hlo.divide(rest, bound)
        return [found.get(axis, -1) for axis in range(len(low.bounds))]


def _others(core: Value, own: Value) -> Value:
    """The number of the core where that is another one, else 0."""
    return build.select(build.compare(core, own, "NE"), core, build.zeros_like(core))


def _is_none(core: Value) -> Value:
    return build.compare(core, build.zeros_like(core), "EQ")


def _any_core(cores: Value) -> Value:
    """One of the cores: the greatest number, -1 if there are only several, 0 if there is none."""
    axes, lowest = list(range(len(build.shape_of(cores)))), build.i32(-(2**31))
    most = build.reduce(cores, axes, lowest, hlo.maximum)
    least = build.reduce(cores, axes, build.i32(0), hlo.minimum)
    result: Value = build.select(build.compare(most, build.i32(0), "GT"), most, least)
    return result
