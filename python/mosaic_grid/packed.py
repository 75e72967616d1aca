"""What a program holds, before it is known which form it came in."""

from __future__ import annotations

from jaxlib.mlir import ir

from mosaic_grid.program import BACKEND_CONFIG, KERNEL, custom_calls, is_kernel
from mosaic_grid.unpack import is_serialized


def packed_bytes(program: ir.Operation) -> int:
    """About how much bytecode the launches hold: what reading it may take depends on it."""
    configs = (call.attributes[BACKEND_CONFIG] for call in custom_calls(program) if BACKEND_CONFIG in call.attributes)
    return sum(len(config.value) for config in configs if isinstance(config, ir.StringAttr))


def has_launches(program: ir.Operation) -> bool:
    """Whether there is something that libtpu can compile: a kernel by itself is not."""
    return not is_kernel(program) and bool(custom_calls(program))


def is_packed(program: ir.Operation) -> bool:
    """Whether some kernel is in the form in which JAX and libtpu exchange it."""
    if is_kernel(program):
        return is_serialized(program)
    return any(KERNEL not in call.attributes for call in custom_calls(program))
