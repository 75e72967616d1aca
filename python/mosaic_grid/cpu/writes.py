"""Which roots a part of a kernel changes: what a loop has to carry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxlib.mlir import ir

from mosaic_grid.cpu.lowering import Lowering
from mosaic_grid.cpu.roots import Kind, Root
from mosaic_grid.cpu.touches import nested, read_by, source_of, written_by
from mosaic_grid.ir_types import Value

_BESIDE = (Kind.STATE, Kind.REGISTER)


def written_roots(lowering: Lowering, operations: Sequence[ir.Operation]) -> list[Root]:
    """The roots that these operations, or what is nested in them, may write, in a fixed order.

    Roots that are made inside are not among them. What operations keep beside memory always is. So are roots that are
    read here and written elsewhere: their contents have to come out of a loop or branch again for XLA to see that they
    are read before that write, and need no copy.
    """
    found: dict[Root, None] = {root: None for root in lowering.memory.state if root.kind in _BESIDE}
    rewritten = lowering.memory.rewritten
    for op in operations:
        for inner in nested(op):
            found |= dict.fromkeys(_roots(lowering, written_by(inner)))
            found |= {root: None for root in _roots(lowering, read_by(inner)) if root in rewritten}
            if lowering.late is not None:
                found |= dict.fromkeys(_roots(lowering, lowering.late.landing(inner)))
    return list(found)


def written_arguments(body: ir.Operation) -> set[Value]:
    """The memrefs from outside a function's operations, its arguments that is, that they may write."""
    return {source_of(memref) for op in nested(body) for memref in written_by(op)}


def _roots(lowering: Lowering, memrefs: Sequence[Value]) -> Iterator[Root]:
    for memref in memrefs:
        source = source_of(memref)
        if lowering.knows(source):
            yield lowering.view(source).root
