"""Which memory an operation of a kernel reads and writes, by its operands."""

from __future__ import annotations

from collections.abc import Iterator

from jaxlib.mlir import ir

from mosaic_grid.dataflow.effects import EFFECTS, Effect, named
from mosaic_grid.ir_types import Value

_NOTHING = frozenset(
    {Effect.PURE, Effect.HINT, Effect.CONTROL, Effect.END, Effect.PRIVATE, Effect.VIEW, Effect.SEED, Effect.RANDOM}
)
_ROLES: dict[Effect, tuple[tuple[int, ...], tuple[int, ...]]] = {
    Effect.READ: ((0,), ()),
    Effect.READ_SCATTERED: ((0,), ()),
    Effect.WRITE: ((), (1,)),
    Effect.WRITE_SCATTERED: ((), (1,)),
    Effect.SIGNAL: ((), (0,)),
    Effect.SEM_WAIT: ((), (0,)),
    Effect.SEM_READ: ((0,), ()),
}
"""Which operands are read, and which are written. What is written may be read as well."""

_SEMAPHORES = ("semaphore", "source_semaphore", "target_semaphore")


def read_by(op: ir.Operation) -> list[Value]:
    """The memrefs that an operation reads and doesn't write; what is nested in it isn't looked at."""
    effect = EFFECTS.get(op.name, Effect.UNKNOWN)
    if effect is Effect.COPY_START:
        return _operands(op, ("source", "offsets"))
    return [op.operands[number] for number in _ROLES[effect][0]] if effect in _ROLES else []


def written_by(op: ir.Operation) -> list[Value]:
    """The memrefs that an operation may write; what is nested in it isn't looked at."""
    effect = EFFECTS.get(op.name, Effect.UNKNOWN)
    if effect in _NOTHING:
        return []
    if effect in _ROLES:
        return [op.operands[number] for number in _ROLES[effect][1]]
    if effect is Effect.COPY_START:
        return _operands(op, ("target", *_SEMAPHORES))
    if effect is Effect.COPY_WAIT:
        return _operands(op, _SEMAPHORES)
    return [value for value in op.operands if isinstance(value.type, ir.MemRefType)]


def source_of(memref: Value) -> Value:
    """The memref that a chain of views starts from: an argument, or what allocated it."""
    owner = memref.owner
    while isinstance(owner, ir.Operation | ir.OpView) and EFFECTS.get(owner.name) is Effect.VIEW:
        memref = owner.operands[0]
        owner = memref.owner
    return memref


def users_of(memref: Value) -> Iterator[tuple[ir.Operation, Value]]:
    """Every operation that uses a memref or a view of it, with what it uses."""
    for use in memref.uses:
        op = use.owner.operation
        yield op, memref
        if EFFECTS.get(op.name) is Effect.VIEW:
            yield from users_of(op.results[0])


def nested(op: ir.Operation) -> Iterator[ir.Operation]:
    """An operation and all that are nested in it."""
    yield op
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from nested(inner.operation)


def _operands(op: ir.Operation, names: tuple[str, ...]) -> list[Value]:
    found = [named(op, name) for name in names]
    return [value for value in found if value is not None and isinstance(value.type, ir.MemRefType)]
