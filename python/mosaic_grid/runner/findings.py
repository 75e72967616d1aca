"""What kernels do wrong, as diagnostics: the place in the user's file, the grid point, how often, and what it means."""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np

from mosaic_grid.cpu.faults import Fault, Said, What
from mosaic_grid.cpu.prints import filled
from mosaic_grid.cpu.records import Record
from mosaic_grid.cpu.roots import Root, title
from mosaic_grid.diagnostics import Diagnostic, Severity, note, place_of
from mosaic_grid.errors import Place
from mosaic_grid.runner.dependence import Dependence

Found: TypeAlias = tuple[Record, Fault]
Matters: TypeAlias = Callable[[Record, Root], Dependence]

_SEVERITIES = (Severity.ERROR, Severity.WARNING, Severity.REMARK)


@dataclasses.dataclass(frozen=True)
class Finding:
    """Faults that a person would call the same: of one kind, in one place, with one memory. `first` is one of them."""

    record: Record
    first: Fault
    members: tuple[Found, ...]

    @property
    def kernel(self) -> str:
        """The kernel's name, in quotes."""
        return f"'{self.record.kernel}'"

    @property
    def memory(self) -> str:
        """What the memory is called."""
        return self.first.site.memory

    @property
    def verb(self) -> str:
        """What the kernel does to the memory."""
        return "writes" if self.first.site.writes else "reads"

    @property
    def count(self) -> int:
        """How often it happened."""
        return sum(fault.count for _, fault in self.members)

    @property
    def when(self) -> str:
        """The step of the first time, and how often it was."""
        times = f", {self.count} times in all" if self.count > 1 else ""
        indices = self.first.indices
        where = f", {'first ' if times else ''}at grid point {_tuple(indices)}" if indices else ""
        return where + times

    def dependence(self, matters: Matters) -> Dependence:
        """What results have to do with what the memory held that nobody had written."""
        each = (matters(record, fault.site.root) for record, fault in self.members)
        return functools.reduce(operator.or_, each, Dependence())

    def said(self, severity: Severity, message: str, name: str, notes: tuple[Diagnostic, ...] = ()) -> Diagnostic:
        """What is said of it."""
        place = _place(self.record, self.first)
        return Diagnostic(severity, message, place, name, notes, kernel=self.record.kernel, about=self.memory)


def findings_of(found: Iterable[Found]) -> list[Finding]:
    """Faults put together: those of the copies of an unrolled loop, or of several launches from one line."""
    groups: dict[tuple[object, ...], list[Found]] = {}
    for record, fault in found:
        site = fault.site
        place = _place(record, fault)
        where = str(place) if place is not None else str(site.location)
        key = (record.kernel, site.what, site.writes, site.memory, site.said, where)
        groups.setdefault(key, []).append((record, fault))
    return [_together(group) for group in groups.values()]


def stuck_waits(found: Iterable[Found]) -> list[Diagnostic]:
    """The waits among them that are never met."""
    return [_stuck(each) for each in findings_of(found) if each.first.site.what is What.STUCK]


def diagnostics_of(found: Iterable[Found], matters: Matters) -> list[Diagnostic]:
    """All that was found, errors first. `matters` says what results have to do with what a root held at first."""
    told = [_TOLD[each.first.site.what](each, matters) for each in findings_of(found)]
    listed = [each for each in told if each is not None]
    return sorted(listed, key=lambda each: _SEVERITIES.index(each.severity))


def _outside(found: Finding, _: Matters) -> Diagnostic:
    axis, start, count, size, viewed = found.first.details[:5]
    memory = f"a view of {found.memory}" if viewed else found.memory
    where = f"{_range(start, count)} of dimension {axis} of {memory}, which has {size}"
    name = "out-of-bounds-write" if found.first.site.writes else "out-of-bounds-read"
    return found.said(Severity.ERROR, f"{found.kernel} {found.verb} {where}{found.when}", name)


def _window(found: Finding, _: Matters) -> Diagnostic:
    rank, in_elements, *index = found.first.details
    which = f"the block from element {_tuple(index[:rank])} on" if in_elements else f"block {_tuple(index[:rank])}"
    message = f"{found.kernel} {found.verb} {which} of {found.memory}, which is outside of its array{found.when}"
    return found.said(Severity.ERROR, message, "window-out-of-bounds")


def _unwritten(found: Finding, matters: Matters) -> Diagnostic | None:
    root, count = found.first.site.root, found.first.details[0]
    watch, depends = found.record.watch, found.dependence(matters)
    padding = watch is not None and root in watch.inputs
    if padding and not depends.differs:
        return None  # blocks at the edge are like that
    what = "beyond the end of its array" if padding else "that nobody wrote"
    message = f"{found.kernel} reads {_elements(count)} of {found.memory} {what}"
    if not depends.differs:
        message = f"{message}, but no result was seen to depend on them{found.when}"
        return found.said(Severity.REMARK, message, "unwritten-read")
    severity = Severity.ERROR if depends.used or depends.all else Severity.WARNING
    effect = "results depend on them" if depends.used else "results have them as they are"
    name = "padding-read" if padding else "unwritten-read"
    return found.said(severity, f"{message}, and {effect}{found.when}", name, _why_unwritten(found))


