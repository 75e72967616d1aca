"""Whether two steps that may run on different cores write, or read and write, one place of an array."""

from __future__ import annotations

import dataclasses
from collections.abc import Set

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.collisions import Answer, Apart, Blocks, Collision, Undecided, collide
from mosaic_grid.dataflow.freshness import Steps
from mosaic_grid.dataflow.kernel import index_map
from mosaic_grid.dataflow.memory import Root, whole
from mosaic_grid.dataflow.scalars import grid_index
from mosaic_grid.dataflow.step import Access
from mosaic_grid.legality.places import Clash, Doubt, clash_in, doubt_about, touches_all
from mosaic_grid.legality.sharing import Alias, Sharing, has_blocks, is_own_memory, listed
from mosaic_grid.objections import Assumption, Objection
from mosaic_grid.program import Window

RACE = "parallel-race"


@dataclasses.dataclass
class Races:
    """`private` are the arguments that are outputs of which no two steps apart in a split dimension share a block."""

    objections: list[Objection] = dataclasses.field(default_factory=list)
    assumptions: list[Assumption] = dataclasses.field(default_factory=list)
    private: set[int] = dataclasses.field(default_factory=set)


def races(sharing: Sharing, steps: Steps) -> Races:
    """Judges every output and every aliased pair; raises `ProgramError` where an index map is missing."""
    found = Races()
    writes = {access.root.argument for walk in steps.walks for access in walk.writes}
    touched = writes | {access.root.argument for walk in steps.walks for access in walk.reads}
    windows = sharing.kernel.windows
    by_hand = {
        number
        for number, window in enumerate(windows)
        if not is_own_memory(window.argument) and sharing.first_window + number in touched
    }
    for number, window in enumerate(windows):
        argument = sharing.first_window + number
        if number >= sharing.inputs and has_blocks(window):
            _judge_blocks(found, sharing, number, window, steps)
        elif number >= sharing.inputs and argument in writes and number not in by_hand:
            _judge_whole(found, sharing, number, steps)
    for array in _arrays(sharing):
        if not by_hand.isdisjoint(array):
            _judge_places(found, sharing, array, by_hand, steps)
    for alias in sharing.aliases:
        if alias.input is None or by_hand.isdisjoint((alias.input, alias.output)):
            _judge_alias(found, sharing, alias, steps)
    return found


def _judge_blocks(found: Races, sharing: Sharing, number: int, window: Window, steps: Steps) -> None:
    blocks = _blocks(sharing, window)
    name = f"output {number - sharing.inputs}"
    where = _location(sharing, window)
    if blocks is None:
        found.assumptions.append(Assumption(f"that no two cores write the same place of {name}", where, RACE))
        return
    match _collide(sharing, blocks, blocks, sharing.axes):
        case Apart(unless):
            found.private.add(sharing.first_window + number)
            _judge_return(found, sharing, number, blocks, steps)
            if unless:
                found.assumptions.append(Assumption(f"for {name}, that {unless}", where, RACE))
        case Collision(first, second, block):
            same = "write the same block" if _is_blocked(blocks) else "write overlapping blocks at"
            reason = f"{sharing.race(first, second)} {same} {listed(block)} of {name}"
            found.objections.append(Objection(reason, where, True, RACE, (first, second)))
        case Undecided(reason, why):
            claim = f"that no two cores write the same block of {name}, whose index map {reason}"
            found.assumptions.append(Assumption(claim, where, RACE, why))


def _collide(sharing: Sharing, one: Blocks, other: Blocks, axes: tuple[int, ...], same: tuple[int, ...] = ()) -> Answer:
    """Whether windows at two steps share an element; where that is up to tables, with steps that do."""
    answer = collide(sharing.bounds, one, other, axes, same, sharing.most)
    if not isinstance(answer, Undecided):
        return answer
    why = doubt_about(sharing, one, other, axes, same)
    return Apart() if why is None else dataclasses.replace(answer, why=why)


