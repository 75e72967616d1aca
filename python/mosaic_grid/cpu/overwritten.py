"""Whether a step writes all of its output before it looks at it: then what the buffer held before doesn't matter."""

from __future__ import annotations

from jaxlib.mlir import ir

from mosaic_grid.cpu.lowering import constant_of
from mosaic_grid.cpu.rules.attributes import flag, integers
from mosaic_grid.cpu.touches import read_by
from mosaic_grid.dataflow.effects import named
from mosaic_grid.ir_types import Value

_STORES = ("vector.store", "tpu.vector_store")


def is_overwritten(body: ir.Block, memref: Value) -> bool:
    """Whether the first that happens to a memref, at every run of `body`, is a store to all of it.

    A load whose result nobody uses doesn't count: JAX writes one before each store. False says nothing.
    """
    uses = [use.owner.operation for use in memref.uses]
    users = {_within(body, op) for op in uses if not _is_dead_read(op, memref)}
    first = next((op.operation for op in body.operations if op.operation in users), None)
    return first is not None and first in uses and _stores_all(first, memref)


def _within(body: ir.Block, op: ir.Operation) -> ir.Operation:
    """The operation of `body` that another is, or is nested in."""
    while op.block != body:
        assert op.parent is not None
        op = op.parent.operation
    return op


def _is_dead_read(op: ir.Operation, memref: Value) -> bool:
    """Whether an operation only makes results of what it reads, and nobody uses them: a copy has none."""
    results = list(op.results)
    return bool(results) and read_by(op) == [memref] and not any(list(result.uses) for result in results)


def _stores_all(op: ir.Operation, memref: Value) -> bool:
    if op.name not in _STORES or op.operands[1] != memref:
        return False
    if op.name == "tpu.vector_store" and not _is_plain(op):
        return False
    vector, kind = op.operands[0].type, ir.MemRefType(memref.type)
    if not isinstance(vector, ir.VectorType) or list(vector.shape) != list(kind.shape):
        return False
    return all(constant_of(index) == 0 for index in list(op.operands)[2 : 2 + kind.rank])


def _is_plain(op: ir.Operation) -> bool:
    """Whether a store of the `tpu` dialect has neither strides nor a mask, and adds nothing up."""
    return not integers(op, "strides") and named(op, "mask") is None and not flag(op, "add")