def _why_unwritten(found: Finding) -> tuple[Diagnostic, ...]:
    """What a person may not think of: scratch isn't handed from core to core."""
    watch, root = found.record.watch, found.first.site.root
    if watch is None or root not in watch.private or not watch.axes:
        return ()
    axes = _dimensions(found.record, watch.axes)
    return (note(f"what scratch holds isn't kept from one index of {axes} to another, which may be on another core"),)


def _output(found: Finding, matters: Matters) -> Diagnostic:
    count, *first = found.first.details
    root, watch = found.first.site.root, found.record.watch
    total = math.prod(watch.shape_of(root)) if watch is not None else count
    if count == total:
        message, severity = f"{found.kernel} leaves all of {found.memory} unwritten", Severity.ERROR
    else:
        place = list(first[: len(root.shape)])
        message = f"{found.kernel} leaves {count} of {total} elements of {found.memory} unwritten, the first at {place}"
        severity = Severity.WARNING
    if not found.dependence(matters).differs:
        message, severity = f"{message}, but no result was seen to depend on them", Severity.REMARK
    launches = f", in the first of {found.count} launches that leave any" if found.count > 1 else ""
    return found.said(severity, message + launches, "output-not-written")


def _race(found: Finding, _: Matters) -> Diagnostic:
    wrote, *other = found.first.details
    rank = found.record.faults.rank
    theirs = ", ".join("_" if index < 0 else str(index) for index in other[:rank])
    did = "written" if wrote else "read"
    who = f"grid point ({theirs}) has {did}" if max(other[:rank]) >= 0 else f"others have {did}"
    message = f"{found.kernel} {found.verb} elements of {found.memory} that {who}, maybe on another core{found.when}"
    watch = found.record.watch
    axes = _dimensions(found.record, watch.shared if watch is not None else [])
    why = note(f"steps that differ in {axes} may run on different cores, in any order")
    return found.said(Severity.ERROR, message, "core-race", (why,))


def _in_flight(found: Finding, _: Matters) -> Diagnostic:
    writing, number = found.first.details[:2]
    watch, does = found.record.watch, "writing" if writing else "reading"
    semaphore = f": {title(watch.in_flight.semaphore(number))} hasn't been waited for" if watch is not None else ""
    message = f"{found.kernel} {found.verb} elements of {found.memory} that a copy may still be {does}{semaphore}"
    return found.said(Severity.ERROR, message + found.when, "dma-in-flight")


def _unwaited(found: Finding, _: Matters) -> Diagnostic:
    message = f"{found.kernel} starts a copy that nobody waits for"
    left = f"{found.memory} still counts {found.first.details[0]} bytes at its end"
    return found.said(Severity.ERROR, f"{message}: {left}{found.when}", "unwaited-dma")


def _signalled(found: Finding, _: Matters) -> Diagnostic:
    left = f"{found.memory} still counts {found.first.details[0]} at its end"
    message = f"{found.kernel} signals what nobody waits for: {left}{found.when}"
    return found.said(Severity.ERROR, message, "unwaited-signal")


def _failed(found: Finding, _: Matters) -> Diagnostic:
    said = found.first.site.said
    text = f": {said.text}" if said is not None and said.text else ""
    return found.said(Severity.ERROR, f"{found.kernel} fails a check of its own{text}{found.when}", "failed-check")


def _logged(found: Finding, _: Matters) -> Diagnostic:
    said = found.first.site.said
    assert said is not None
    text = printed(said, found.first.details)
    return found.said(Severity.REMARK, f"{found.kernel} prints {text!r}{found.when}", "kernel-print")


def printed(said: Said, details: Sequence[int]) -> str:
    """The text with the numbers, of which those that are floats are given as their bits."""
    pairs = zip(said.floats, details, strict=False)
    return filled(said.text, [np.int32(bits).view(np.float32) if is_float else bits for is_float, bits in pairs])


def _stuck(found: Finding, matters: Matters | None = None) -> Diagnostic:
    have, want = found.first.details[:2]
    message = f"{found.kernel} waits for {found.memory} in vain: it counts {have}, and {want} are waited for"
    return found.said(Severity.ERROR, message + found.when, "stuck-wait")


_TOLD: dict[What, Callable[[Finding, Matters], Diagnostic | None]] = {
    What.OUTSIDE: _outside,
    What.WINDOW: _window,
    What.UNWRITTEN: _unwritten,
    What.OUTPUT: _output,
    What.RACE: _race,
    What.IN_FLIGHT: _in_flight,
    What.UNWAITED: _unwaited,
    What.SIGNALLED: _signalled,
    What.FAILED: _failed,
    What.LOGGED: _logged,
    What.STUCK: _stuck,
}


def _together(group: Sequence[Found]) -> Finding:
    (record, _), *_ = group
    first = min((fault for each, fault in group if each is record), key=lambda fault: fault.indices)
    return Finding(record, first, tuple(group))


def _place(record: Record, fault: Fault) -> Place | None:
    """The place of a fault in the user's file, or of the launch where the kernel doesn't say it."""
    with record.location.context:
        return place_of(fault.site.location) or place_of(record.location)


def _dimensions(record: Record, axes: Sequence[int]) -> str:
    words = [f"dimension {axis} ({record.grid[axis].semantics.value})" for axis in axes]
    return " or ".join(words)


def _elements(count: int) -> str:
    return f"{count} element{'s' if count > 1 else ''}"


def _range(start: int, count: int) -> str:
    return f"element {start}" if count == 1 else f"elements {start} to {start + count - 1}"


def _tuple(indices: Sequence[int]) -> str:
    return f"({', '.join(map(str, indices))})"
