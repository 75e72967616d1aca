"""Whether two steps that may run on different cores write, or read and write, one place of an array."""

from __future__ import annotations

import dataclasses

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.collisions import Apart, Blocks, Collision, Undecided, collide
from mosaic_grid.dataflow.freshness import Steps
from mosaic_grid.dataflow.kernel import index_map
from mosaic_grid.dataflow.memory import Root, whole
from mosaic_grid.dataflow.scalars import grid_index
from mosaic_grid.dataflow.step import Access
from mosaic_grid.legality.places import clashes, touches_all
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
    writes = {access.root.argument: access for walk in steps.walks for access in walk.writes}
    for number, window in enumerate(sharing.kernel.windows):
        argument = sharing.first_window + number
        if number < sharing.inputs:
            if not is_own_memory(window.argument) and argument in writes:
                _judge_places(found, sharing, argument, f"input {number}, which the kernel writes in place", steps)
        elif has_blocks(window):
            _judge_blocks(found, sharing, number, window, steps)
        elif argument in writes:
            _judge_whole(found, sharing, number, window, steps)
    for alias in sharing.aliases:
        _judge_alias(found, sharing, alias, steps)
    return found


def _judge_blocks(found: Races, sharing: Sharing, number: int, window: Window, steps: Steps) -> None:
    blocks = _blocks(sharing, window)
    name = f"output {number - sharing.inputs}"
    where = _location(sharing, window)
    if blocks is None:
        found.assumptions.append(Assumption(f"that no two cores write the same place of {name}", where, RACE))
        return
    match collide(sharing.bounds, blocks, blocks, sharing.axes, most=sharing.most):
        case Apart(unless):
            found.private.add(sharing.first_window + number)
            _judge_return(found, sharing, number, blocks, steps)
            if unless:
                found.assumptions.append(Assumption(f"for {name}, that {unless}", where, RACE))
        case Collision(first, second, block):
            same = "write the same block" if _is_blocked(blocks) else "write overlapping blocks at"
            reason = f"{sharing.race(first, second)} {same} {listed(block)} of {name}"
            found.objections.append(Objection(reason, where, True, RACE, (first, second)))
        case Undecided(reason):
            claim = f"that no two cores write the same block of {name}, whose index map {reason}"
            found.assumptions.append(Assumption(claim, where, RACE))


def _judge_return(found: Races, sharing: Sharing, number: int, blocks: Blocks, steps: Steps) -> None:
    """A block that was left and comes back holds nothing, unless the steps that were between are on another core."""
    window = sharing.kernel.windows[number]
    leftover = None if window.restores else _leftover(sharing, number, steps)
    if leftover is None:
        return
    (what, where), name = leftover, f"output {number - sharing.inputs}"
    match collide(sharing.bounds, blocks, blocks, sharing.outer, sharing.axes, sharing.most):
        case Collision(first, second, block):
            told = f"its block {listed(block)} is that of steps {listed(first)} and {listed(second)}"
            reason = f"{name} {what}, {told}, and fewer steps would lie between the two"
            found.objections.append(Objection(reason, where, False, RACE, (first, second)))
        case Undecided(reason):
            claim = f"that no block of {name}, which {what}, comes back: its index map {reason}"
            found.assumptions.append(Assumption(claim, where, RACE))


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


def _judge_whole(found: Races, sharing: Sharing, number: int, window: Window, steps: Steps) -> None:
    """An output that every step gets whole, and writes."""
    root = sharing.first_window + number
    writes = [access for access in steps.later.writes if access.root.argument == root]
    if not writes:
        return
    name = f"output {number - sharing.inputs}"
    if not is_own_memory(window.argument):
        _judge_places(found, sharing, root, f"{name}, which the kernel writes itself", steps)
        return
    always = next((access for access in writes if not access.guards and _is_fixed(access)), None)
    access = always or writes[0]
    reason = f"every step gets the whole of {name} and writes it, so what one core writes is lost to another's copy"
    found.objections.append(Objection(reason, access.op.location, always is not None, RACE))


def _is_fixed(access: Access) -> bool:
    return access.box is not None and all(sym.constant_of(span.start) is not None for span in access.box)


def _judge_places(found: Races, sharing: Sharing, argument: int, name: str, steps: Steps) -> None:
    """Memory that the cores share, which the kernel writes where it likes: certain races are found, no proofs."""
    clash = next(clashes(sharing, argument, steps), None)
    if clash is not None:
        found.objections.append(Objection(clash.reason, clash.location, True, RACE, clash.steps))
        return
    write = next(access for walk in steps.walks for access in walk.writes if access.root.argument == argument)
    claim = f"that no two cores touch the same place of {name}"
    found.assumptions.append(Assumption(claim, write.op.location, RACE))


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
        match collide(sharing.bounds, one, other, axes, same, sharing.most):
            case Collision(first, second, _):
                reason = (
                    f"step {listed(first)} reads a block of input {alias.input} that step {listed(second)} overwrites, "
                    f"as {name} is written over it"
                ) + ("" if certain else ", and fewer steps would lie between the two")
                found.objections.append(Objection(reason, where, certain, RACE, (first, second)))
                return
            case Undecided(reason):
                claim = f"that no core reads what another writes of input {alias.input}, whose index map {reason}"
                found.assumptions.append(Assumption(claim, where, RACE))
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
