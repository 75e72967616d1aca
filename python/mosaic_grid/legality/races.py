"""Whether two steps that may run on different cores write, or read and write, one place of an array."""

from __future__ import annotations

import dataclasses

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.collisions import Apart, Blocks, Collision, Undecided, collide
from mosaic_grid.dataflow.freshness import Steps
from mosaic_grid.dataflow.kernel import index_map
from mosaic_grid.dataflow.scalars import grid_index
from mosaic_grid.dataflow.step import Access
from mosaic_grid.legality.places import clashes
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
            _judge_blocks(found, sharing, number, window)
        elif argument in writes:
            _judge_whole(found, sharing, number, window, steps)
    for alias in sharing.aliases:
        _judge_alias(found, sharing, alias, steps)
    return found


def _judge_blocks(found: Races, sharing: Sharing, number: int, window: Window) -> None:
    blocks = _blocks(sharing, window)
    name = f"output {number - sharing.inputs}"
    where = _location(sharing, window)
    if blocks is None:
        found.assumptions.append(Assumption(f"that no two cores write the same place of {name}", where, RACE))
        return
    match collide(sharing.bounds, blocks, blocks, sharing.axes, most=sharing.most):
        case Apart(unless):
            found.private.add(sharing.first_window + number)
            if unless:
                found.assumptions.append(Assumption(f"for {name}, that {unless}", where, RACE))
        case Collision(first, second, block):
            same = "write the same block" if _is_blocked(blocks) else "write overlapping blocks at"
            reason = f"{sharing.race(first, second)} {same} {listed(block)} of {name}"
            found.objections.append(Objection(reason, where, True, RACE))
        case Undecided(reason):
            claim = f"that no two cores write the same block of {name}, whose index map {reason}"
            found.assumptions.append(Assumption(claim, where, RACE))


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
        found.objections.append(Objection(clash.reason, clash.location, True, RACE))
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
    outer = [axis for axis in sharing.prefix if axis not in sharing.axes]
    for axes, same, certain in ((sharing.axes, (), True), (outer, sharing.axes, False)):
        match collide(sharing.bounds, one, other, axes, same, sharing.most):
            case Collision(first, second, _):
                reason = (
                    f"step {listed(first)} reads a block of input {alias.input} that step {listed(second)} overwrites, "
                    f"as {name} is written over it"
                )
                found.objections.append(Objection(reason, where, certain, RACE))
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
