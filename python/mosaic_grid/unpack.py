"""Between the form JAX and libtpu exchange and the form passes see: kernels out of the `backend_config`, and back in.

`pack` is the exact inverse of `unpack`: serialization version, locations and every field of the configuration survive.
The bytes are those JAX writes (`_lower_mosaic_module_to_asm` in JAX's `tpu_custom_call.py`).
"""

from __future__ import annotations

import io
from collections.abc import Container

from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager

from mosaic_grid import backend_config, locations
from mosaic_grid.backend_config import Payload
from mosaic_grid.program import (
    BACKEND_CONFIG,
    KERNEL,
    VERSION,
    Launch,
    Program,
    ProgramError,
    attribute_of,
    block_of,
    custom_calls,
    is_kernel,
    symbol_of,
)

OWN_NAME = "mosaic.name"
"""The name a kernel module had of its own, where another symbol of the program took it; empty for none."""

_BYTECODE = b"ML\xefR"


class KernelError(ValueError):
    """Bytes that are not a Mosaic kernel this jaxlib can read; the message says why."""


def kernel_from_payload(payload: Payload, context: ir.Context) -> ir.Module:
    """The kernel as a module in the `tpu` dialect, with its locations.

    Raises `KernelError` for bytes that don't parse, or come from a newer version than this jaxlib reads.
    """
    # what isn't bytecode MLIR takes for text, and no bytes at all for a module
    if not payload.body.startswith(_BYTECODE):
        raise KernelError("it is not MLIR bytecode")
    try:
        with context:
            module = ir.Module.parse(payload.body)
            deserialize(module.operation)
            if payload.debug_locations is not None:
                locations.attach(module.operation, payload.debug_locations)
    except ir.MLIRError as error:
        raise KernelError(_reason(error)) from None
    except (ValueError, MemoryError) as error:  # `LocationsError` is one; MLIR's containers raise the others
        raise KernelError(str(error)) from None
    return module


def deserialize(kernel: ir.Operation) -> None:
    """From the portable `stable_mosaic` form to the `tpu` dialect, in place; one that is there already stays."""
    if is_serialized(kernel):
        PassManager.parse("builtin.module(mosaic-serde{serialize=false})", kernel.context).run(kernel)


def serialize(kernel: ir.Operation) -> None:
    """The inverse of `deserialize`, to the version that the kernel carries."""
    version = ir.IntegerAttr(kernel.attributes[VERSION]).value
    text = f"builtin.module(mosaic-serde{{serialize=true target-version={version}}})"
    manager = PassManager.parse(text, kernel.context)
    manager.enable_verifier(False)  # the kernel was verified, and nothing can be said against the portable form
    manager.run(kernel)


def is_serialized(kernel: ir.Operation) -> bool:
    """Whether a kernel's ops are in the `stable_mosaic` form."""
    return any(op.operation.name.startswith("stable_mosaic.") for op in block_of(kernel))


def unpack(program: ir.Operation) -> None:
    """Takes the kernels out of their launches, in place. Raises `ProgramError` at a call whose kernel isn't read."""
    for kernel in [program] if is_kernel(program) else _kernels_in(program):
        try:
            deserialize(kernel)
        except ir.MLIRError as error:
            raise ProgramError(f"this kernel can't be read: {_reason(error)}", kernel) from None
    if is_kernel(program):
        return
    symbols = {name for op in block_of(program) if (name := symbol_of(op.operation))}
    kernels: dict[Payload, str] = {}
    for call in custom_calls(program):
        if KERNEL in call.attributes:
            continue
        config, payload = _split(call)
        if payload not in kernels:
            kernels[payload] = _add_kernel(program, call, payload, symbols)
        call.attributes[BACKEND_CONFIG] = ir.StringAttr.get(config)
        call.attributes[KERNEL] = ir.FlatSymbolRefAttr.get(kernels[payload])


def pack(program: ir.Operation) -> None:
    """Puts the kernels back into their launches, in place; a bare kernel becomes `stable_mosaic` again.

    A kernel that no launch names stays where it is.
    """
    if is_kernel(program):
        _serialize(program, program)
        return
    view = Program(program)
    payloads: dict[tuple[str, bool], Payload] = {}
    for launch in view.launches:
        key = (launch.kernel.symbol, _ships_locations(launch))
        if key not in payloads:
            payloads[key] = payload_of(launch)
        launch.op.attributes[BACKEND_CONFIG] = ir.StringAttr.get(_joined(launch, payloads[key]))
        for name in [name for name in launch.op.attributes if name.startswith("mosaic.")]:
            del launch.op.attributes[name]
    for symbol in {symbol for symbol, _ in payloads}:
        view.kernels[symbol].module.erase()


