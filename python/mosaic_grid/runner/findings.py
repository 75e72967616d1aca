"""What kernels do wrong, as diagnostics: the place in the user's file, the grid point, how often, and what it means."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence

from mosaic_grid.cpu.faults import Fault, What
from mosaic_grid.cpu.records import Record
from mosaic_grid.cpu.roots import Root
from mosaic_grid.diagnostics import Diagnostic, Severity, note, place_of
from mosaic_grid.errors import Place

type Found = tuple[Record, Fault]
type Matters = Callable[[Record, Root], bool]

_SEVERITIES = (Severity.ERROR, Severity.WARNING, Severity.REMARK)


@dataclasses.dataclass(frozen=True)
class Finding:
    """The faults of one kind in one place, with one memory: how often, and the first of them."""

    record: Record
    fault: Fault
    count: int

    @property
    def place(self) -> Place | None:
        """The place in the user's file."""
        return place_of(self.fault.site.location) or place_of(self.record.location)

    @property
    def kernel(self) -> str:
        """The kernel's name, in quotes."""
        return f"'{self.record.kernel}'"

    @property
    def verb(self) -> str:
        """What it does to the memory."""
        return "writes" if self.fault.site.writes else "reads"

    @property
    def when(self) -> str:
        """The step of the first time, and how often it was."""
        times = f", {self.count} times in all" if self.count > 1 else ""
        where = f", {'first ' if times else ''}at grid point {_tuple(self.fault.indices)}" if self.fault.indices else ""
        return where + times


def findings_of(found: Iterable[Found]) -> list[Finding]:
    """Faults put together that a person would call the same: those of the copies of an unrolled loop, for example."""
    groups: dict[tuple[object, ...], list[Found]] = {}
    for record, fault in found:
        site = fault.site
        place = place_of(site.location)
        key = (id(record), site.what, site.writes, site.memory, str(place or site.location))
        groups.setdefault(key, []).append((record, fault))
    return [_together(group) for group in groups.values()]


def _together(group: Sequence[Found]) -> Finding:
    (record, _), *_ = group
    first = min((fault for _, fault in group), key=lambda fault: fault.indices)
    return Finding(record, first, sum(fault.count for _, fault in group))


def stuck_waits(found: Iterable[Found]) -> list[Diagnostic]:
    """The waits among them that are never met."""
    return [_stuck(each) for each in findings_of(found) if each.fault.site.what is What.STUCK]


def diagnostics_of(found: Iterable[Found], matters: Matters) -> list[Diagnostic]:
    """All that was found, errors first. `matters` says whether results depend on what a root held at first."""
    told = [_TOLD[each.fault.site.what](each, matters) for each in findings_of(found)]
    listed = [each for each in told if each is not None]
    return sorted(listed, key=lambda each: _SEVERITIES.index(each.severity))


def _outside(found: Finding, _: Matters) -> Diagnostic:
    message = f"{found.kernel} {found.verb} beyond the end of {found.fault.site.memory}{found.when}"
    name = "out-of-bounds-write" if found.fault.site.writes else "out-of-bounds-read"
    return Diagnostic(Severity.ERROR, message, found.place, name)


def _window(found: Finding, _: Matters) -> Diagnostic:
    rank, in_elements, *index = found.fault.details
    which = f"the block from element {_tuple(index[:rank])} on" if in_elements else f"block {_tuple(index[:rank])}"
    message = f"{found.kernel} {found.verb} {which} of {found.fault.site.memory}, which is outside of its array"
    return Diagnostic(Severity.ERROR, message + found.when, found.place, "window-out-of-bounds")


