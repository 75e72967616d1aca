"""What a step of a split dimension would hand to another step: scratch, other memory it changes, copies under way."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence

from jaxlib.mlir import ir

from mosaic_grid.dataflow.freshness import Steps
from mosaic_grid.dataflow.memory import PRNG, Root
from mosaic_grid.dataflow.scalars import GRID_INDEX
from mosaic_grid.dataflow.step import Access
from mosaic_grid.dataflow.uses import may_be_chosen_away
from mosaic_grid.legality.sharing import Sharing, has_blocks, is_own_memory, is_semaphore
from mosaic_grid.objections import Objection
from mosaic_grid.symbolic.nodes import Compare, Const, Junction, Not, Param

CARRIED = "carried-scratch"


def carried_state(sharing: Sharing, steps: Steps, private: Collection[int]) -> Iterator[Objection]:
    """Memory that a step may read before it, or a step before it on the same core for the same index, has written it.

    The outputs `private`, whose blocks belong to one index of the split dimensions each, are left out: a block starts
    with undefined contents.
    """
    written = {access.root for found in steps.walks for access in found.writes}
    reported: set[Root] = set()
    for found in steps.walks:
        for access, before in found.uncovered:
            root = access.root
            if root in reported or root not in written or not _is_kept(sharing, root, private):
                continue
            reported.add(root)
            yield _explained(sharing, steps, access, before if found is steps.first else None)
    yield from _shared_scratch(sharing, steps)
    yield from _moving_tables(sharing, steps)


def unfinished_copies(sharing: Sharing, steps: Steps) -> Iterator[Objection]:
    """Semaphores of the kernel whose count may differ between the begin and the end of a step."""
    reported: set[Root] = set()
    for root, op in steps.later.unmatched:
        if root.argument is None or root in reported:
            continue
        reported.add(root)
        name = sharing.name(root.argument)
        reason = f"can't show that each copy or signal on {name} is waited for in the step that starts it"
        yield Objection(reason, op.location, False, CARRIED, advice=_self_contained(sharing, op))


def _self_contained(sharing: Sharing, op: ir.Operation) -> str:
    """How copies may run ahead of what uses them, and the dimension may be shared all the same."""
    last = sharing.axes[-1]
    if _is_in_loop(op):
        return (
            "copies under way from one iteration of a loop to the next are followed if it has 32 iterations at most, "
            "and a constant number of them"
        )
    inner = [axis for axis in range(last + 1, len(sharing.bounds)) if sharing.bounds[axis] != 1]
    if inner:
        first = " and ".join(f"program_id({axis})" for axis in inner)
        are = "are" if len(inner) > 1 else "is"
        return (
            f"to share dimension {last}, let copies run ahead within one index of it only: start the first one where "
            f"{first} {are} 0, and none for the step after the last"
        )
    return (
        f"to share dimension {last}, wait in each step for the copies it starts; or write it as two dimensions, the "
        "first one parallel with a step for each core: start the first copy where the second index is 0, and none for "
        "the step after its last"
    )


def _is_in_loop(op: ir.Operation) -> bool:
    parent = op.parent
    while parent is not None and parent.operation.name not in ("scf.for", "scf.while"):
        parent = parent.operation.parent
    return parent is not None


def _is_kept(sharing: Sharing, root: Root, private: Collection[int]) -> bool:
    """Whether memory outlives a step, on the core, and isn't judged by where it lies in an array."""
    if root is PRNG:
        return True
    if root.argument is None:
        return False
    argument = sharing.kernel.arguments[root.argument]
    if is_semaphore(argument) or not is_own_memory(argument) or root.argument in private:
        return False
    if sharing.first_window + sharing.inputs <= root.argument < sharing.first_scratch:
        return has_blocks(sharing.kernel.windows[root.argument - sharing.first_window])
    return True


def _explained(sharing: Sharing, steps: Steps, access: Access, before: Sequence[Access] | None) -> Objection:
    """`before` are the writes that come before the read in the first step; None where it is a later step that reads."""
    dimension = sharing.axes[-1]
    name = "the random number generator's state" if access.root.argument is None else sharing.name(access.root.argument)
    location = access.op.location
    sure = before is not None and not access.guards and not may_be_chosen_away(access.op)
    if sure and before:
        axes = [_only_at_zero(write, sharing) for write in before]
        if axes[0] is not None and len(set(axes)) == 1:
            k = axes[0]
            reason = f"{name} is initialised only where grid index {k} is 0, so its value crosses dimension {k}"
            return Objection(reason, location, True, CARRIED)
    if sure and not before and _written_always(steps, access.root):
        reason = f"{name} is read before it is written, so its value crosses dimension {dimension}"
        return Objection(reason, location, True, CARRIED)
    reason = f"can't show that {name} is written before it is read within one step of dimension {dimension}"
    return Objection(reason, location, False, CARRIED)


def _only_at_zero(write: Access, sharing: Sharing) -> int | None:
    """The dimension, up to the last split one, whose index must be 0 for this write to run."""
    literals = itertools.chain.from_iterable(
        guard.operands if isinstance(guard, Junction) and guard.every else (guard,) for guard in write.guards
    )
    for literal in literals:
        match literal:
            # an index of two steps is a truth value: it is 0 where its negation is 1
            case Compare("==" | "<=", Param(name), Const(0)) | Not(Param(name)) if name.startswith(GRID_INDEX):
                return int(name.removeprefix(GRID_INDEX))
    return None


def _written_always(steps: Steps, root: Root) -> bool:
    return any(access.root == root and not access.guards for found in steps.walks for access in found.writes)


def _moving_tables(sharing: Sharing, steps: Steps) -> Iterator[Objection]:
    """Prefetch operands that the body changes and an index map reads: the next steps' blocks depend on it."""
    maps = [function for function in sharing.kernel.functions.values() if function != sharing.kernel.body]
    written = {access.root.argument: access for found in steps.walks for access in found.writes}
    for number in range(len(sharing.kernel.grid), sharing.first_window):
        arguments = [function.regions[0].blocks[0].arguments for function in maps]
        used = any(number < len(given) and any(True for _ in given[number].uses) for given in arguments)
        if number in written and used:
            reason = f"{sharing.name(number)} is changed by the kernel and read by an index map"
            yield Objection(reason, written[number].op.location, False, CARRIED)


def _shared_scratch(sharing: Sharing, steps: Steps) -> Iterator[Objection]:
    """Scratch outside a core's own memory: nothing says that every core has one."""
    used = {access.root.argument: access for found in steps.walks for access in (*found.reads, *found.writes)}
    for number in range(sharing.first_scratch, len(sharing.kernel.arguments)):
        if number in used and not is_own_memory(sharing.kernel.arguments[number]):
            reason = f"{sharing.name(number)} lies in memory that the cores share"
            yield Objection(reason, used[number].op.location, False, CARRIED)
