"""What a question is asked of: a grid with what is known of its unknowns, and the windows of its arrays."""

from __future__ import annotations

import dataclasses

from mosaic_grid.symbolic.contracts import Contract
from mosaic_grid.symbolic.expr import Expr

PARALLEL = frozenset({"parallel", "core_parallel", "subcore_parallel"})


@dataclasses.dataclass(frozen=True)
class Grid:
    """A grid of `bounds`, outermost first, with the meaning of each dimension ("parallel", "arbitrary", ...).

    In index maps the grid's indices are the parameters named `indices`, by default `d0`, `d1`, ...; every other one is
    an input, the same at every step. A parameter in `opaque` is no input but computed from some: not all of its values
    need occur, so that a claim is refuted only where it fails for all of them. The same holds of products, and of loads
    but from the arrays `arrays`, which are inputs: they hold whatever the contracts allow, and sums are theirs.
    Where `proofs` is False nobody asks for one: unknown then is an answer of what would be proved, too.
    Where `explains` is True a witness has what would be enough to promise.
    `at_steps` are truth values that are 1 at every step, as `n0 == ceildiv(n, 128)` for what an index map calls `n0`.
    """

    bounds: tuple[Expr, ...]
    semantics: tuple[str, ...] = ()
    contracts: tuple[Contract, ...] = ()
    opaque: frozenset[str] = frozenset()
    arrays: frozenset[str] = frozenset()
    at_steps: tuple[Expr, ...] = ()
    indices: tuple[str, ...] = ()
    proofs: bool = True
    explains: bool = False

    def __post_init__(self) -> None:
        if not self.indices:
            object.__setattr__(self, "indices", tuple(f"d{axis}" for axis in range(len(self.bounds))))

    @property
    def parallel(self) -> tuple[int, ...]:
        """The dimensions whose steps run in any order, or at once."""
        return tuple(axis for axis, meaning in enumerate(self.semantics) if meaning in PARALLEL)


@dataclasses.dataclass(frozen=True)
class Window:
    """What each step sees of an array: in each dimension elements from `index * stride + offset` on, `block` of them.

    `index` is what the index map gives, `array` the array's shape in elements. `strides` is `block` where it is not
    given, as of an ordinary window. Steps where one of the truth values `guards` is 0 see nothing.
    """

    index: tuple[Expr, ...]
    block: tuple[int, ...]
    array: tuple[Expr, ...]
    strides: tuple[int, ...] = ()
    offsets: tuple[int, ...] = ()
    guards: tuple[Expr, ...] = ()

    def __post_init__(self) -> None:
        if not self.strides:
            object.__setattr__(self, "strides", self.block)
        if not self.offsets:
            object.__setattr__(self, "offsets", (0,) * len(self.block))
        rank = len(self.block)
        ranks = len(self.index), len(self.array), len(self.strides), len(self.offsets)
        if ranks != (rank,) * 4 or min(self.block, default=1) < 1:
            parts = (self.index, self.block, self.array, self.strides, self.offsets)
            raise ValueError(f"a window of one rank and of no empty block: {parts}")

    def is_tiled(self, axis: int) -> bool:
        """Whether the blocks lie side by side from the array's beginning on, so that an index counts them."""
        return self.strides[axis] == self.block[axis] and self.offsets[axis] == 0

    def counts_like(self, other: Window, axis: int) -> bool:
        """Whether blocks of the two overlap in a dimension exactly where their indices are equal."""
        return self.strides[axis] == other.strides[axis] == self.block[axis] == other.block[axis] and (
            self.offsets[axis] == other.offsets[axis]
        )