def _unwritten(found: Finding, matters: Matters) -> Diagnostic | None:
    root, (count, *_) = found.fault.site.root, found.fault.details
    watch = found.record.watch
    padding = watch is not None and root in watch.inputs
    depends = matters(found.record, root)
    if padding and not depends:
        return None  # edge blocks are like that
    what = "beyond the end of its array" if padding else "that nobody wrote"
    message = f"{found.kernel} reads {_elements(count)} of {found.fault.site.memory} {what}"
    if not depends:
        message = f"{message}, but no result depends on them{found.when}"
        return Diagnostic(Severity.REMARK, message, found.place, "unwritten-read")
    message = f"{message}, and results depend on them{found.when}"
    name = "padding-read" if padding else "unwritten-read"
    return Diagnostic(Severity.ERROR, message, found.place, name, _why_unwritten(found))


def _why_unwritten(found: Finding) -> tuple[Diagnostic, ...]:
    """What a person may not think of: scratch isn't handed from core to core."""
    watch, root = found.record.watch, found.fault.site.root
    if watch is None or root not in watch.private or not watch.axes:
        return ()
    return (note(f"scratch is written anew from each index of {_dimensions(found.record, watch.axes)} on, "
                 "as each may be on another core"),)  # fmt: skip


def _output(found: Finding, matters: Matters) -> Diagnostic:
    count, *first = found.fault.details
    root, memory = found.fault.site.root, found.fault.site.memory
    total = math.prod(found.record.watch.shape_of(root)) if found.record.watch is not None else count
    if count == total:
        message, severity = f"{found.kernel} leaves all of {memory} unwritten", Severity.ERROR
    else:
        place = list(first[: len(root.shape)])
        message = f"{found.kernel} leaves {count} of {total} elements of {memory} unwritten, the first at {place}"
        severity = Severity.WARNING
    if not matters(found.record, root):
        message, severity = f"{message}, but no result depends on them", Severity.REMARK
    return Diagnostic(severity, message + _times(found.count), found.place, "output-not-written")


def _race(found: Finding, _: Matters) -> Diagnostic:
    wrote, *other = found.fault.details
    rank = found.record.faults.rank
    theirs = ", ".join("_" if index < 0 else str(index) for index in other[:rank])
    did = "written" if wrote else "read"
    who = f"grid point ({theirs}) has {did}" if max(other[:rank]) >= 0 else f"others have {did}"
    memory = found.fault.site.memory
    message = f"{found.kernel} {found.verb} elements of {memory} that {who}, maybe on another core{found.when}"
    watch = found.record.watch
    axes = _dimensions(found.record, watch.shared if watch is not None else [])
    why = note(f"steps that differ in {axes} may run on different cores, in any order")
    return Diagnostic(Severity.ERROR, message, found.place, "core-race", (why,))


def _unwaited(found: Finding, _: Matters) -> Diagnostic:
    left = found.fault.details[0]
    memory = found.fault.site.memory
    message = f"{found.kernel} starts a copy that nobody waits for: {memory} still counts {left} bytes at its end"
    return Diagnostic(Severity.ERROR, message + found.when, found.place, "unwaited-dma")


def _stuck(found: Finding, matters: Matters | None = None) -> Diagnostic:
    have, want = found.fault.details[:2]
    message = f"{found.kernel} waits for {found.fault.site.memory} in vain: it counts {have}, and {want} are waited for"
    return Diagnostic(Severity.ERROR, message + found.when, found.place, "stuck-wait")


_TOLD: dict[What, Callable[[Finding, Matters], Diagnostic | None]] = {
    What.OUTSIDE: _outside,
    What.WINDOW: _window,
    What.UNWRITTEN: _unwritten,
    What.OUTPUT: _output,
    What.RACE: _race,
    What.UNWAITED: _unwaited,
    What.STUCK: _stuck,
}


def _dimensions(record: Record, axes: Sequence[int]) -> str:
    words = [f"dimension {axis} ({record.grid[axis].semantics.value})" for axis in axes]
    return " or ".join(words)


def _elements(count: int) -> str:
    return f"{count} element{'s' if count > 1 else ''}"


def _times(count: int) -> str:
    return f", in {count} launches" if count > 1 else ""


def _tuple(indices: Sequence[int]) -> str:
    return f"({', '.join(map(str, indices))})"
