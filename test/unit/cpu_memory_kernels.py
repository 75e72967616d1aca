"""Kernels that use memory, in text: what the tests of loads, stores and views share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def ramp(*shape: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """Numbers from 1 on."""
    return np.arange(1, 1 + math.prod(shape)).reshape(shape).astype(dtype)


def memref(shape: str, space: str = "vmem") -> str:
    """The type of memory."""
    return f"memref<{shape}, #tpu.memory_space<{space}>>"


def kernel(arguments: str, body: str, results: str = "") -> str:
    """A function with the constants 0 to 9, `%c0` and so on, of type index, and i32 ones, `%k0` and so on."""
    constants = "".join(f"%c{n} = arith.constant {n} : index\n%k{n} = arith.constant {n} : i32\n" for n in range(10))
    return f"func.func @f({arguments}) -> ({results}) {{\n{constants}{body}\n}}"
