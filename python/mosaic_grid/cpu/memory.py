"""Reading and writing through views.

XLA updates a tensor in place only where nothing reads later what it held before. Barriers see to that: a value that was
read is there before the tensor goes on to whoever writes it next, and a reshape of a whole root stays a relabelling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from jaxlib.mlir import ir

from mosaic_grid.cpu import build
from mosaic_grid.cpu.bits import repack
from mosaic_grid.cpu.contents import Contents
from mosaic_grid.cpu.extents import by_parts
from mosaic_grid.cpu.normal import normalised
from mosaic_grid.cpu.roots import Root
from mosaic_grid.cpu.steps import Bitcast, Numbers, Reshape, Slice, Step
from mosaic_grid.cpu.stored import numbers, stored, stored_element
from mosaic_grid.cpu.views import View
from mosaic_grid.ir_types import Value

if TYPE_CHECKING:
    from mosaic_grid.cpu.watch import Watch

Used: TypeAlias = Callable[[Value], Value]
"""Of numbers of all elements of a view those of the elements that an operation uses; zeros may be among them."""


class Memory(Contents):
    """The state of all roots at one point of the program.

    `rewritten` are those that the kernel writes; `watch`, if there is one, is told of every access.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rewritten: set[Root] = set()
        self.watch: Watch | None = None

    def read(self, view: View, *, fenced: bool = True, used: Used | None = None) -> Value:
        """The contents of a view of known shape.

        `fenced=False` is for a value that only goes into the next write of the same root. Where not all of it is used,
        `used` tells the watch which elements are.
        """
        if self.watch is not None:
            self.watch.read(view, used)
        return self._read(view, fenced=fenced)

    def _read(self, view: View, *, fenced: bool) -> Value:
        steps = steps_of(view)
        state = self._settled(view.root)
        value = _follow(state, steps)
        reshaped = any(isinstance(step, Slice) for step in steps) and not isinstance(steps[0], Slice)
        if (fenced or reshaped) and view.root in self.rewritten and value is not state:
            value, self.state[view.root] = build.barrier(value, state)
        return value

    def whole(self, root: Root) -> Value:
        """The contents of a root, unfenced."""
        return numbers(self.state[root], root.element)

    def write(self, view: View, part: Value) -> None:
        """Replaces the contents of a view of known shape."""
        if self.watch is not None:
            self.watch.wrote(view)
        self._modify(view, lambda _: part)

    def modify(self, view: View, change: Callable[[Value], Value]) -> None:
        """Replaces the contents of a view of known shape by what `change` makes of them."""
        if self.watch is not None:
            self.watch.modified(view, change)
        self._modify(view, change)

    def _modify(self, view: View, change: Callable[[Value], Value]) -> None:
        steps = steps_of(view)
        state = self._settled(view.root)
        if len(steps) > 1 and isinstance(steps[0], Reshape):
            [whole] = build.barrier(build.reshape(state, steps[0].shape))
            [whole] = build.barrier(_replace(whole, steps[1:], change))
            self.state[view.root] = build.reshape(whole, view.root.shape)
        else:
            self.state[view.root] = _replace(state, steps, change)

    def copy(self, source: View, target: View) -> None:
        """Copies as many elements as both views have and there is memory for: what a DMA does.

        What the target has beyond them stays as it is. The cost is that of the elements that are copied.
        """
        beside = self.watch.changes(source.root, target.root) if self.watch is not None else []
        by_parts(self, source, target, self._move, [target.root, *beside])
        self.order(target.root, source.root)

    def order(self, first: Root, second: Root) -> None:
        """Makes later writes of `second` wait for what `first` holds now, part of which was read from it."""
        if second in self.rewritten and first is not second:
            self.state[first], self.state[second] = build.barrier(self.state[first], self.state[second])

    def _settled(self, root: Root) -> Value:
        """The contents of a root. What has just been updated in place stands behind a barrier.

        XLA would otherwise make the update a second time, in the operation that reads a part of its result; for that it
        needs, and so copies, what was there before.
        """
        state = self.state[root]
        if isinstance(state.owner, ir.Operation | ir.OpView) and state.owner.name == "stablehlo.dynamic_update_slice":
            [self.state[root]] = build.barrier(state)
        return self.state[root]

    def _move(self, source: View, target: View) -> None:
        if self.watch is not None:
            self.watch.copied(source, target)
        value = self._read(source, fenced=source.root is target.root)
        self._modify(target, lambda _: value)


def steps_of(view: View) -> list[Step]:
    """The steps by which a view of known shape is read and written."""
    assert view.is_static, "a view of dynamic size has to be cut before it is read or written"
    root = view.root
    steps = normalised(root.shape, root.element, view.steps)
    if stored_element(root.element) != root.element:
        at = next((number for number, step in enumerate(steps) if isinstance(step, Bitcast)), len(steps))
        steps.insert(at, Numbers(root.element, steps[at - 1].shape if at else root.shape))
    return steps


def _follow(value: Value, steps: Sequence[Step]) -> Value:
    for step in steps:
        value = _one(value, step)
    return value


def _one(value: Value, step: Step) -> Value:
    if isinstance(step, Slice):
        return build.dynamic_slice(value, step.offsets, step.sizes)
    if isinstance(step, Reshape):
        return build.reshape(value, step.shape)
    if isinstance(step, Numbers):
        return numbers(value, step.element)
    return repack(value, step.element, step.shape)


def _replace(value: Value, steps: Sequence[Step], change: Callable[[Value], Value]) -> Value:
    """`value` with what `change` makes of the part to which the steps lead in its place."""
    if not steps:
        return change(value)
    step, rest = steps[0], steps[1:]
    inner = _replace(_one(value, step), rest, change)
    if isinstance(step, Slice):
        return build.update(value, inner, step.offsets)
    if isinstance(step, Reshape):
        return build.reshape(inner, build.shape_of(value))
    if isinstance(step, Numbers):
        return stored(inner)
    return repack(inner, build.element_of(value), build.shape_of(value))
