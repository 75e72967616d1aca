"""Views: a memref is a root and the steps that lead to a part of it. No memory is touched here."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from jaxlib.mlir import ir

from mosaic_grid.cpu.bits import packed_axis, width_of
from mosaic_grid.cpu.build import Index, add_index, min_index, multiply_index
from mosaic_grid.cpu.indices import divide, known, subtract
from mosaic_grid.cpu.roots import Root
from mosaic_grid.cpu.steps import Bitcast, Reshape, Slice, Step


@dataclasses.dataclass(frozen=True)
class Reach:
    """The size of a dimension at run time: `extent` is what the kernel says, `room` how much memory is there."""

    extent: Index
    room: Index


@dataclasses.dataclass(frozen=True)
class View:
    """A memref as the kernel sees it.

    `reach` has an entry for each dimension, `None` where the size is known; it is empty if all are.
    """

    root: Root
    steps: tuple[Step, ...] = ()
    reach: tuple[Reach | None, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, with upper bounds for dynamic dimensions."""
        return self.steps[-1].shape if self.steps else self.root.shape

    @property
    def element(self) -> ir.Type:
        """The element type."""
        return next((step.element for step in reversed(self.steps) if isinstance(step, Bitcast)), self.root.element)

    @property
    def extents(self) -> tuple[Index, ...]:
        """The sizes at run time, as the kernel says."""
        pairs = zip(self.shape, self.reach or [None] * len(self.shape), strict=True)
        return tuple(size if reach is None else reach.extent for size, reach in pairs)

    @property
    def available(self) -> tuple[Index, ...]:
        """The sizes at run time, as far as there is memory; negative where a view begins beyond its end."""
        pairs = zip(self.shape, self.reach or [None] * len(self.shape), strict=True)
        return tuple(size if reach is None else min_index(reach.extent, reach.room) for size, reach in pairs)

    @property
    def is_static(self) -> bool:
        """Whether the shape is known."""
        return not any(self.reach)

    def slice(self, offsets: Sequence[Index], sizes: Sequence[int], extents: Sequence[Index] | None = None) -> View:
        """The part of this size at `offsets`; where an extent isn't known, its size is an upper bound.

        Of known size, it has to be inside: where it starts beyond the end, it is moved back as in `dynamic_slice`.
        """
        places = tuple(known(offset) for offset in offsets)
        limits = [known(extent) for extent in extents] if extents is not None else list(sizes)
        rooms = [reach.room if reach else size for size, reach in zip(self.shape, self._reaches(), strict=True)]
        shape = tuple(limit if isinstance(limit, int) else size for limit, size in zip(limits, sizes, strict=True))
        reach = tuple(
            None if isinstance(limit, int) else Reach(limit, subtract(room, place))
            for limit, room, place in zip(limits, rooms, places, strict=True)
        )
        steps = self.steps
        if steps and isinstance(last := steps[-1], Slice):
            places, steps = tuple(map(add_index, last.offsets, places)), steps[:-1]
        open_ = any(reach)
        return View(self.root, (*steps, Slice(places, shape, tuple(limits) if open_ else ())), reach if open_ else ())

    def squeeze(self, axes: Sequence[int]) -> View:
        """Without the dimensions `axes`, whose size is 1."""
        kept = [axis for axis in range(len(self.shape)) if axis not in axes]
        reach = self._reaches()
        left = tuple(reach[axis] for axis in kept)
        return self._step(Reshape(tuple(self.shape[axis] for axis in kept)), left)

    def reshape(self, shape: Sequence[int]) -> View:
        """The same elements in another shape. The view's own has to be known."""
        assert self.is_static, "a view of dynamic size can't be reshaped"
        return self._step(Reshape(tuple(shape)), ())

    def bitcast(self, element: ir.Type, shape: Sequence[int]) -> View:
        """The same bits as another type; of another width, the shape differs in the dimension that is packed."""
        before, after = width_of(self.element), width_of(element)
        if before == after and self.shape != tuple(shape):
            return self.reshape(shape).bitcast(element, shape)
        reach = list(self._reaches())
        axis = packed_axis(self.shape, shape)
        packed = None if axis is None else reach[axis]
        if axis is not None and packed is not None:
            extent, room = (_repacked(size, before, after) for size in (packed.extent, packed.room))
            reach[axis] = Reach(extent, room)
        return self._step(Bitcast(element, tuple(shape)), tuple(reach))

    def on(self, root: Root) -> View:
        """The same part of another root, of the same shape and element type."""
        return dataclasses.replace(self, root=root)

    def _reaches(self) -> tuple[Reach | None, ...]:
        return self.reach or (None,) * len(self.shape)

    def _step(self, step: Reshape | Bitcast, reach: tuple[Reach | None, ...]) -> View:
        if step.shape == self.shape and (isinstance(step, Reshape) or step.element == self.element):
            return self
        joined = isinstance(step, Reshape) and self.steps and isinstance(self.steps[-1], Reshape)
        steps = self.steps[:-1] if joined else self.steps
        return View(self.root, (*steps, step), reach if any(reach) else ())


def _repacked(size: Index, before: int, after: int) -> Index:
    """How many elements of `after` bits `size` elements of `before` bits make, the last one whole."""
    return multiply_index(size, before // after) if before > after else divide(size, after // before)
