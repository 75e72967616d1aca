"""Kernels of several programs, one for each kind of core: they run one after the other.

JAX makes one function of each program of such a kernel, `pl.kernel` with several bodies, in one module. They have their
operands and scratch in common, but what is in scratch at first is undefined for each. So the order doesn't show, unless
one signals another: that is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir

from mosaic_grid.cpu.lowering import Unsupported
from mosaic_grid.cpu.touches import nested, source_of
from mosaic_grid.program import Kernel, block_of, symbol_of

_MEETINGS = ("tpu.sem_signal", "tpu.sem_wait", "tpu.sem_read")
_REASON = "a kernel of several programs, which run one after the other on the CPU, and so can't signal each other"


def is_program(op: ir.Operation) -> bool:
    """Whether a function of a kernel's module is something that cores run, and no index map."""
    return op.name == "func.func" and ("tpu.core_type" in op.attributes or "iteration_bounds" in op.attributes)


def apart(module: ir.Operation) -> list[Kernel]:
    """The kernel of each program of a module, in place and in copies beside it; the first one has the module itself."""
    names = [symbol_of(op.operation) for op in block_of(module) if is_program(op.operation)]
    if len(names) < 2:
        return [Kernel(module)]
    modules = [module, *(module.clone().operation for _ in names[1:])]
    for name, each in zip(names, modules, strict=True):
        for op in list(block_of(each)):
            if is_program(op.operation) and symbol_of(op.operation) != name:
                op.operation.erase()
    return [Kernel(each) for each in modules]


def meetings(kernels: Sequence[Kernel]) -> list[Unsupported]:
    """Where programs may wait for each other: signals and waits of semaphores that aren't a program's own."""
    return [
        Unsupported(op.name, _REASON, op.location)
        for kernel in kernels
        for op in nested(kernel.body)
        if op.name == "tpu.sem_barrier"
        or (op.name in _MEETINGS and isinstance(source_of(op.operands[0]).owner, ir.Block))
    ]
