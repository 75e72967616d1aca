"""Numbers at which arithmetic may go wrong, for the tests of the CPU lowering, and when two of them are the same."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from mosaic_grid.cpu.arrays import DTYPES, Array


def signed(number: int, width: int) -> int:
    """The low bits of a number as a signed integer."""
    half = 1 << width - 1
    return (number + half) % (2 * half) - half


def edges(width: int) -> list[int]:
    """Signed integers at which something may go wrong: around zero, the ends and powers of two."""
    middle = 2 ** (width // 2)
    top = 2 ** (width - 1)
    near = [0, 1, 2, 3, 5, 7, middle - 1, middle, top - 2, top - 1]
    return sorted({signed(n, width) for number in near for n in (number, -number, -number - 1)})


def pairs(width: int) -> tuple[Array, Array]:
    """Each edge value with each."""
    values = np.array(edges(width)).astype(DTYPES[f"i{width}"])
    left, right = np.meshgrid(values, values)
    return left.reshape(-1), right.reshape(-1)


def float_edges(kind: str) -> Array:
    """Zeros, infinities, NaN, the ends of the range, numbers around a rounding, and subnormal ones.

    Those of f32 are left out: XLA:CPU takes them for zero, as TPUs do, and bf16 has the same.
    """
    info = ml_dtypes.finfo(DTYPES[kind])
    tiny, least, greatest = float(info.tiny), float(info.smallest_subnormal), float(info.max)
    positive = [0.0, 1.0, 1 + float(info.eps), 1.5, 2.0, 3.0, 0.1, 7.25, math.inf]
    positive += [tiny, tiny / 2, least, greatest, greatest / 2]
    if kind in ("f32", "bf16"):
        positive = [number for number in positive if number == 0 or number >= tiny]
    numbers = [*positive, *(-number for number in positive), math.nan]
    with np.errstate(over="ignore", invalid="ignore"):
        return np.array(numbers, np.float64).astype(np.float32).astype(DTYPES[kind])


def float_pairs(kind: str) -> tuple[Array, Array]:
    """Each edge value with each."""
    values = float_edges(kind)
    index = np.indices((len(values), len(values))).reshape(2, -1)
    return values[index[0]], values[index[1]]


def flushed(values: Array) -> Array:
    """The numbers of f32 with zero for subnormal ones."""
    return np.where(np.abs(values) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), values), values)


def same(found: Array, expected: Array) -> bool:
    """Whether two arrays of floats hold the same numbers: zeros with their sign, any NaN for any other."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    with np.errstate(invalid="ignore"):
        a, b = found.astype(np.float64), expected.astype(np.float64)
        return bool(np.all((np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b)))))
