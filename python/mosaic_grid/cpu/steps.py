"""The steps that lead from a root to a part of it: the three things that a view can do to a tensor."""

from __future__ import annotations

import dataclasses
from typing import TypeAlias

from jaxlib.mlir import ir

from mosaic_grid.cpu.build import Index


@dataclasses.dataclass(frozen=True)
class Slice:
    """`sizes` elements from `offsets` on, in every dimension.

    Where a size is only known at run time, its upper bound stands here, and the slice may stick out of the tensor: such
    a slice has to be cut further before it is read or written. `extents` are its sizes at run time then, else empty.
    """

    offsets: tuple[Index, ...]
    sizes: tuple[int, ...]
    extents: tuple[Index, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what remains."""
        return self.sizes


@dataclasses.dataclass(frozen=True)
class Reshape:
    """The same elements, in row-major order, in another shape."""

    shape: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Bitcast:
    """The same bits as elements of another type.

    Between types of different width, `shape` differs from the shape before in one dimension: neighbours along it share
    a wide element, the first of them in its low bits.
    """

    element: ir.Type
    shape: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Numbers:
    """The numbers of a type that a root holds in another form; see `stored.py`."""

    element: ir.Type
    shape: tuple[int, ...]


Step: TypeAlias = Slice | Reshape | Bitcast | Numbers
