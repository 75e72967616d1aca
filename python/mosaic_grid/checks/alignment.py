"""`unproven-alignment`: a vector is loaded or stored at an index that the compiler can't prove to be at a tile.

Established with libtpu 0.0.50: it takes an index in the last two dimensions of a buffer in VMEM if it is a constant, or
proves by the rules of `dataflow.multiples` that it is a multiple of the tile: of 128 lanes, and of rows as in `_rows`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from jaxlib.mlir import ir

from mosaic_grid import memory
from mosaic_grid import symbolic as sym
from mosaic_grid.checks.finding import Finding
from mosaic_grid.checks.in_launch import InLaunch
from mosaic_grid.checks.subject import Subject
from mosaic_grid.dataflow.accesses import Touch, accesses_of
from mosaic_grid.dataflow.body import events_in
from mosaic_grid.dataflow.effects import Effect
from mosaic_grid.dataflow.events import Event
from mosaic_grid.dataflow.multiples import constant, is_multiple
from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.ir_types import Value
from mosaic_grid.legality.sharing import listed

NAME = "unproven-alignment"
_LOADS = frozenset({"vector.load", "tpu.vector_load"})
_STORES = frozenset({"vector.store", "tpu.vector_store"})
_MOVES = _LOADS | _STORES
_VIEWS = frozenset({"tpu.memref_slice", "tpu.memref_squeeze"})
_LANES = 128


@dataclasses.dataclass(frozen=True)
class _Unproven:
    """A load or a store whose index in dimension `axis` of its buffer isn't proved to be a multiple of `multiple`."""

    op: ir.Operation
    axis: int
    multiple: int


def alignment(subject: Subject) -> Iterator[Diagnostic]:
    """An error for each access at such an index that a step may reach."""
    kernel = subject.kernel
    if not kernel.on_tensor_core or len(kernel.body.regions[0].blocks) != 1:
        return
    # most indices are constants, so that nothing is left to look at
    suspects = {event.op: unproven for event in events_in(kernel) if (unproven := list(_unproven(event)))}
    if not suspects:
        return
    found: dict[ir.Operation, list[_Unproven]] = {}
    for buffer in (*kernel.arguments[len(kernel.grid) :], *_own_buffers(subject)):
        if isinstance(buffer.type, ir.MemRefType) and memory.space_of(buffer.type) == memory.VMEM:
            found.update((op, suspects[op]) for op in _accesses(buffer) if op in suspects)
    if not found:
        return
    touched: dict[ir.Operation, list[Touch]] = {}
    for touch in accesses_of(kernel).touches:
        touched.setdefault(touch.op, []).append(touch)
    for op, unproven in found.items():
        for each in unproven:
            starts = [(touch, touch.starts[each.axis]) for touch in touched.get(op, ())]
            # what is one constant in every run may be one to the compiler, too
            if len({start for _, start in starts}) > 1 or any(sym.constant_of(start) is None for _, start in starts):
                yield _said(subject, each, starts)


def _own_buffers(subject: Subject) -> list[Value]:
    """What the body allocates, as `pl.run_scoped` does."""
    return [value for each in events_in(subject.kernel) if each.effect is Effect.PRIVATE for value in each.results]


def _accesses(buffer: Value) -> Iterator[ir.Operation]:
    """The loads and stores of a buffer and of views on it that leave its tiles as they are."""
    for use in buffer.uses:
        op = use.owner.operation
        if op.name in _LOADS or (op.name in _STORES and use.operand_number == 1):
            yield op
        elif (
            op.name in _VIEWS and ir.MemRefType(op.results[0].type).shape[-2:] == ir.MemRefType(buffer.type).shape[-2:]
        ):
            yield from _accesses(op.results[0])


def _unproven(event: Event) -> Iterator[_Unproven]:
    op = event.op
    if event.name not in _MOVES or event.touch.starts is not None:
        return
    first = 0 if event.name in _LOADS else 1
    moved, kind = (event.operands if first else event.results)[0].type, ir.MemRefType(event.operands[first].type)
    if kind.rank < 2 or not isinstance(moved, ir.VectorType) or moved.rank != kind.rank:
        return
    rows, lanes = kind.shape[-2:]
    for axis, multiple in (
        (kind.rank - 2, _rows(kind.element_type, rows, moved.shape[-2])),
        (kind.rank - 1, _LANES if lanes >= _LANES else 1),
    ):
        index = event.operands[first + 1 + axis]
        if multiple > 1 and constant(index) is None and is_multiple(index, multiple) is False:
            yield _Unproven(op, axis, multiple)


def _rows(element: ir.Type, rows: int, moved: int) -> int:
    """What the index of the first row has to be a multiple of, in a buffer of so many rows; 1 where it needn't be one.

    A tile has 8 rows, or as many as a register holds where they fill the buffer; a small buffer is one tile.
    """
    bits = element.width if isinstance(element, ir.IntegerType | ir.FloatType) else 0
    if bits == 32 and moved == 1:
        return 1
    if rows < 8:
        return {32: rows, 16: rows, 8: 4}.get(bits, 1) if rows in (2, 4) else 1
    dense = 256 // bits if bits in (4, 8) else 8
    return dense if rows % dense == 0 else 8


def _said(subject: Subject, unproven: _Unproven, starts: Sequence[tuple[Touch, sym.Expr]]) -> Diagnostic:
    what = "writes to" if starts[0][0].writes else "reads from"
    multiple, axis = unproven.multiple, unproven.axis
    message = (
        f"the kernel {what} a buffer at an index in dimension {axis} that the compiler can't prove to be a multiple of "
        f"{multiple}"
    )
    why, advice = _why(subject, multiple, starts)
    notes = [note(text) for text in (why, advice) if text]
    return subject.say(NAME, Severity.ERROR, message, f"dimension {axis}", at=unproven.op.location, notes=notes)


def _why(subject: Subject, multiple: int, starts: Sequence[tuple[Touch, sym.Expr]]) -> tuple[str, str]:
    """Whether the index always is a multiple, or where it isn't; and what to do."""
    say = f"pl.multiple_of(index, {multiple})"
    shift = f"begin at multiples of {multiple}, or read whole tiles and shift them"
    unknown = not subject.launches
    for launch in subject.launches:
        seen = InLaunch(subject, launch)
        for touch, start in starts:
            index = seen.read(start)
            off = sym.comparison("!=", sym.mod(index, sym.constant(multiple)), sym.constant(0))
            reached = [seen.read(truth) for truth in (*touch.guards, *touch.assumed)]
            found = seen.never((off,), reached, (index,))
            if isinstance(found, Finding):
                return f"{found.where}step {listed(found.witness.points[0][1])} has it at {found.shown}", shift
            unknown |= found is not None
    if unknown:
        return "", f"if it always is one, say {say}, or keep the quotient and multiply by {multiple}; else {shift}"
    return "it always is one, by operations that the compiler doesn't follow or by contracts", f"say {say}"