def _judge_return(found: Races, sharing: Sharing, number: int, blocks: Blocks, steps: Steps) -> None:
    """A block that was left and comes back holds nothing, unless the steps that were between are on another core."""
    window = sharing.kernel.windows[number]
    leftover = None if window.restores else _leftover(sharing, number, steps)
    if leftover is None:
        return
    (what, where), name = leftover, f"output {number - sharing.inputs}"
    match _collide(sharing, blocks, blocks, sharing.outer, sharing.axes):
        case Collision(first, second, block):
            told = f"its block {listed(block)} is that of steps {listed(first)} and {listed(second)}"
            reason = f"{name} {what}, {told}, and fewer steps would lie between the two"
            found.objections.append(Objection(reason, where, False, RACE, (first, second)))
        case Undecided(reason, why):
            claim = f"that no block of {name}, which {what}, comes back: its index map {reason}"
            found.assumptions.append(Assumption(claim, where, RACE, why))


def _leftover(sharing: Sharing, number: int, steps: Steps) -> tuple[str, ir.Location] | None:
    """How a step uses what an output's buffer held before; None where it surely writes the whole of it first."""
    root = sharing.first_window + number
    window = sharing.kernel.windows[number]
    reads = (access for walk in steps.walks for access, _ in walk.uncovered if access.root.argument == root)
    read = next(reads, None)
    if read is not None:
        return "is read before it is written", read.op.location
    all_of_it = whole(Root(root, tuple(window.type.shape))).box
    writes = (access for access in steps.later.writes if access.root.argument == root and not access.guards)
    if any(access.box == all_of_it and touches_all(access.op) for access in writes):
        return None
    return "may stay unwritten in a step", _location(sharing, window)


def _judge_whole(found: Races, sharing: Sharing, number: int, steps: Steps) -> None:
    """An output in a core's own memory that every step gets whole, and writes."""
    root = sharing.first_window + number
    writes = [access for access in steps.later.writes if access.root.argument == root]
    if not writes:
        return
    always = next((access for access in writes if not access.guards and _is_fixed(access)), None)
    access = always or writes[0]
    name = f"output {number - sharing.inputs}"
    reason = f"every step gets the whole of {name} and writes it, so what one core writes is lost to another's copy"
    found.objections.append(Objection(reason, access.op.location, always is not None, RACE))


def _is_fixed(access: Access) -> bool:
    return access.box is not None and all(sym.constant_of(span.start) is not None for span in access.box)


def _arrays(sharing: Sharing) -> list[frozenset[int]]:
    """The windows by the array that they are on: an output with the input that it is written over."""
    arrays = [frozenset((number,)) for number in range(len(sharing.kernel.windows))]
    for alias in sharing.aliases:
        pair = [array for array in arrays if alias.input in array or alias.output in array]
        arrays = [array for array in arrays if array not in pair] + [frozenset().union(*pair)]
    return arrays


def _judge_places(found: Races, sharing: Sharing, array: Set[int], by_hand: Set[int], steps: Steps) -> None:
    """Memory that the cores share, in which the kernel reads or writes where it likes in the windows `by_hand`."""
    windows, last = sharing.kernel.windows, max(array)
    arguments = [sharing.first_window + number for number in array]
    written = [access for walk in steps.walks for access in walk.writes if access.root.argument in arguments]
    touched = {access.root.argument for walk in steps.walks for access in (*walk.reads, *walk.writes)}
    streamed = {number for number in array - by_hand if has_blocks(windows[number])}
    if not written and not (last in streamed and last >= sharing.inputs):
        return
    where = written[-1].op.location if written else _location(sharing, windows[last])
    name = sharing.name(sharing.first_window + last)
    loose = [op for walk in steps.walks for root, op in walk.unmatched if root.argument is None]
    if loose:
        claim = f"that each copy of {name} is waited for in the step that starts it"
        found.assumptions.append(Assumption(claim, loose[0].location, RACE))
    how = "writes itself" if last >= sharing.inputs else "writes in place"
    claim = f"that no two cores touch the same place of {name}{f', which the kernel {how}' if last in by_hand else ''}"
    blocks = {sharing.first_window + number: _blocks(sharing, windows[number]) for number in streamed}
    known = {argument: each for argument, each in blocks.items() if each is not None}
    others = [number for number in array - by_hand - streamed if sharing.first_window + number in touched]
    if others or len(known) < len(blocks):
        found.assumptions.append(Assumption(claim, where, RACE, "not all of it is in memory that the cores share"))
        return
    match clash_in(sharing, arguments, known, name, steps):
        case Clash(reason, location, apart, certain):
            found.objections.append(Objection(reason, location, certain, RACE, apart))
        case Doubt(why, location):
            found.assumptions.append(Assumption(claim, location, RACE, why))


