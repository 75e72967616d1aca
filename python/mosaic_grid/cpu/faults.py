"""What goes wrong while a kernel runs, as data: what did it, how often, and where in the grid at first."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.arrays import Array
from mosaic_grid.cpu.build import Index
from mosaic_grid.cpu.memory import Memory, steps_of
from mosaic_grid.cpu.roots import Kind, Root, title
from mosaic_grid.cpu.steps import Slice
from mosaic_grid.cpu.views import View
from mosaic_grid.ir_types import Value

if TYPE_CHECKING:
    from mosaic_grid.cpu.lowering import Lowering

CAPACITY = 256
"""How many sites are told apart. The last row counts all that are too many."""

_DETAILS = 10
"""How many numbers beside the grid indices are kept of the first time, where everything is recorded; else 2."""


class What(enum.Enum):
    """What can go wrong, and the numbers that are kept of it."""

    OUTSIDE = "touches what is outside of its memory: whether it is known where; then a dimension, the start, how many"
    WINDOW = "wants a block outside of its array: how many dimensions, whether it counts elements, the block's index"
    UNWRITTEN = "reads what nobody wrote: how many elements"
    OUTPUT = "leaves a result unwritten: how many elements, and the index of the first"
    RACE = "touches what another core touches: whether that one wrote, and its indices, -1 where they differ"
    IN_FLIGHT = "uses what a copy is using: whether that one writes it, and the number of its semaphore"
    UNWAITED = "starts a copy that nobody waits for: how much of it the semaphore counts in the end"
    STUCK = "waits for what can't come any more: how much is there, and how much it waits for"


@dataclasses.dataclass(frozen=True)
class Site:
    """Something that one operation may do wrong to some memory; the grid itself, as it moves blocks, has no `op`.

    `writes` says which of both it is, where that makes a difference.
    """

    what: What
    op: str
    root: Root
    location: ir.Location
    writes: bool = False

    @property
    def memory(self) -> str:
        """What messages call the memory."""
        return title(self.root)


@dataclasses.dataclass(frozen=True)
class Fault:
    """What happened at a site: how often; and of the first time the grid indices, and numbers that `What` explains."""

    site: Site
    count: int
    indices: tuple[int, ...]
    details: tuple[int, ...] = ()


class Faults:
    """The record of a launch whose grid has `rank` dimensions.

    It is a root with a row for each site: how often it happened, the grid indices of the first time, and numbers that
    belong to it. The root takes part in the state from `start` on; whoever runs the launch gives its last contents to
    `read`. Without `everything` it is only kept of waits that are never met, of which there are at most `capacity`.
    """

    def __init__(self, rank: int, *, everything: bool = True, capacity: int = CAPACITY) -> None:
        self.rank = rank
        self.everything = everything
        self._details = _DETAILS if everything else 2
        shape = (min(capacity, CAPACITY), 1 + rank + self._details)
        self.root = Root("the record of faults", shape, build.i32_type(), Kind.STATE)
        self.sites: list[Site] = []
        self._rows: dict[tuple[What, ir.Operation | None, str, bool], int] = {}

    def start(self, memory: Memory) -> None:
        """Begins with an empty record."""
        memory.state[self.root] = build.constant(0, self.root.shape, self.root.element)

    def note(
        self,
        low: Lowering,
        predicate: Value,
        what: What,
        op: ir.Operation | None,
        root: Root,
        *,
        writes: bool = False,
        details: Sequence[Index] = (),
        indices: Sequence[Value] | None = None,
    ) -> None:
        """Notes, if the predicate holds when the program is here, that `op` does something wrong to some memory.

        Where there is no `op`, the current location is the site's. `indices` are those of this step of the grid unless
        others are given.
        """
        _, width = self.root.shape
        row = self._row(what, op, root, writes=writes)
        part = View(self.root).slice([row, 0], [1, width])
        numbers: list[Index] = list(low.indices if indices is None else indices)
        numbers += [0] * (self.rank - len(numbers))
        numbers += [*details, *[0] * self._details][: self._details]
        low.memory.modify(part, lambda old: _again(old, predicate, numbers))

    def read(self, record: Array) -> list[Fault]:
        """What the record's contents say, in the order of the program."""
        rows = zip(self.sites, record.tolist(), strict=False)
        split = 1 + self.rank
        return [Fault(site, row[0], tuple(row[1:split]), tuple(row[split:])) for site, row in rows if row[0]]

    def _row(self, what: What, op: ir.Operation | None, root: Root, *, writes: bool) -> int:
        """The row of a site; an operation that is translated more than once has one all the same."""
        key = (what, op, root.name, writes)
        known = self._rows.get(key)
        if known is not None:
            return known
        row = min(len(self.sites), self.root.shape[0] - 1)
        if len(self.sites) <= row:
            location = op.location if op is not None else ir.Location.current
            assert location is not None
            self.sites.append(Site(what, "" if op is None else op.name, root, location, writes))
        self._rows[key] = row
        return row


