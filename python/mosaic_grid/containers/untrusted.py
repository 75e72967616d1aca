"""What must be looked at before a stranger's program is worked on: kernels that crash MLIR, ops that nobody knows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from jaxlib.mlir import ir

from mosaic_grid import backend_config, guard
from mosaic_grid.backend_config import Payload
from mosaic_grid.containers import bytecode, failures
from mosaic_grid.errors import Place, UserError
from mosaic_grid.program import BACKEND_CONFIG, ProgramError, custom_calls

STABLE_MOSAIC = "stable_mosaic."
"""The portable form of kernels is a dialect that exists only in names: no context registers it."""


@contextlib.contextmanager
def reading(name: str, size: int) -> Iterator[None]:
    """Around unpacking kernels of about `size` bytes: crashes and damaged strings are told as what they are."""
    try:
        with failures.readable_strings(name), guard.reading(name, size):
            yield
    except ProgramError as error:
        raise failures.of_dump(error, name) from error


def check_kernels(program: ir.Operation, name: str) -> None:
    """Raises `UserError` at the first launch whose packed kernel would crash MLIR; one fork for the whole program.

    A `backend_config` that is no configuration of a kernel is left to `unpack`, which says why. `name` is the dump's.
    """
    with failures.readable_strings(name):
        places = _packed_kernels(program, name)
    try:
        check_payloads(list(places), list(places.values()))
    except UserError as error:
        raise failures.of_dump(error, name) from None


def _packed_kernels(program: ir.Operation, name: str) -> dict[Payload, Place]:
    """Every distinct packed kernel of a program, with the place of its first launch."""
    places: dict[Payload, Place] = {}
    for call in custom_calls(program):
        config = call.attributes.get(BACKEND_CONFIG, None)
        if not isinstance(config, ir.StringAttr):
            continue
        with contextlib.suppress(backend_config.ConfigError):
            _, payload = backend_config.split(config.value)
            places.setdefault(payload, failures.place(call.location, name))
    return places


def check_payloads(payloads: Sequence[Payload], places: Sequence[Place]) -> None:
    """Raises `UserError` at the place of the first payload whose bytes would crash MLIR; one fork for all of them."""
    pairs = zip(payloads, places, strict=True)
    parts = [(part, place) for payload, place in pairs for part in (payload.body, payload.debug_locations) if part]
    bytecode.check([part for part, _ in parts], bytecode.prepare_kernel, [place for _, place in parts])


def check_registered(module: ir.Operation, name: str) -> None:
    """Raises `UserError` at the first op of a dialect that is not known: the default of `mlir-opt`."""
    with failures.readable_strings(name):
        op = first_unregistered_op(module)
        if op is None:
            return
        message = f"'{op.name}' is of an unregistered dialect; if that is intended, pass --allow-unregistered-dialect"
        raise failures.of_dump(UserError(message, failures.place(op.location, name)), name)


def first_unregistered_op(module: ir.Operation) -> ir.Operation | None:
    """The first op, in the order of the text, that no dialect of the context defines; `stable_mosaic` ops are fine."""
    context = module.context
    known: set[str] = set()
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        name = op.name
        if name in known:
            return ir.WalkResult.ADVANCE
        if name.startswith(STABLE_MOSAIC) or context.is_registered_operation(name):
            known.add(name)
            return ir.WalkResult.ADVANCE
        found.append(op)
        return ir.WalkResult.INTERRUPT

    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found[0] if found else None
