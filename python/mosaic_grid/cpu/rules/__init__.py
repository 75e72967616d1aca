"""The rules by which operations are translated: a table for each dialect, an operation's name to its rule.

A rule gets the lowering and the operation and returns what its results are: a tensor, or a view for a memref; several
in a sequence; nothing where there are none. It raises `UnsupportedError` with a clause for a form that it doesn't know.
"""

from __future__ import annotations

from collections.abc import Mapping

from mosaic_grid.cpu.lowering import Rule
from mosaic_grid.cpu.rules import (
    arith,
    constants,
    control,
    conversions,
    convolution,
    dma,
    floats,
    gather,
    math,
    matmul,
    memory,
    mxu,
    packing,
    random,
    reductions,
    rounding,
    scan,
    scattered,
    semaphore,
    shape,
    slices,
    tpu,
    vector,
    views,
)

_TABLES = (arith.RULES, constants.RULES, control.RULES, conversions.RULES, convolution.RULES, dma.RULES,
           floats.RULES, gather.RULES, math.RULES, matmul.RULES, memory.RULES, mxu.RULES, packing.RULES,
           random.RULES, reductions.RULES, rounding.RULES, scan.RULES, scattered.RULES, semaphore.RULES, shape.RULES,
           slices.RULES, tpu.RULES, vector.RULES, views.RULES)  # fmt: skip

RULES: Mapping[str, Rule] = {name: rule for table in _TABLES for name, rule in table.items()}
"""Every operation that can be translated."""