def _judge_alias(found: Races, sharing: Sharing, alias: Alias, steps: Steps) -> None:
    """An input that an output is written over: no step may read what another, that may run elsewhere, has written."""
    windows = sharing.kernel.windows
    output = windows[alias.output]
    name = f"output {alias.output - sharing.inputs}"
    if alias.input is None:
        claim = f"that no core reads what another writes of {name}, which aliases an operand that isn't a window"
        found.assumptions.append(Assumption(claim, _location(sharing, output), RACE))
        return
    source = windows[alias.input]
    argument = sharing.first_window + alias.input
    if not any(access.root.argument == argument for walk in steps.walks for access in walk.reads):
        return
    one, other = (_blocks(sharing, window) if has_blocks(window) else None for window in (source, output))
    where = _location(sharing, source)
    if one is None or other is None:
        claim = f"that no core reads what another writes of input {alias.input}, which {name} is written over"
        found.assumptions.append(Assumption(claim, where, RACE))
        return
    for axes, same, certain in ((sharing.axes, (), True), (sharing.outer, sharing.axes, False)):
        match _collide(sharing, one, other, axes, same):
            case Collision(first, second, _):
                reason = (
                    f"step {listed(first)} reads a block of input {alias.input} that step {listed(second)} overwrites, "
                    f"as {name} is written over it"
                ) + ("" if certain else ", and fewer steps would lie between the two")
                found.objections.append(Objection(reason, where, certain, RACE, (first, second)))
                return
            case Undecided(reason, why):
                claim = f"that no core reads what another writes of input {alias.input}, whose index map {reason}"
                found.assumptions.append(Assumption(claim, where, RACE, why))
                return


def _blocks(sharing: Sharing, window: Window) -> Blocks | None:
    """The blocks of a window, None where they aren't understood."""
    indices = index_map(sharing.kernel, window, [grid_index(axis, bound) for axis, bound in enumerate(sharing.bounds)])
    # an operand that is handed over whole is one block
    sizes = window.shape if window.shape is not None else tuple(window.type.shape)
    if indices is None or len(indices) != len(sizes) or min(sizes, default=1) < 0:
        return None
    if window.kind is None:
        return Blocks(indices, sizes, sizes, (0,) * len(sizes))
    low = _low_padding(window.kind, len(sizes))
    return None if low is None else Blocks(indices, (1,) * len(sizes), sizes, tuple(-pad for pad in low))


def _low_padding(kind: ir.Attribute, rank: int) -> tuple[int, ...] | None:
    """The padding before each dimension of `#tpu.element_window<[low], [high]>`; the bindings have only its text."""
    prefix = "#tpu.element_window<["
    text = str(kind)
    if not text.startswith(prefix):
        return None
    numbers = [word.strip() for word in text.removeprefix(prefix).partition("]")[0].split(",") if word.strip()]
    return tuple(int(word) for word in numbers) if len(numbers) == rank else None


def _is_blocked(blocks: Blocks) -> bool:
    return blocks.strides == blocks.sizes


def _location(sharing: Sharing, window: Window) -> ir.Location:
    """Where the index map is written; else the window's argument."""
    function = sharing.kernel.functions.get(window.transform or "")
    return function.location if function is not None else window.argument.location
