"""MLIR bytecode: of outer programs, of bare kernels in the `stable_mosaic` form, and StableHLO portable artifacts.

Damaged bytecode can abort MLIR, so everything here goes through `guard` first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
from jaxlib.mlir.passmanager import PassManager

from mosaic_grid import guard
from mosaic_grid.containers import failures, tables
from mosaic_grid.errors import Place, UserError
from mosaic_grid.program import VERSION

MAGIC = b"ML\xefR"
PORTABLE_PRODUCER = b"StableHLO_v"
_VHLO = "vhlo."


def producer(data: bytes) -> bytes:
    """The name bytecode gives of its producer: it follows the magic and a version byte, and ends with a zero."""
    return data[5:].split(b"\0", 1)[0]


def is_portable(data: bytes) -> bool:
    """Whether bytecode is a StableHLO portable artifact (VHLO, which must be converted after it is parsed)."""
    return producer(data).startswith(PORTABLE_PRODUCER)


def check(bodies: Sequence[bytes], prepare: guard.Prepare, names: Sequence[str | Place]) -> None:
    """Raises `UserError` at the first of `bodies` that MLIR's reader would not survive; `names` say where each is."""
    for body, name in zip(bodies, names, strict=True):
        if tables.overflow(body):
            raise UserError(guard.CRASHES, name if isinstance(name, Place) else Place(name))
    guard.check_bytecode(bodies, prepare, names)


def parse(data: bytes, name: str, context: ir.Context) -> ir.Operation:
    """The module in MLIR bytecode, as it stands there. Raises `UserError` for damaged data."""
    check([data], prepare_kernel, [name])
    try:
        with guard.reading(name, len(data)):
            module = ir.Module.parse(data, context=context).operation
            names = read_names(module)
    except ir.MLIRError as error:
        raise failures.user_error(error, name, "this MLIR bytecode can't be read") from None
    except (ValueError, MemoryError) as error:
        # A damaged size: C++ could not allocate that much.
        raise UserError(f"this MLIR bytecode can't be read: {error}", Place(name)) from None
    # A portable artifact, whoever produced it.
    return parse_portable(data, name, context) if any(op.startswith(_VHLO) for op in names) else module


def parse_portable(data: bytes, name: str, context: ir.Context) -> ir.Operation:
    """The StableHLO module in a portable artifact. Raises `UserError` for damaged data or a version that is too new."""
    check([data], prepare_portable, [name])
    said: list[str] = []

    def hear(diagnostic: ir.Diagnostic) -> bool:
        said.append(diagnostic.message)
        return True

    # The binding raises an error without a reason; the reason goes to the context's handlers.
    handler: Any = context.attach_diagnostic_handler(hear)
    try:
        with guard.reading(name, len(data)):
            module = stablehlo.deserialize_portable_artifact(context, data).operation
            names = read_names(module)
    except (ValueError, MemoryError):
        reason = said[0] if said else "no reason given"
        message = f"this StableHLO portable artifact can't be read: {reason}"
        writer = producer(data).decode("ascii", "replace")
        versions = f"it was written by {writer}, and jaxlib reads up to v{stablehlo.get_current_version()}"
        raise UserError(message, Place(name), (versions,)) from None
    finally:
        handler.detach()
    if left := sorted(op for op in names if op.startswith(_VHLO)):
        message = f"this StableHLO portable artifact can't be read: '{left[0]}' has no equivalent in StableHLO"
        raise UserError(message, Place(name))
    return module


def prepare_portable(context: ir.Context, data: bytes) -> None:
    """What is tried on a portable artifact in a child process before it is read here."""
    try:
        module = stablehlo.deserialize_portable_artifact(context, data)
    except ValueError:
        return  # refused in an orderly way
    _use(module.operation)


def prepare_kernel(context: ir.Context, body: bytes) -> None:
    """What is tried on a module, a kernel's body or its locations in a child process before they are read here."""
    module = ir.Module.parse(body, context=context)
    read_names(module.operation)
    if VERSION in module.operation.attributes:
        PassManager.parse("builtin.module(mosaic-serde{serialize=false})", context).run(module.operation)
    _use(module.operation)


def read_names(module: ir.Operation) -> frozenset[str]:
    """The names of all ops. The bindings abort where one is not UTF-8, so better here than in a pass."""
    names: set[str] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        names.add(op.name)
        return ir.WalkResult.ADVANCE

    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    return frozenset(names)


def _use(module: ir.Operation) -> None:
    """Does what will be done with any module."""
    module.verify()
    read_names(module)
    module.get_asm(enable_debug_info=True)
