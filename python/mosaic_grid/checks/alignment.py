"""`unproven-alignment`: a slice of several rows, or of lanes, that begins at a number which is read at run time.

Established with libtpu 0.0.50: it refuses a vector load or store in VMEM whose index isn't provably a multiple of 8 in
the last dimension but one, where it has more than one row, or of 128 in the last. A number just read is neither.
"""

from __future__ import annotations

from collections.abc import Iterator

from jaxlib.mlir import ir

from mosaic_grid import memory
from mosaic_grid.checks.subject import Subject
from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.ir_types import Value

NAME = "unproven-alignment"
_LOADS = frozenset({"vector.load", "tpu.vector_load"})
_STORES = frozenset({"vector.store", "tpu.vector_store"})
_TILE = (8, 128)
"""What an index in the last two dimensions has to be a multiple of."""


def alignment(subject: Subject) -> Iterator[Diagnostic]:
    """An error for each access at such an index."""
    kernel = subject.kernel
    if not kernel.on_tensor_core:
        return
    for argument in kernel.arguments[len(kernel.grid) :]:
        kind = argument.type
        if not isinstance(kind, ir.MemRefType) or memory.space_of(kind) != memory.SMEM:
            continue
        for number in _numbers_read(argument):
            yield from _of_the_number(subject, number)


def _numbers_read(table: Value) -> Iterator[Value]:
    """What is read from a buffer in SMEM, and the same as an index."""
    for use in table.uses:
        op = use.owner.operation
        if op.name == "memref.load":
            yield op.results[0]
            for cast in op.results[0].uses:
                if cast.owner.operation.name == "arith.index_cast":
                    yield cast.owner.operation.results[0]


def _of_the_number(subject: Subject, number: Value) -> Iterator[Diagnostic]:
    for use in number.uses:
        op = use.owner.operation
        if op.name not in _LOADS | _STORES:
            continue
        base = 0 if op.name in _LOADS else 1
        buffer, moved = op.operands[base], (op.results if op.name in _LOADS else op.operands)[0].type
        kind = buffer.type
        if not isinstance(buffer, ir.BlockArgument) or not isinstance(kind, ir.MemRefType):
            continue
        if memory.space_of(kind) != memory.VMEM or kind.rank < 2 or not isinstance(moved, ir.VectorType):
            continue
        axis = use.operand_number - base - 1
        place = axis - (kind.rank - 2)
        if moved.rank != kind.rank or place not in (0, 1) or moved.shape[axis] < 2:
            continue
        what = "reads from" if base == 0 else "writes to"
        multiple = _TILE[place]
        message = (
            f"the kernel {what} a buffer at an index in dimension {axis} that it has just read, and the compiler takes "
            f"only one that is proved to be a multiple of {multiple}"
        )
        advice = (
            f"if it always is one, say pl.multiple_of(index, {multiple}), or keep the quotient and multiply by "
            f"{multiple}; else read whole tiles and shift them"
        )
        yield subject.say(NAME, Severity.ERROR, message, f"dimension {axis}", at=op.location, notes=[note(advice)])
