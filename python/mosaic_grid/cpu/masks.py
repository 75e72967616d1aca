"""Which elements of memory hold something that was written: a mask beside each root for which that is a question.

A mask has an integer as wide as an element for each element, all of whose bits are set where it was written: so a view
of another width has its mask in the same way. Copies copy masks. What isn't tracked counts as written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jaxlib.mlir import ir

from mosaic_grid.cpu import build
from mosaic_grid.cpu.bits import width_of
from mosaic_grid.cpu.fill import has_nan
from mosaic_grid.cpu.memory import Memory
from mosaic_grid.cpu.roots import Kind, Root
from mosaic_grid.cpu.steps import Bitcast, Step
from mosaic_grid.cpu.views import View
from mosaic_grid.ir_types import Value


class Masks:
    """The masks of one launch."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._masks: dict[Root, Root] = {}
        self._sources: dict[Root, set[Root]] = {}

    def track(self, root: Root) -> None:
        """Begins with a mask for a root; it has to be set before anything is done to the root."""
        mask = Root(f"what of {root.name} was written", root.shape, _bits(root.element), Kind.STATE)
        self._masks[root] = mask
        self.memory.shadows[root] = (*self.memory.shadows.get(root, ()), mask)
        self.memory.rewritten.add(mask)

    def tracks(self, root: Root) -> bool:
        """Whether a root has a mask."""
        return root in self._masks

    def set(self, root: Root, *, written: bool) -> None:
        """Says that all of a root is written, or nothing."""
        if root in self._masks:
            mask = self._masks[root]
            self.memory.state[mask] = _all(mask.shape, mask.element) if written else _none(mask.shape, mask.element)

    def set_inside(self, root: Root, low: Sequence[int], shape: Sequence[int]) -> None:
        """Says that the box of this shape at `low` is written, and nothing else."""
        if root in self._masks:
            mask = self._masks[root]
            high = [whole - size - before for whole, size, before in zip(root.shape, shape, low, strict=True)]
            self.memory.state[mask] = build.pad(_all(shape, mask.element), low, high, _none((), mask.element))

    def forget_if(self, root: Root, predicate: Value) -> None:
        """Says that nothing of a root is written any more, if the predicate holds."""
        if root in self._masks:
            mask = self._masks[root]
            old = self.memory.whole(mask)
            self.memory.state[mask] = build.select(predicate, build.zeros_like(old), old)

    def missing(self, view: View) -> Value | None:
        """Where a view of known shape has elements that were not written; `None` where it isn't tracked."""
        mask = self._of(view)
        if mask is None:
            return None
        part = self.memory.read(mask, fenced=False)
        return build.compare(part, _all(build.shape_of(part), mask.element), "NE")

    def wrote(self, view: View) -> None:
        """All elements of a view were written."""
        mask = self._of(view)
        if mask is not None:
            self.memory.write(mask, _all(mask.shape, mask.element))

    def modified(self, view: View, change: Callable[[Value], Value]) -> None:
        """The elements of a view that don't depend on what was there before were written."""
        mask = self._of(view)
        if mask is not None:
            outcomes = [change(old) for old in probes(view)]
            settled = same_bits(*outcomes)
            full = _all(mask.shape, mask.element)
            self.memory.modify(mask, lambda old: build.select(settled, full, old))

    def copied(self, source: View, target: View) -> None:
        """The target now has the elements of the source, of the same shape."""
        into, out = self._of(target), self._of(source)
        if into is None:
            return
        if out is None:
            self.wrote(target)
            return
        self._sources.setdefault(target.root, set()).add(source.root)
        self.memory.write(into, self.memory.read(out))

    def origins(self, root: Root) -> list[Root]:
        """The roots that what is unwritten in a root may have been copied from, itself included."""
        found = {root: None}
        pending = [root]
        while pending:
            for source in sorted(self._sources.get(pending.pop(), ()), key=list(self._masks).index):
                if source not in found:
                    found[source] = None
                    pending.append(source)
        return list(found)

    def _of(self, view: View) -> View | None:
        if view.root not in self._masks:
            return None
        steps = tuple(map(_masked, view.steps))
        return View(self._masks[view.root], steps, view.reach)


def probes(view: View) -> list[Value]:
    """Two contents of a view that differ in every element, whatever finite number is added to both."""
    element = view.element
    other = float("nan") if build.is_float(element) and has_nan(element) else 1
    return [build.constant(number, view.shape, element) for number in (0, other)]


def same_bits(left: Value, right: Value) -> Value:
    """Where two tensors of one type hold the same bits."""
    kind = _bits(build.element_of(left))
    return build.compare(build.bitcast(left, kind), build.bitcast(right, kind), "EQ")


def _masked(step: Step) -> Step:
    return Bitcast(_bits(step.element), step.shape) if isinstance(step, Bitcast) else step


def _bits(element: ir.Type) -> ir.Type:
    return ir.IntegerType.get_signless(width_of(element))


def _all(shape: Sequence[int], element: ir.Type) -> Value:
    return build.constant(True if width_of(element) == 1 else -1, shape, element)


def _none(shape: Sequence[int], element: ir.Type) -> Value:
    return build.constant(0, shape, element)
