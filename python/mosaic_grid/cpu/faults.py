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
from mosaic_grid.cpu.memory import Memory
from mosaic_grid.cpu.roots import Kind, Root, title
from mosaic_grid.cpu.views import View
from mosaic_grid.ir_types import Value

if TYPE_CHECKING:
    from mosaic_grid.cpu.lowering import Lowering

_DETAILS = 10
"""How many numbers beside the grid indices are kept of the first time, where everything is recorded; else 2."""


class What(enum.Enum):
    """What can go wrong, and the numbers that are kept of it."""

    OUTSIDE = "touches what is outside: dimension, start, how many, the dimension's size, whether it is a view's"
    WINDOW = "wants a block outside of its array: how many dimensions, whether it counts elements, the block's index"
    UNWRITTEN = "reads what nobody wrote: how many elements"
    OUTPUT = "leaves a result unwritten: how many elements, and the index of the first"
    RACE = "touches what another core touches: whether that one wrote, and its indices, -1 where they differ"
    IN_FLIGHT = "uses what a copy is using: whether that one writes it, and the number of its semaphore"
    UNWAITED = "starts a copy that nobody waits for: how much of it the semaphore counts in the end"
    SIGNALLED = "signals what nobody waits for: how much the semaphore counts in the end"
    FAILED = "finds that what its author asserts doesn't hold"
    LOGGED = "logs something: the numbers, floats as their bits"
    STUCK = "waits for what can't come any more: how much is there, and how much it waits for"


@dataclasses.dataclass(frozen=True)
class Said:
    """A text of the kernel's author; `floats` are the numbers beside it that are the bits of an f32."""

    text: str
    floats: tuple[bool, ...] = ()


@dataclasses.dataclass(frozen=True)
class Site:
    """Something that one operation may do wrong to some memory; the grid itself, as it moves blocks, has no `op`.

    `writes` says which of both it is, where that makes a difference. What its author has it say is `said`.
    """

    what: What
    op: str
    root: Root
    location: ir.Location
    writes: bool = False
    said: Said | None = None

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
    `read`. It has room for `capacity` sites. Without `everything` they are only waits that are never met.
    """

    def __init__(self, rank: int, *, everything: bool = True, capacity: int = 256) -> None:
        self.rank = rank
        self.everything = everything
        self._details = _DETAILS if everything else 2
        shape = (capacity, 1 + rank + self._details)
        self.root = Root("the record of faults", shape, build.i32_type(), Kind.STATE)
        self.sites: list[Site] = []
        self.place: Value | None = None
        """The indices of the step that is being translated, as a row; `None` before the first one."""
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
        said: Said | None = None,
    ) -> None:
        """Notes, if the predicate holds when the program is here, that `op` does something wrong to some memory.

        Where there is no `op`, the current location is the site's. `indices` are those of this step of the grid unless
        others are given.
        """
        _, width = self.root.shape
        row = self._row(what, op, root, writes=writes, said=said)
        part = View(self.root).slice([row, 0], [1, width])
        place = self.place if indices is None else None
        if place is None:
            place = _row(low.indices if indices is None else indices, self.rank)
        numbers = build.concatenate([place, _row(details[: self._details], self._details)], 1)
        low.memory.modify(part, lambda old: _again(old, predicate, numbers))

    def step(self, indices: Sequence[Value]) -> None:
        """A step of the grid begins, in a region of its own; these are the indices until the next one."""
        self.place = _row(indices, self.rank)

    def read(self, record: Array) -> list[Fault]:
        """What the record's contents say, in the order of the program."""
        rows = zip(self.sites, record.tolist(), strict=False)
        split = 1 + self.rank
        return [Fault(site, row[0], tuple(row[1:split]), tuple(row[split:])) for site, row in rows if row[0]]

    def _row(self, what: What, op: ir.Operation | None, root: Root, *, writes: bool, said: Said | None) -> int:
        """The row of a site; an operation that is translated more than once has one all the same."""
        key = (what, op, root.name, writes)
        known = self._rows.get(key)
        if known is not None:
            return known
        location = op.location if op is not None else ir.Location.current
        assert location is not None
        row = self._rows[key] = len(self.sites)
        assert row < self.root.shape[0], "the record has room for fewer sites than there are"
        self.sites.append(Site(what, "" if op is None else op.name, root, location, writes, said))
        return row


def joined(left: Value, right: Value) -> Value:
    """One record of two: the faults of both, and of each the first time in `left`, where there is one."""
    rows, width = build.shape_of(left)
    counts, before = (build.slice_(each, [0, 0], [rows, 1]) for each in (left, right))
    happened = build.compare(counts, build.zeros_like(counts), "NE")
    rest = [build.slice_(each, [0, 1], [rows, width - 1]) for each in (left, right)]
    first = build.select(build.broadcast(happened, (rows, width - 1), (0, 1)), *rest)
    return build.concatenate([hlo.add(counts, before), first], 1)


def _row(numbers: Sequence[Index], size: int) -> Value:
    """The numbers, and zeros behind them, as a row."""
    parts = [build.reshape(build.as_value(number), (1, 1)) for number in numbers]
    if len(parts) < size or not parts:
        parts.append(build.constant(0, (1, size - len(parts)), build.i32_type()))
    return build.concatenate(parts, 1)


def _again(row: Value, predicate: Value, new: Value) -> Value:
    """A row after it has happened once more, if the predicate holds; `new` is kept of the first time."""
    _, width = build.shape_of(row)
    count = build.slice_(row, [0, 0], [1, 1])
    more = hlo.add(count, build.reshape(build.convert(predicate, build.i32_type()), (1, 1)))
    first = hlo.and_(predicate, build.reshape(build.compare(count, build.zeros_like(count), "EQ"), ()))
    rest = build.select(first, new, build.slice_(row, [0, 1], [1, width - 1]))
    return build.concatenate([more, rest], 1)
