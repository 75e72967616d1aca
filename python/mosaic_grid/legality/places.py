"""Places of memory that the cores share which a kernel reads and writes itself, mostly by copies."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.accesses import TABLE, Accesses, Touch, accesses_of
from mosaic_grid.dataflow.collisions import Blocks
from mosaic_grid.dataflow.effects import Effect, effect_of
from mosaic_grid.dataflow.freshness import Steps
from mosaic_grid.dataflow.kernel import prefetch_names
from mosaic_grid.dataflow.memory import Root, Span
from mosaic_grid.dataflow.scalars import is_stable
from mosaic_grid.dataflow.uses import may_be_chosen_away
from mosaic_grid.ir_types import Value
from mosaic_grid.legality.meetings import EFFORT, Answer, Apart, Arena, Meeting, Undecided
from mosaic_grid.legality.parts import Part, hull
from mosaic_grid.legality.sharing import Sharing, is_own_memory, listed

_MOST_PAIRS = 48
"""Of an unrolled loop with conditions of its own: a race shows between the first of its accesses."""

_FEW_PAIRS = 10
"""The same where it isn't known of others anyway."""

_UNKNOWN = re.compile(r"\?\d+")

System: TypeAlias = tuple[object, ...]
"""One way to count the elements of an array; `()` is that of its own shape."""


@dataclasses.dataclass(frozen=True)
class Place:
    """What one access touches at each step, in one or more systems; `sure` where it is all of it, and nothing is kept.

    `streams` says that the pipeline moves it, at the step or some steps before or after it.
    """

    location: ir.Location
    writes: bool
    sure: bool
    streams: bool
    parts: Mapping[System, Part]


@dataclasses.dataclass(frozen=True)
class Clash:
    """Two steps that may run on different cores touch one place, and one of them writes it; `certain` if they do."""

    reason: str
    location: ir.Location
    steps: tuple[tuple[int, ...], tuple[int, ...]]
    certain: bool = True


@dataclasses.dataclass(frozen=True)
class Doubt:
    """It isn't known whether there is a clash, and why."""

    why: str
    location: ir.Location


def clash_in(
    sharing: Sharing, arguments: Sequence[int], blocks: Mapping[int, Blocks], name: str, steps: Steps
) -> Clash | Doubt | None:
    """Whether steps that may run on different cores touch one place of the array behind `arguments`; None: none do.

    `blocks` are those of the arguments that are windows the pipeline moves. Pairs of two such windows are left out.
    What somebody has promised is looked at less closely: not at numbers that a step reads or counts.
    """
    accesses = _promised(sharing, steps) if sharing.trusted else accesses_of(sharing.kernel)
    arena = _arena(sharing, accesses)
    places = [*_by_hand(sharing, accesses, arguments), *_by_blocks(sharing, accesses, blocks)]
    doubt: Doubt | None = None
    if sharing.trusted and not all(map(_is_known, places)):
        doubt = Doubt("", places[0].location)
        places = [place for place in places if _is_known(place)]
    elif all(isinstance(answer, Apart) for *_, answer in _answers(sharing, arena, _pairs(_coarse(places)))):
        return None
    pairs = list(_pairs(places))
    for one, other, certain, answer in _answers(sharing, arena, pairs[: _FEW_PAIRS if doubt else _MOST_PAIRS]):
        if isinstance(answer, Meeting):
            if one.sure and other.sure:
                return _clash(sharing, one, other, answer, name, certain)
            answer = Undecided("elements may be left out, or added to", answer)
        if isinstance(answer, Undecided) and doubt is None:
            doubt = Doubt(_why(accesses, answer), one.location)
    if doubt is None and len(pairs) > _MOST_PAIRS:
        return Doubt("there are too many accesses to compare all of them", places[0].location)
    return doubt


def _promised(sharing: Sharing, steps: Steps) -> Accesses:
    """The accesses to memory that cores share, as the walks over a step that were made anyway have them."""
    found = steps.later
    shared = {k for k, argument in enumerate(sharing.kernel.arguments) if _is_shared(argument)}
    touches = tuple(
        Touch(access.op, writes, access.root, access.box, access.guards, masked=not touches_all(access.op))
        for writes, accesses in ((True, found.writes), (False, found.reads))
        for access in accesses
        if access.root.argument in shared
    )
    return Accesses(touches, {}, {}, (), {})


