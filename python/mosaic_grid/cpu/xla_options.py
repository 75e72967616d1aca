"""How XLA compiles a program whose kernels run on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

SCHEDULER = "xla_cpu_scheduler_type"

COMPILER_OPTIONS: Mapping[str, str | bool] = MappingProxyType(
    {"xla_allow_excess_precision": False, SCHEDULER: "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}
)
"""What `jax.jit(f, compiler_options=dict(mosaic_grid.COMPILER_OPTIONS))` takes for a function `f` that runs kernels.

Every rounding that a kernel asks for is made: XLA may otherwise drop a conversion to a narrow float and back. And the
operations of a grid step run one after the other: most are so small that handing one to another thread takes longer.
"""
