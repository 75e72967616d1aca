"""Arithmetic on indices beyond sums and products. What is known stays a Python integer, and no operation is left."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.build import Index

_DEPTH = 8
"""How many operations `alignment` looks back."""


def known(index: Index) -> Index:
    """The index as a Python integer if it is a constant of the program that is built."""
    if isinstance(index, int):
        return index
    owner = index.owner
    if isinstance(owner, ir.Operation | ir.OpView) and owner.name == "stablehlo.constant":
        return int(ir.DenseIntElementsAttr(owner.attributes["value"])[0])
    return index


def subtract(left: Index, right: Index) -> Index:
    """The difference."""
    if isinstance(right, int):
        return build.add_index(left, -right)
    return hlo.subtract(build.as_value(left), right)


def divide(index: Index, divisor: int) -> Index:
    """The quotient of an index that is not negative, rounded down."""
    if isinstance(index, int):
        return index // divisor
    return index if divisor == 1 else hlo.divide(index, build.i32(divisor))


def remainder(index: Index, divisor: int) -> Index:
    """The remainder of an index that is not negative."""
    if isinstance(index, int):
        return index % divisor
    return 0 if divisor == 1 else hlo.remainder(index, build.i32(divisor))


def total(indices: Iterable[Index]) -> Index:
    """The sum."""
    result: Index = 0
    for index in indices:
        result = build.add_index(result, index)
    return result


def product(indices: Iterable[Index]) -> Index:
    """The product."""
    result: Index = 1
    for index in indices:
        result = build.multiply_index(result, index)
    return result


def row_major(offsets: Iterable[Index], shape: Iterable[Index]) -> Index:
    """The position in row-major order of the element at `offsets`."""
    result: Index = 0
    for offset, size in zip(offsets, shape, strict=True):
        result = build.add_index(build.multiply_index(result, size), offset)
    return result


def alignment(index: Index, depth: int = _DEPTH) -> int:
    """A power of two that divides the index for certain: a wrap around in 32 bits leaves that so. Of 0 it is 2**31."""
    if isinstance(index, int):
        return math.gcd(index, 2**31)
    owner = index.owner
    if not isinstance(owner, ir.Operation | ir.OpView) or depth == 0:
        return 1
    if owner.name == "stablehlo.constant":
        found = known(index)
        return alignment(found) if isinstance(found, int) else 1
    combine = _ALIGNMENT.get(owner.name)
    return combine(*(alignment(operand, depth - 1) for operand in owner.operands)) if combine is not None else 1


_ALIGNMENT: dict[str, Callable[[int, int], int]] = {
    "stablehlo.add": min,
    "stablehlo.subtract": min,
    "stablehlo.multiply": lambda left, right: min(left * right, 2**31),
    "stablehlo.and": max,
}