def _is_shared(argument: Value) -> bool:
    return isinstance(argument.type, ir.MemRefType) and not is_own_memory(argument)


def _is_known(place: Place) -> bool:
    """Whether nothing in it is a step's own but its indices."""
    part = place.parts[()]
    ends = [end for span in part.box or () for end in (span.start, span.size)]
    return part.box is not None and all(map(is_stable, (*part.guards, *ends)))


def doubt_about(
    sharing: Sharing, one: Blocks, other: Blocks, axes: Sequence[int], same: Sequence[int] = ()
) -> str | None:
    """Why it isn't known whether blocks of two steps overlap, as `Arena.meet` has it; None where they surely don't.

    Empty where there is no more to say than that their index maps aren't understood, or that somebody promised it.
    """
    if sharing.trusted:
        return ""
    accesses = accesses_of(sharing.kernel)
    match _arena(sharing, accesses).meet(_shown(one), _shown(other), axes, same):
        case Apart():
            return None
        case Undecided(_, Meeting()) as answer:
            return _why(accesses, answer)
    return ""


def _arena(sharing: Sharing, accesses: Accesses) -> Arena:
    kernel, key = sharing.kernel, (Arena, sharing.trusted, *sorted(sharing.most.items()))
    if key not in kernel.memo:
        names = prefetch_names(kernel)
        tables = {f"{TABLE}{len(kernel.grid) + k}": name for k, name in enumerate(names)}
        effort = EFFORT // 10 if sharing.trusted else EFFORT
        shared = Arena(sharing.bounds, sharing.most, tables, not sharing.trusted, effort)
        kernel.memo[key] = shared.within(
            Part(touch.box, touch.root.shape, touch.guards)
            for touch in accesses.touches
            # nobody minds what a load finds that a selection drops
            if not (touch.masked or may_be_chosen_away(touch.op))
            if touch.root.number == 0 and touch.root.argument is not None
        )
    arena: Arena = kernel.memo[key]
    return arena


def _by_hand(sharing: Sharing, accesses: Accesses, arguments: Sequence[int]) -> Iterator[Place]:
    """What the kernel copies, loads and stores itself."""
    for touch in accesses.touches:
        number = touch.root.argument
        if number is None or number not in arguments or is_own_memory(sharing.kernel.arguments[number]):
            continue
        sure = touch.box is not None and touches_all(touch.op) and touch.root.number == 0
        yield Place(touch.op.location, touch.writes, sure, False, dict(_in_systems(accesses, touch)))


def _in_systems(accesses: Accesses, touch: Touch) -> Iterator[tuple[System, Part]]:
    """The part that is touched, and those of views around it, each in its own system; these may be out of bounds."""
    root, box = touch.root, touch.box
    while True:
        system = _system(accesses, root)
        if system is not None:
            yield system, Part(box, root.shape, touch.guards, inside=root == touch.root)
        if root not in accesses.inside:
            return
        root, box = accesses.inside[root]


def _system(accesses: Accesses, root: Root) -> System | None:
    """The name of a root's way to count elements; None where it begins somewhere else at each step."""
    if root not in accesses.inside:
        return ()
    behind, box = accesses.inside[root]
    outer = _system(accesses, behind)
    if outer is None or any(sym.constant_of(end) is None for span in box for end in (span.start, span.size)):
        return None
    op = accesses.shapes[root]
    return (*outer, box, op.name, str(op.operands[0].type), str(op.results[0].type))


def _by_blocks(sharing: Sharing, accesses: Accesses, blocks: Mapping[int, Blocks]) -> Iterator[Place]:
    """What the pipeline fetches for a step that reads it, and writes back after a step."""
    windows = sharing.kernel.windows
    for number, known in blocks.items():
        window = windows[number - sharing.first_window]
        writes = number >= sharing.first_window + sharing.inputs
        if not writes and not any(touch.root.argument == number for touch in accesses.touches if not touch.writes):
            continue
        yield Place(window.argument.location, writes, True, True, {(): _shown(known)})