def payload_of(launch: Launch) -> Payload:
    """The bytes of a launch's kernel; the kernel itself is left as it is."""
    kernel = launch.kernel.module.clone(ip=False).operation
    own_name = (
        ir.StringAttr(kernel.attributes[OWN_NAME]).value if OWN_NAME in kernel.attributes else launch.kernel.symbol
    )
    kernel.attributes["sym_name"] = ir.StringAttr.get(own_name)
    if OWN_NAME in kernel.attributes:
        del kernel.attributes[OWN_NAME]
    if not own_name:
        del kernel.attributes["sym_name"]
    _serialize(kernel, launch.op)
    debug_locations = locations.detach(kernel) if _ships_locations(launch) else None
    buffer = io.BytesIO()
    kernel.write_bytecode(buffer, desired_version=0)
    return Payload(buffer.getvalue(), debug_locations)


def _kernels_in(program: ir.Operation) -> list[ir.Operation]:
    return [op.operation for op in block_of(program) if is_kernel(op.operation)]


def _serialize(kernel: ir.Operation, at: ir.Operation) -> None:
    """`serialize`, its failures as errors at the operation `at`."""
    name = f"the kernel @{symbol_of(kernel)}" if symbol_of(kernel) else "this kernel"
    if attribute_of(kernel, VERSION, ir.IntegerAttr) is None:
        notes = [f"give its module the attribute {VERSION} = N : i64; mosaic-opt --version tells the newest N"]
        raise ProgramError(f"{name} has no {VERSION}, so it can't be packed", at, notes)
    try:
        serialize(kernel)
    except ir.MLIRError as error:
        raise ProgramError(f"{name} can't be packed: {_reason(error)}", at) from None


def _ships_locations(launch: Launch) -> bool:
    try:
        return backend_config.has_debug_locations(launch.config)
    except backend_config.ConfigError as error:
        raise ProgramError(str(error), launch.op) from None


def _joined(launch: Launch, payload: Payload) -> str:
    try:
        return backend_config.join(launch.config, payload)
    except backend_config.ConfigError as error:
        raise ProgramError(str(error), launch.op) from None


def _split(call: ir.Operation) -> tuple[str, Payload]:
    config = attribute_of(call, BACKEND_CONFIG, ir.StringAttr)
    if config is None:
        raise ProgramError("this tpu_custom_call has no backend_config string", call)
    try:
        return backend_config.split(config.value)
    except backend_config.ConfigError as error:
        raise ProgramError(str(error), call) from None


def _add_kernel(program: ir.Operation, call: ir.Operation, payload: Payload, symbols: set[str]) -> str:
    """Appends a kernel to the program under a symbol that is not taken, adds it to `symbols` and returns it."""
    try:
        module = kernel_from_payload(payload, program.context)
    except KernelError as error:
        raise ProgramError(f"the kernel of this call can't be read: {error}", call) from None
    own_name = symbol_of(module.operation)
    symbol = unique_symbol(own_name or _launch_name(call) or "kernel", symbols)
    kernel = module.operation.clone(ip=ir.InsertionPoint(program.regions[0].blocks[0])).operation
    kernel.attributes["sym_name"] = ir.StringAttr.get(symbol)
    if symbol != own_name:
        kernel.attributes[OWN_NAME] = ir.StringAttr.get(own_name or "")
    symbols.add(symbol)
    return symbol


def unique_symbol(wanted: str, taken: Container[str]) -> str:
    """`wanted`, or `wanted_0`, `wanted_1`, ... where that is taken."""
    symbol, count = wanted, 0
    while symbol in taken:
        symbol, count = f"{wanted}_{count}", count + 1
    return symbol


def _launch_name(call: ir.Operation) -> str | None:
    return ir.StringAttr(call.attributes["kernel_name"]).value if "kernel_name" in call.attributes else None


def _reason(error: ir.MLIRError) -> str:
    return error.error_diagnostics[0].message if error.error_diagnostics else str(error)
