"""Whether counting several dimensions together pays: it evens out the shares, and costs a division or two a step."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

from jaxlib.mlir import ir

from mosaic_grid.partition.plan import BoundFacts
from mosaic_grid.partition.split import Split
from mosaic_grid.program import Kernel

DIVISION_BUNDLES = 60
"""What dividing by a value known at run time costs the scalar unit, in bundles of libtpu's schedule (measured, v5p)."""

VREG_ELEMENTS = 1024
"""Elements of 32 bits in a vector register of v2 to v6: 8 sublanes of 128 lanes."""

MXU_ROWS = 8
"""Rows of the left operand that a matrix unit of 128 by 128 takes in one bundle."""

SCANNED = 4
"""Bounds are tried up to this many times the cores: beyond it the shares of a split differ by less than a tenth."""

TRIED = 10_000
"""Combinations of bounds that are tried at most; with many dimensions it is fewer bounds of each."""


def step_bundles(kernel: Kernel) -> int:
    """A rough lower bound of a step's bundles: one for each vector register an op makes, and those of its matmuls.

    Only an order of magnitude is wanted of it; loops count once.
    """
    total = 0

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal total
        total += _matmul_bundles(op) if op.name == "tpu.matmul" else _vector_bundles(op)
        return ir.WalkResult.ADVANCE

    kernel.body.walk(visit)
    return total


def division_overhead_percent(kernel: Kernel, split: Split) -> int:
    """What the divisions of a joint split add to a step, in percent of it, rounded up.

    Every index map and the body divide once for each shared dimension but the first.
    """
    divisions = (len(split.axes) - 1) * DIVISION_BUNDLES
    return -(-100 * divisions // max(step_bundles(kernel), 1))


def linearizing_pays(kernel: Kernel, split: Split, facts: Mapping[int, BoundFacts]) -> bool:
    """Whether there are bounds for which the joint split beats the best split of one dimension, divisions included."""
    overhead = 1 + division_overhead_percent(kernel, split) / 100
    top = min(SCANNED * split.cores, max(int(TRIED ** (1 / len(split.axes))), 2))
    choices = [_bounds_of(split, axis, facts, top) for axis in split.axes]
    return any(
        _largest_joint(n, split.cores) * overhead < _largest_single(n, split.cores) for n in itertools.product(*choices)
    )


def _bounds_of(split: Split, axis: int, facts: Mapping[int, BoundFacts], top: int) -> range:
    static = split.grid[axis].bound
    if static is not None:
        return range(static, static + 1)
    known = facts.get(axis)
    low, high = (known.low, known.high) if known else (1, top)
    return range(max(low, 1), min(high, max(low, 1) + top) + 1)


def _largest_joint(bounds: tuple[int, ...], cores: int) -> int:
    return -(-math.prod(bounds) // cores)


def _largest_single(bounds: tuple[int, ...], cores: int) -> int:
    """The largest share of the best split of one dimension; all steps where none has a step for each core."""
    total = math.prod(bounds)
    shares = [-(-bound // cores) * (total // bound) for bound in bounds if bound >= cores]
    return min(shares, default=total)


def _vector_bundles(op: ir.Operation) -> int:
    return sum(-(-math.prod(kind.shape) // VREG_ELEMENTS) for kind in _vectors(op))


def _vectors(op: ir.Operation) -> list[ir.VectorType]:
    return [kind for result in op.results if isinstance(kind := result.type, ir.VectorType)]


def _matmul_bundles(op: ir.Operation) -> int:
    result = _vectors(op)
    operand = op.operands[0].type
    if not result or not isinstance(operand, ir.VectorType):
        return 0
    rows, columns = result[0].shape[-2:]
    depth = math.prod(operand.shape) // max(rows, 1)
    return -(-rows // MXU_ROWS) * -(-columns // 128) * -(-depth // 128)