def joined(left: Value, right: Value) -> Value:
    """One record of two: the faults of both, and of each the first time in `left`, where there is one."""
    rows, width = build.shape_of(left)
    counts, before = (build.slice_(each, [0, 0], [rows, 1]) for each in (left, right))
    happened = build.compare(counts, build.zeros_like(counts), "NE")
    rest = [build.slice_(each, [0, 1], [rows, width - 1]) for each in (left, right)]
    first = build.select(build.broadcast(happened, (rows, width - 1), (0, 1)), *rest)
    return build.concatenate([hlo.add(counts, before), first], 1)


def check_inside(low: Lowering, op: ir.Operation, *views: View, writes: bool = False) -> None:
    """Notes a fault if one of the parts of memory that `op` reads, or `writes`, sticks out of its root."""
    if low.faults is None or not low.faults.everything:
        return
    for view in views:
        beyond = _beyond(view)
        if beyond:
            outside = build.any_of(beyond)
            low.faults.note(low, outside, What.OUTSIDE, op, view.root, writes=writes, details=_where(view))


def _where(view: View) -> list[Index]:
    """The dimension of the root in which a view sticks out, where it starts there, and how many elements it has."""
    steps = steps_of(view) if view.is_static else []
    if not steps or not isinstance(first := steps[0], Slice):
        return []
    found: list[Index] = [0, 0, 0]
    for axis, (offset, size, whole) in enumerate(zip(first.offsets, first.sizes, view.root.shape, strict=True)):
        if isinstance(offset, int) and 0 <= offset <= whole - size:
            continue
        start = build.as_value(offset)
        beyond = [build.compare(start, build.i32(0), "LT"), build.compare(start, build.i32(whole - size), "GT")]
        new: list[Index] = [axis, start, size]
        pairs = zip(map(build.as_value, new), map(build.as_value, found), strict=True)
        found = [build.select(build.any_of(beyond), here, before) for here, before in pairs]
    return [1, *found]


def _beyond(view: View) -> list[Value]:
    """What holds if a view sticks out of its root; of what is known to be inside there is nothing."""
    found: list[Value] = []
    for reach in view.reach:
        if reach is not None:
            room = build.as_value(build.max_index(reach.room, 0))
            found.append(build.compare(build.as_value(reach.extent), room, "GT"))
    shape = view.root.shape
    for step in steps_of(view) if view.is_static else view.steps:
        if isinstance(step, Slice):
            for offset, size, whole in zip(step.offsets, step.sizes, shape, strict=True):
                last = whole - size if view.is_static else whole
                if isinstance(offset, int):
                    found += [] if 0 <= offset <= last else [build.true()]
                else:
                    found += [build.compare(offset, build.i32(0), "LT"), build.compare(offset, build.i32(last), "GT")]
        shape = step.shape
    return found


def _again(row: Value, predicate: Value, numbers: Sequence[Index]) -> Value:
    """A row after it has happened once more, if the predicate holds; `numbers` are kept of the first time."""
    _, width = build.shape_of(row)
    count = build.slice_(row, [0, 0], [1, 1])
    more = hlo.add(count, build.reshape(build.convert(predicate, build.i32_type()), (1, 1)))
    first = hlo.and_(predicate, build.reshape(build.compare(count, build.zeros_like(count), "EQ"), ()))
    new = build.concatenate([build.reshape(build.as_value(number), (1, 1)) for number in numbers], 1)
    rest = build.select(first, new, build.slice_(row, [0, 1], [1, width - 1]))
    return build.concatenate([more, rest], 1)
