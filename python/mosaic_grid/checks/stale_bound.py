"""`stale-bound-constant`: an output that is written at one step only, which not every grid has."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.checks.finding import EFFORT, Finding, ask
from mosaic_grid.checks.subject import Subject, name_of
from mosaic_grid.dataflow.geometry import Geometry
from mosaic_grid.dataflow.scalars import GRID_INDEX
from mosaic_grid.dataflow.step import Access
from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.grid import is_placeholder
from mosaic_grid.ir_types import Value
from mosaic_grid.program import Kernel
from mosaic_grid.symbolic.nodes import Compare, Const, Junction, Param
from mosaic_grid.symbolic.problem import Window

NAME = "stale-bound-constant"
_EQUAL = 0
"""The number of the predicate `eq`."""


def stale_bound(subject: Subject) -> Iterator[Diagnostic]:
    """One for each output whose every write waits for a constant index, where there may be no such step."""
    if not subject.kernel.on_tensor_core or not subject.launches or not _may_be_stale(subject):
        # a walk over the body takes long
        return
    step = subject.step
    if step is None or step.unknown:
        return
    outputs = max(len(launch.op.results) for launch in subject.launches)
    for number in range(max(len(subject.windows) - outputs, 0), len(subject.windows)):
        argument = subject.argument_of(number)
        writes = [access for access in step.writes if access.root.argument == argument]
        for launch in subject.launches if writes else ():
            yield from _of_the_writes(subject, subject.geometry(launch), number, writes)
        if not writes:
            yield from _of_no_write(subject, number)


def _may_be_stale(subject: Subject) -> bool:
    """Whether some index is compared with a number that may not be one of its values; `strict` takes no answer."""
    grid = subject.kernel.grid
    bounds = [dimension.bound for dimension in grid]
    static = all(bound is not None and not is_placeholder(bound) for bound in bounds) and not subject.strict
    return any(not static or value >= (bounds[axis] or 0) for axis, value, _ in _compared(subject.kernel))


def _of_the_writes(subject: Subject, geometry: Geometry, number: int, writes: Sequence[Access]) -> Iterator[Diagnostic]:
    waits = [index for access in writes if (index := _constant_index(access)) is not None]
    when = [_when(geometry, access) for access in writes]
    known = [truth for truth in when if truth is not None]
    if len(waits) < len(writes) or len(known) < len(when):
        return
    from mosaic_grid.symbolic import proofs  # isl is loaded only where there is such a guard

    # that some step writes is that a window which these steps see covers an array of one element
    some = Window((sym.constant(0),), (1,), (sym.constant(1),), guards=(sym.disjunction(*known),))
    found = ask(geometry, lambda grid: proofs.covered(grid, some, EFFORT), subject.strict)
    (axis, value), bound = waits[0], geometry.grid.bounds[waits[0][0]]
    if isinstance(found, Finding):
        yield _said(subject, found, number, f"only where grid index {axis} is {value}", (axis, bound), writes[0].op)
    elif found is not None and subject.strict:
        told = name_of(subject.summaries[0].windows[number])
        message = f"can't tell whether some step writes {told}, which waits for grid index {axis} to be {value}"
        about, why = f"window {number}", note(found.reason)
        yield subject.say(NAME, Severity.WARNING, message, about, at=writes[0].op.location, notes=[why])


def _of_no_write(subject: Subject, number: int) -> Iterator[Diagnostic]:
    """An output that nothing can write, and a comparison that no step's index passes."""
    if subject.summaries[0].windows[number].alias:
        # it keeps what it has
        return
    for axis, value, op in _compared(subject.kernel):
        bound = subject.kernel.grid[axis].bound
        if bound is not None and 0 < bound <= value:
            never = Finding(sym.Witness(), True)
            where = f"only where grid index {axis} is {value}"
            yield _said(subject, never, number, where, (axis, sym.constant(bound)), op)
            return


def _said(
    subject: Subject, found: Finding, number: int, where: str, dimension: tuple[int, sym.Expr], op: ir.Operation
) -> Diagnostic:
    axis, bound = dimension
    told = name_of(subject.summaries[0].windows[number])
    message = f"{found.where}no step writes {told}: that is done {where}, and dimension {axis} has bound {bound}"
    advice = [f"the last step is pl.num_programs({axis}) - 1, whatever the bound", found.otherwise(subject.ways)]
    notes = [note("; or ".join(filter(None, advice)))]
    return subject.say(NAME, found.severity, message, f"window {number}", at=op.location, notes=notes)


def _compared(kernel: Kernel) -> Iterator[tuple[int, int, ir.Operation]]:
    """The dimensions whose index the body tests for equality with a number other than 0, with the number and where."""
    for axis, index in enumerate(kernel.arguments[: len(kernel.grid)]):
        for use in index.uses:
            op = use.owner.operation
            if op.name == "arith.cmpi" and ir.IntegerAttr(op.attributes["predicate"]).value == _EQUAL:
                other = op.operands[1 - use.operand_number]
                number = other.owner.attributes["value"] if _is_constant(other) else None
                if isinstance(number, ir.IntegerAttr) and number.value > 0:
                    yield axis, number.value, op


def _is_constant(value: Value) -> bool:
    return isinstance(value, ir.OpResult) and value.owner.name == "arith.constant"


def _when(geometry: Geometry, access: Access) -> sym.Expr | None:
    """When a write runs, in terms of the grid; None where that depends on more."""
    return geometry.of_a_step(sym.conjunction(*access.guards))


def _constant_index(access: Access) -> tuple[int, int] | None:
    """The dimension and the number, not 0, that its index has to be for the access to run."""
    for literal in _literals(access.guards):
        match literal:
            case Compare("==", Param(name), Const(value)) if name.startswith(GRID_INDEX) and value > 0:
                return int(name.removeprefix(GRID_INDEX)), value
    return None


def _literals(guards: Iterable[sym.Expr]) -> Iterator[sym.Expr]:
    return itertools.chain.from_iterable(
        guard.operands if isinstance(guard, Junction) and guard.every else (guard,) for guard in guards
    )
