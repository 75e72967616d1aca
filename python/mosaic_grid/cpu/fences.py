"""Which reads XLA can be left to join with the write that follows, as in `accumulator += x`.

A read of memory that is written later is fenced: its value is made before the write. That takes a buffer, and keeps XLA
from reading, adding and writing in one go. Where the value only goes into the next write of the same memory, the write
waits for it anyway. What is said here is about speed alone: without a fence XLA makes a copy where it needs one.
"""

from __future__ import annotations

from jaxlib.mlir import ir

from mosaic_grid.cpu.touches import source_of, users_of, written_by
from mosaic_grid.dataflow.effects import Effect, effect_of
from mosaic_grid.ir_types import Value


def feeds_next_write(load: ir.Operation, memref: Value) -> bool:
    """Whether all that is computed from what `load` reads of `memref` ends in one write to the same memory.

    The write is in the load's block, and nothing in between writes that memory. So it is if nothing uses what is read.
    """
    if not any(True for result in load.results for _ in result.uses):
        return True
    source = source_of(memref)
    store = _one_store(load, source)
    if store is None:
        return False
    writers = (op for op, used in users_of(source) if used in written_by(op))
    return not any(_is_between(load, op, store) for op in writers)


def _one_store(load: ir.Operation, source: Value) -> ir.Operation | None:
    """The one operation that uses, by way of pure ones, the results of `load`, if it is a store to `source`."""
    store: ir.Operation | None = None
    seen: set[ir.Operation] = set()
    pending = [load]
    while pending:
        for result in pending.pop().results:
            for use in result.uses:
                op = use.owner.operation
                if op.block != load.block:
                    return None
                if effect_of(op) is Effect.PURE:
                    if op not in seen:
                        seen.add(op)
                        pending.append(op)
                elif (
                    effect_of(op) is not Effect.WRITE or op not in (store or op,) or source_of(op.operands[1]) != source
                ):
                    return None
                else:
                    store = op
    return store


def _is_between(first: ir.Operation, op: ir.Operation, last: ir.Operation) -> bool:
    """Whether `op`, or what it is nested in, stands between two operations of one block."""
    outer: ir.Operation | None = op
    while outer is not None and outer.block != first.block:
        outer = outer.parent
    return outer is not None and outer != last and first.is_before_in_block(outer) and outer.is_before_in_block(last)
