"""Watching a kernel while it runs: what the memory, the grid and the rules tell of what they do, and to whom.

The memory tells of every access of an operation; the grid of blocks that it moves, of steps, and of memory that begins
or ends. `Masks`, `Races` and `Unwaited` keep books beside memory, in roots of their own, and `Faults` what they find.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.build import Index
from mosaic_grid.cpu.compared import telling_numbers
from mosaic_grid.cpu.extents import by_parts
from mosaic_grid.cpu.faults import Faults, What
from mosaic_grid.cpu.inflight import InFlight
from mosaic_grid.cpu.masks import Masks, probes, same_bits
from mosaic_grid.cpu.memory import Used
from mosaic_grid.cpu.poison import Poison
from mosaic_grid.cpu.races import Races
from mosaic_grid.cpu.roots import Kind, Root
from mosaic_grid.cpu.unwaited import Unwaited
from mosaic_grid.cpu.views import View
from mosaic_grid.grid import Semantics
from mosaic_grid.ir_types import Value

if TYPE_CHECKING:
    from mosaic_grid.cpu.buffers import Buffer
    from mosaic_grid.cpu.grid import Core
    from mosaic_grid.cpu.lowering import Lowering
    from mosaic_grid.cpu.operands import Array
    from mosaic_grid.program import Kernel


class Watch:
    """The watch over one launch of a kernel, at `location`.

    `codes` and `numbers` are those of `Poison`.
    """

    def __init__(
        self,
        low: Lowering,
        faults: Faults,
        kernel: Kernel,
        location: ir.Location,
        codes: Value,
        numbers: Iterator[int],
    ) -> None:
        self.low = low
        self.faults = faults
        self.location = location
        self.masks = Masks(low.memory)
        self.poison = Poison(codes, numbers, low.options)
        self.telling = telling_numbers(kernel.body)
        self.shared = [n for n, d in enumerate(kernel.grid) if d.semantics is not Semantics.ARBITRARY and d.bound != 1]
        self._races = Races(low, faults, self.shared)
        self._unwaited = Unwaited(low, faults)
        self.in_flight = InFlight(low, faults, kernel.body)
        self._before = Root("the grid indices of the step before", (len(kernel.grid),), build.i32_type(), Kind.GRID)
        self.inputs: set[Root] = set()
        self._shapes: dict[Root, tuple[int, ...]] = {}
        self.private: list[Root] = []
        self.axes: list[int] = []

    # what the memory tells

    def read(self, view: View, used: Used | None) -> None:
        """An operation reads a view of known shape, of which it uses all or what `used` makes of it."""
        op = self.low.op
        if op is None:
            return
        missing = self.masks.missing(view)
        if missing is not None:
            count = _count(missing, used)
            some = build.compare(count, build.i32(0), "GT")
            self.faults.note(self.low, some, What.UNWRITTEN, op, view.root, details=[count])
        if used is None:
            self._races.reads(op, view)
        self.in_flight.used(op, view, used, writes=False)

    def wrote(self, view: View) -> None:
        """An operation writes a view of known shape."""
        if self.low.op is not None:
            self.masks.wrote(view)
            self._races.writes(self.low.op, view)
            self.in_flight.used(self.low.op, view, None, writes=True)

    def modified(self, view: View, change: Callable[[Value], Value]) -> None:
        """An operation writes some elements of a view, or adds to them."""
        if self.low.op is None:
            return
        self.masks.modified(view, change)
        if self._races.tracks(view.root) or self.in_flight.tracks(view.root):
            same = hlo.and_(*[same_bits(change(old), old) for old in probes(view)])
            self._races.writes(self.low.op, view, hlo.not_(same))
            self.in_flight.used(
                self.low.op, view, lambda marks: build.select(same, build.zeros_like(marks), marks), writes=True
            )

    def copied(self, source: View, target: View) -> None:
        """An operation copies one view of known shape to another."""
        self.masks.copied(source, target)
        if self.low.op is not None:
            self._races.reads(self.low.op, source)
            self._races.writes(self.low.op, target)
            self.in_flight.used(self.low.op, source, None, writes=False)
            self.in_flight.used(self.low.op, target, None, writes=True)

    def changes(self, *roots: Root) -> list[Root]:
        """What changes when an operation copies between these roots."""
        beside = [*self.low.memory.with_shadows(roots), *(r for root in roots for r in self._races.state_of(root))]
        return [*(root for root in beside if root not in roots), self.faults.root]

    def started(self, semaphore: View, source: View, target: View) -> None:
        """An operation has started a copy that this semaphore counts, between views of one shape."""
        if self.low.op is not None:
            self._unwaited.added(self.low.op, semaphore)
            beside = self.changes(source.root, target.root)
            by_parts(self.low.memory, source, target, lambda a, b: self.in_flight.started(semaphore, a, b), beside)

    def started_scattered(self, semaphore: View, picked: View, *, writes: bool) -> None:
        """The same of one between rows anywhere in an array and `picked` ones, which it `writes` or else reads."""
        if self.low.op is not None:
            self._unwaited.added(self.low.op, semaphore)
            self.in_flight.started(semaphore, None if writes else picked, picked if writes else None)

    def signalled(self, semaphore: View) -> None:
        """An operation has added to a semaphore."""
        if self.low.op is not None:
            self._unwaited.added(self.low.op, semaphore)

    def waited(self, semaphore: View) -> None:
        """An operation has waited for a semaphore."""
        self.in_flight.waited(semaphore)

    # what the grid tells

    def prepare(self, arrays: Sequence[Array], blank: Sequence[Array], core: Core, memrefs: Iterable[Value]) -> None:
        """Before the first core starts.

        `blank` are those of the arrays that nobody has written yet; `memrefs` are the kernel's arguments.
        """
        state, changed = self.low.memory.state, self.low.memory.rewritten
        self._shapes = {array.root: array.shape for array in arrays}
        for array in arrays:
            root, padded = array.root, array.root.shape != array.shape
            if not padded and root not in changed:
                continue
            self.masks.track(root)
            if array in blank:
                self.masks.set(root, written=False)
                state[root] = self.poison.of(root, root.shape)
            else:
                self.masks.set_inside(root, array.low, array.shape)
                state[root] = self._padded(array)
            if root in changed:
                self._races.track(root)
        for buffer in core.buffers:
            if not buffer.operand.is_output and not any(a.root is buffer.operand.array for a in blank):
                self.inputs.add(buffer.root)
            if buffer.operand.is_output or self.masks.tracks(buffer.operand.array):
                self.masks.track(buffer.root)
                self.masks.set(buffer.root, written=False)
        for memref in memrefs:
            self.in_flight.track(memref, self.low.view(memref).root)
        for root in core.scratch:
            self.fresh(root)
        self.private = [root for root in core.scratch if root.kind is Kind.SCRATCH]
        self.axes = [axis for axis in self.shared if axis in core.axes]
        if self.private and self.axes:
            self.low.memory.shadows[core.counters[0]] = (self._before,)

    def begin(self) -> None:
        """A core begins, with the scratch that `fresh` gave it."""
        self.low.memory.state[self._before] = build.constant(-1, self._before.shape, self._before.element)

    def fresh(self, root: Root) -> Value:
        """What new memory holds, which nobody has written."""
        if root.kind is Kind.SEMAPHORE:
            self._unwaited.start(root)
            return build.constant(0, root.shape, root.element)
        if root.kind is Kind.SCRATCH and not self.masks.tracks(root):
            self.masks.track(root)
        self.masks.set(root, written=False)
        self.in_flight.forget(root)
        return self.poison.of(root, root.shape)

    def allocated(self, memref: Value, root: Root) -> None:
        """An operation has allocated memory, which `fresh` gave its contents."""
        self.in_flight.track(memref, root)

    def step(self, buffers: Sequence[Buffer], places: Sequence[Sequence[Index]]) -> None:
        """A step begins whose blocks have these indices."""
        if self.private and self.axes:
            self._separate()
        with self.location:
            for buffer, place in zip(buffers, places, strict=True):
                outside = self._outside(buffer, place)
                part = buffer.part(place)
                if not buffer.operand.is_output:
                    self._races.reads(None, part, outside)
                else:
                    inside = None if outside is None else build.splat(hlo.not_(outside), part.shape)
                    self._races.writes(None, part, inside)

    def end(self, *roots: Root) -> None:
        """The memory of these roots ends here."""
        for root in roots:
            self._unwaited.end(root)

    def shape_of(self, array: Root) -> tuple[int, ...]:
        """The shape of an array without what is around it."""
        return self._shapes[array]

    def results(self, arrays: Sequence[Array]) -> None:
        """The last core is done, and these arrays are what the launch returns."""
        with self.location:
            for array in arrays:
                missing = self.masks.missing(View(array.root).slice(array.low, array.shape))
                if missing is None or not math.prod(array.shape):
                    continue
                count, first = _count(missing), _first(missing)
                some = build.compare(count, build.i32(0), "GT")
                self.faults.note(self.low, some, What.OUTPUT, None, array.root, details=[count, *first], indices=[])

    def _separate(self) -> None:
        """Makes scratch fresh where this step may be on another core than the one before."""
        state = self.low.memory.state
        now = build.concatenate([build.reshape(index, (1,)) for index in self.low.indices], 0)
        moved = build.compare(now, state[self._before], "NE")
        elsewhere = build.any_of([build.reshape(build.slice_(moved, [axis], [1]), ()) for axis in self.axes])
        for root in self.private:
            state[root] = build.select(elsewhere, self.poison.of(root, root.shape), self.low.memory.whole(root))
            self.masks.forget_if(root, elsewhere)
        state[self._before] = now

    def _padded(self, array: Array) -> Value:
        """The array in its root, with what is around it chosen by its code."""
        root = array.root
        whole = self.low.memory.whole(root)
        inner = build.slice_(whole, array.low, array.shape)
        high = [size - inside - low for size, inside, low in zip(root.shape, array.shape, array.low, strict=True)]
        if not any((*array.low, *high)):
            return whole
        return build.pad(inner, array.low, high, self.poison.of(root, ()))

    def _outside(self, buffer: Buffer, place: Sequence[Index]) -> Value | None:
        """Notes a block that isn't in its array; one that reaches beyond the end is, where blocks are counted.

        Returns what holds of such a block: it touches nothing, wherever the simulation puts it.
        """
        block, found = buffer.block, list[Value]()
        for axis, (start, size) in enumerate(zip(block.offsets(place), block.shape, strict=True)):
            whole = self._shapes[buffer.operand.array][axis]
            last = block.low[axis] + whole + block.high[axis] - size if block.in_elements else whole - 1
            found += _beyond(start, last)
        if not found:
            return None
        details = [len(place), int(block.in_elements), *place]
        outside, root, writes = build.any_of(found), buffer.root, buffer.operand.is_output
        self.faults.note(self.low, outside, What.WINDOW, None, root, writes=writes, details=details)
        return outside


def _beyond(start: Index, last: int) -> list[Value]:
    """What holds if a start is negative or behind the last that may be; of one that is known to be right, nothing."""
    last = max(last, 0)
    if isinstance(start, int):
        return [] if 0 <= start <= last else [build.true()]
    return [build.compare(start, build.i32(0), "LT"), build.compare(start, build.i32(last), "GT")]


def _count(missing: Value, used: Used | None = None) -> Value:
    ones = build.convert(missing, build.i32_type())
    ones = ones if used is None else used(ones)
    return build.reduce(ones, range(len(build.shape_of(ones))), build.i32(0), hlo.add)


def _first(missing: Value) -> list[Value]:
    """The index of the first element that is set, in row-major order."""
    shape = build.shape_of(missing)
    total = math.prod(shape)
    flat = build.reshape(missing, (total,))
    places = build.select(flat, build.iota((total,), 0), build.constant(total, (total,), build.i32_type()))
    rest = build.reduce(places, [0], build.i32(total), hlo.minimum)
    indices: list[Value] = []
    for size in reversed(shape):
        indices.insert(0, hlo.remainder(rest, build.i32(size)))
        rest = hlo.divide(rest, build.i32(size))
    return indices