def _shown(blocks: Blocks) -> Part:
    """What a window shows."""
    starts = (
        sym.add(sym.mul(index, sym.constant(stride)), sym.constant(offset))
        for index, stride, offset in zip(blocks.indices, blocks.strides, blocks.offsets, strict=True)
    )
    box = tuple(Span(start, sym.constant(size)) for start, size in zip(starts, blocks.sizes, strict=True))
    return Part(box, blocks.sizes, inside=False)


def _coarse(places: Iterable[Place]) -> Iterator[Place]:
    """Fewer places that cover these: of a loop that was unrolled, what its iterations touch together."""
    alike: dict[tuple[bool, bool], list[Place]] = {}
    for place in places:
        alike.setdefault((place.writes, place.streams), []).append(place)
    for (writes, streams), some in alike.items():
        for part in hull(place.parts[()] for place in some):
            yield Place(some[0].location, writes, False, streams, {(): part})


def _pairs(places: Iterable[Place]) -> Iterator[tuple[Place, Place]]:
    """Writes with writes, then writes with reads, each once."""
    alike: dict[tuple[object, ...], Place] = {}
    for place in places:
        alike.setdefault((place.writes, place.sure, place.streams, tuple(place.parts.items())), place)
    writes, reads = ([place for place in alike.values() if place.writes is kind] for kind in (True, False))
    every = itertools.chain(itertools.combinations_with_replacement(writes, 2), itertools.product(writes, reads))
    return ((one, other) for one, other in every if not (one.streams and other.streams))


def _answers(
    sharing: Sharing, arena: Arena, pairs: Iterable[tuple[Place, Place]]
) -> Iterator[tuple[Place, Place, bool, Answer]]:
    """Whether places meet, first at steps that differ in the split dimensions; where they do, that is `certain`."""
    for one, other in pairs:
        yield one, other, True, _meet(arena, one, other, sharing.axes, ())
        if one.streams or other.streams:
            # what is fetched early, or written back late, needs the steps that lie between
            yield one, other, False, _meet(arena, one, other, sharing.outer, sharing.axes)


def _meet(arena: Arena, one: Place, other: Place, axes: Sequence[int], same: Sequence[int]) -> Answer:
    """The answer in the system of the array's shape, unless they are apart in another one that both have."""
    both = [system for system in one.parts if system in other.parts]
    answers = (arena.meet(one.parts[system], other.parts[system], axes, same) for system in both)
    # the last one is the array's own
    for answer in answers:
        if isinstance(answer, Apart):
            return answer
    return answer


def _clash(sharing: Sharing, one: Place, other: Place, found: Meeting, name: str, certain: bool) -> Clash:
    first, second = found.first, found.second
    if one.writes and other.writes:
        told = f"{sharing.race(first, second)} write overlapping places of {name}"
    else:
        told = f"step {listed(second)} reads a place of {name} that step {listed(first)} writes"
    told += "" if certain else ", and fewer steps would lie between the two"
    return Clash(told, one.location, (first, second), certain)


def _why(accesses: Accesses, answer: Undecided) -> str:
    """The reason, with unknowns called by where they come from, or steps that meet if tables are so."""

    def named(found: re.Match[str]) -> str:
        origin = accesses.origins.get(found[0])
        return f"a {origin.what}{f' (line {origin.line})' if origin.line else ''}" if origin else "what isn't known"

    meeting, reason = answer.meeting, _UNKNOWN.sub(named, answer.reason)
    if meeting is None:
        return reason
    steps = f"steps {listed(meeting.first)} and {listed(meeting.second)}"
    values = " and ".join(f"{name} = {value}" for name, value in meeting.values)
    return f"with {values} {steps} do" if values else f"{steps} may: {reason}"


def touches_all(op: ir.Operation) -> bool:
    """Whether an access leaves out no element of its box, and a write replaces what was there."""
    if "add" in op.attributes and bool(ir.BoolAttr(op.attributes["add"]).value):
        return False
    match effect_of(op):
        case Effect.COPY_START:
            return op.name == "tpu.enqueue_dma"
        case Effect.READ:
            first_index, memref = 1, op.operands[0]
        case Effect.WRITE:
            first_index, memref = 2, op.operands[1]
        case _:
            return False
    masked = len(op.operands) > first_index + ir.MemRefType(memref.type).rank
    strides = tuple(ir.DenseI32ArrayAttr(op.attributes["strides"])) if "strides" in op.attributes else ()
    return not masked and all(stride == 1 for stride in strides)
