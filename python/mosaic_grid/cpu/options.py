"""How a kernel is to be run."""

from __future__ import annotations

import dataclasses
from typing import Literal


@dataclasses.dataclass(frozen=True)
class Options:
    """The choices that the hardware leaves open, or hides.

    `uninitialized` is what memory holds that nobody wrote: NaN (the least number, for integers) or zero. `dma` says
    when a local copy happens: when it is started, or only when it is waited for. `interleave` is the seed of the order
    in which cores take turns, step by step; without it they run one after the other. `precision` is that of a matmul
    of f32 numbers without one of its own: exact, or rounded to bf16 as the matrix unit does.
    """

    uninitialized: Literal["nan", "zero"] = "nan"
    dma: Literal["early", "late"] = "early"
    interleave: int | None = None
    precision: Literal["f32", "bf16"] = "f32"
