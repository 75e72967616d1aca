"""What a summary says of a program, as values: the renderers add words and nothing else."""

from __future__ import annotations

import dataclasses

from mosaic_grid.errors import Place
from mosaic_grid.grid import Semantics
from mosaic_grid.symbolic import Expr
from mosaic_grid.targets import Target


@dataclasses.dataclass(frozen=True)
class Array:
    """An element type and a shape; `None` is a size that isn't static."""

    element: str
    shape: tuple[int | None, ...]

    def __str__(self) -> str:
        return f"{self.element}[{','.join('?' if n is None else str(n) for n in self.shape)}]"


@dataclasses.dataclass(frozen=True)
class DimensionSummary:
    """A dimension of the grid; `index` is its name in index maps.

    `values` are what the launches pass for a dynamic bound, and `place` is where the first of them is computed.
    """

    index: str
    bound: int | None
    semantics: Semantics
    values: tuple[Expr, ...] = dataclasses.field(default=(), compare=False)
    place: Place | None = dataclasses.field(default=None, compare=False)

    @property
    def is_parallel(self) -> bool:
        """Whether the steps may run in any order, on any core."""
        return self.semantics in (Semantics.PARALLEL, Semantics.CORE_PARALLEL)


@dataclasses.dataclass(frozen=True)
class Buffer:
    """A scalar-prefetch operand, a scratch buffer, or a semaphore array."""

    name: str
    array: Array
    space: str


@dataclasses.dataclass(frozen=True)
class WindowSummary:
    """A window: `role` is `in` or `out` with its `number` among those, or `window` where no launch tells.

    `block` is what the pipeline moves, `seen` what the kernel sees of it (without squeezed dimensions); they are the
    same for an operand that is handed over `whole`. `operand` is the array in the outer program, `None` for a bare
    kernel.
    `index_map` is a text for each dimension, in elements if `padding` (low and high, as text) is not `None`; it is left
    empty where nobody asked for it. `alias` says which operand's memory an output reuses.
    """

    role: str
    number: int
    name: str
    block: Array
    seen: Array
    space: str
    whole: bool
    operand: Array | None
    index_map: tuple[str, ...]
    padding: str | None
    buffers: int
    alias: str


@dataclasses.dataclass(frozen=True)
class Cores:
    """How many of a chip's `available` cores run a kernel, why, and what to do about it.

    `used` is `None` for a kernel that the compiler refuses. `waits` where a pass may change that; `advice` says what
    the pass would do, and `otherwise` what would do as well.
    """

    used: int | None
    available: int
    reason: str
    advice: str = ""
    waits: bool = False
    otherwise: str = ""


@dataclasses.dataclass(frozen=True)
class LaunchSummary:
    """A kernel with the launches of it that look alike; `launches` is 0 for a kernel that nothing launches.

    `place` is that of the first operation of the kernel whose line the dump knows, `launched_at` where the program
    launches it, `warn_at` the best of them for a message.
    `branch` tells it apart where the program chooses between launches at run time. `fallback` says of a launch what it
    is for that is only taken where another, which uses every core, can't be. `vmem` and `smem` are lower bounds in
    bytes for one core. `cores` is `None` for a SparseCore kernel.
    """

    symbol: str
    name: str
    core_type: str
    version: int | None
    place: Place | None
    grid: tuple[DimensionSummary, ...]
    windows: tuple[WindowSummary, ...]
    prefetch: tuple[Buffer, ...]
    scratch: tuple[Buffer, ...]
    vmem: int
    smem: int
    cores: Cores | None
    branch: str = ""
    fallback: str = ""
    launches: int = dataclasses.field(default=0, compare=False)
    launched_at: Place | None = dataclasses.field(default=None, compare=False)
    warn_at: Place | None = dataclasses.field(default=None, compare=False)


@dataclasses.dataclass(frozen=True)
class Summary:
    """A program's kernels, in the order of their launches, and what else was `found` where there are none.

    `assumed` says that nobody named the target.
    """

    launches: tuple[LaunchSummary, ...]
    target: Target | None
    found: str = ""
    assumed: bool = False
