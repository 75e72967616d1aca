"""How many bytes a kernel's buffers take at least: elements packed without a gap.

Mosaic pads each buffer to whole tiles, which only makes it larger; how it tiles is not decided before it compiles.
"""

from __future__ import annotations

import math

from jaxlib.mlir import ir

from mosaic_grid.program import Window

VMEM = "vmem"
SMEM = "smem"
SEMAPHORES = "semaphore_mem"
UNSPECIFIED = "unspecified"
_PREFIX = "#tpu.memory_space<"


def space_of(buffer: ir.MemRefType) -> str:
    """The memory a buffer is in, as Mosaic names it: `vmem`, `smem`, `any`, `hbm`, `semaphore_mem`, ..."""
    space = buffer.memory_space
    return UNSPECIFIED if space is None else str(space).removeprefix(_PREFIX).removesuffix(">")


def bits_of(element: ir.Type) -> int | None:
    """The width of an element, `None` for what has none that is known (a semaphore)."""
    if isinstance(element, ir.IndexType):
        return 32
    return element.width if isinstance(element, ir.IntegerType | ir.FloatType) else None


def bytes_of(buffer: ir.MemRefType) -> int:
    """The bytes of a buffer with its elements packed, rounded up to whole bytes.

    A semaphore takes none, for it isn't in data memory, and neither does a buffer whose size isn't static.
    """
    bits = bits_of(buffer.element_type)
    if bits is None or not buffer.has_static_shape:
        return 0
    return -(-math.prod(buffer.shape) * bits // 8)


def buffers_of(window: Window, moves: bool) -> int:
    """How many copies of a window there are: two, to transfer one while the kernel works on the other.

    One is enough for a window that never moves or asks for `#tpu.pipeline_mode<synchronous>`; an operand that is handed
    over whole is there once. It is what libtpu 0.0.50 reports where it runs out of memory ("This allocation is single
    buffered"); a window that asks for two and never moves gets one, too.
    """
    mode = str(window.params["pipeline_mode"]) if "pipeline_mode" in window.params else ""
    return 1 if not moves or "synchronous" in mode else 2
