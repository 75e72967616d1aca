"""Kernels that copy by DMA, in text: what the tests of copies and semaphores share."""

from __future__ import annotations

from typing import Any

import numpy as np

HBM, VMEM = "memref<16x8xi32, #tpu.memory_space<hbm>>", "memref<4x8xi32, #tpu.memory_space<vmem>>"
PART = "memref<4x8xi32, #tpu.memory_space<hbm>>"
SOME_HBM, SOME_VMEM = (f"memref<?x8xi32, #tpu.memory_space<{space}>>" for space in ("hbm", "vmem"))
SEM, DMA = (f"memref<!tpu.{kind}, #tpu.memory_space<semaphore_mem>>" for kind in ("semaphore", "dma_semaphore"))
DMAS = "memref<3x!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>"
ONE = "memref<1x!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>"


def kernel(arguments: str, body: str, results: str = "", attributes: str = "") -> str:
    """A function with the constants 0 to 5, `%c0` and so on, of type index, and i32 ones, `%k0` and so on."""
    constants = "".join(f"%c{n} = arith.constant {n} : index\n%k{n} = arith.constant {n} : i32\n" for n in range(6))
    return f"func.func @f({arguments}) -> ({results}) {attributes} {{\n{constants}{body}\n}}"


def ramp(*shape: int) -> np.ndarray[Any, Any]:
    """Numbers from 1 on."""
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.int32).reshape(shape)


def copy(source: str, target: str, semaphore: str, kinds: tuple[str, str] = (PART, VMEM)) -> str:
    """The start of a copy."""
    return (
        f"tpu.enqueue_dma source({source} : {kinds[0]}) target({target} : {kinds[1]}) "
        f"target_semaphore({semaphore} : {DMA})\n"
    )


def wait(source: str, target: str, semaphore: str, kinds: tuple[str, str] = (PART, VMEM)) -> str:
    """The wait for a copy."""
    return (
        f"tpu.wait_dma source({source} : {kinds[0]}) target({target} : {kinds[1]}) "
        f"target_semaphore({semaphore} : {DMA}) {{wait_target = true}}\n"
    )


def count(name: str, semaphore: str, kind: str = DMA) -> str:
    """Reads a semaphore."""
    return f'%{name} = "tpu.sem_read"({semaphore}) : ({kind}) -> i32\n'


BLOCK = f"%p = tpu.memref_slice %h[%i, %k0] : {HBM} -> {PART}\n"
