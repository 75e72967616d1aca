"""Boxes of memory: which part of which buffer a view shows, and whether some boxes together cover another.

A box is known by a start and a size in each dimension of the whole buffer, both symbolic. Where a part can't be told, a
view says so with `box=None`, which stands for anything in the buffer when it is read, and for nothing when written.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mosaic_grid import symbolic as sym

ZERO = sym.constant(0)
ONE = sym.constant(1)
_MOST_PIECES = 64


class Root(NamedTuple):
    """A buffer, a semaphore array, or other state of a core.

    `argument` is its index among the kernel's arguments, or None for what a step makes for itself; `number` tells
    those apart.
    """

    argument: int | None
    shape: tuple[int, ...]
    number: int = 0


PRNG = Root(None, (), -1)
"""The state of the random number generator, read as a whole and written as a whole."""


class Span(NamedTuple):
    """The indices from `start` on, `size` of them."""

    start: sym.Expr
    size: sym.Expr


Box = tuple[Span, ...]


class View(NamedTuple):
    """A part of a buffer as a memref of `shape`.

    `dims` names the dimension of the root behind each dimension of the view; None where they don't correspond (after a
    reshape), so that only the whole of the view is a box again.
    """

    root: Root
    box: Box | None
    dims: tuple[int, ...] | None
    shape: tuple[sym.Expr, ...]

    def part(self, starts: Sequence[sym.Expr], sizes: Sequence[sym.Expr]) -> Box | None:
        """The box of the root behind a box of the view; None where it can't be told."""
        if self.box is None:
            return None
        if tuple(sizes) == self.shape and all(start is ZERO or start == ZERO for start in starts):
            return self.box
        if self.dims is None:
            return None
        spans = list(self.box)
        for dim, start, size in zip(self.dims, starts, sizes, strict=True):
            own = spans[dim]
            if start is not ZERO or size is not own.size:
                spans[dim] = Span(sym.add(own.start, start), size)
        return tuple(spans)

    def slice(self, starts: Sequence[sym.Expr], shape: tuple[sym.Expr, ...]) -> View:
        """The view of a box of this view."""
        box = self.part(starts, shape)
        whole = self.dims if box is not None else None
        return View(self.root, box, whole, shape)

    def squeeze(self, shape: tuple[sym.Expr, ...]) -> View:
        """The view without some dimensions of size 1."""
        if self.dims is None:
            return View(self.root, self.box, None, shape)
        dims: list[int] = []
        wanted = list(shape)
        # from the back; which of several dimensions of size 1 stays makes no difference: its only index is 0
        for dim, size in zip(reversed(self.dims), reversed(self.shape), strict=True):
            if wanted and wanted[-1] == size:
                wanted.pop()
                dims.insert(0, dim)
            elif size != ONE:
                return View(self.root, self.box, None, shape)
        return View(self.root, self.box, None if wanted else tuple(dims), shape)

    def recast(self, shape: tuple[sym.Expr, ...]) -> View:
        """The same elements in another shape or type."""
        return self if shape == self.shape else View(self.root, self.box, None, shape)

    def lost(self, shape: tuple[sym.Expr, ...]) -> View:
        """A view of nobody knows which part of the root."""
        return View(self.root, None, None, shape)


@functools.lru_cache(maxsize=1024)
def whole(root: Root) -> View:
    """All of a buffer of static shape; the part shown of one with a dynamic shape is not known."""
    shape = tuple(sym.constant(size) for size in root.shape)
    if any(size < 0 for size in root.shape):
        return View(root, None, None, shape)
    return View(root, tuple(Span(ZERO, size) for size in shape), tuple(range(len(shape))), shape)


def covered(box: Box | None, writes: Iterable[Box], shape: Sequence[int]) -> bool:
    """Whether every element of `box` is in one of the boxes `writes` of a buffer of `shape`."""
    wanted = whole(Root(None, tuple(shape))).box if box is None else box
    if wanted is None:
        return False
    pieces = [wanted]
    for write in writes:
        pieces = [rest for piece in pieces for rest in _without(piece, write, shape)]
        if not pieces:
            return True
        if len(pieces) > _MOST_PIECES:
            return False
    return not pieces


def _without(piece: Box, write: Box, shape: Sequence[int]) -> list[Box]:
    """What is left of `piece`; all of it where it isn't known which part `write` covers."""
    cuts: list[tuple[int, int] | None] = []
    for own, other, size in zip(piece, write, shape, strict=True):
        cut = _cut(own, other, size)
        if cut == _NOTHING:
            return [piece]
        cuts.append(cut)
    rest: list[Box] = []
    for axis, cut in enumerate(cuts):
        if cut is None:
            continue
        span, low, high = piece[axis], *cut
        length = sym.constant_of(span.size)
        assert length is not None  # `_cut` gives ends only for spans of known size
        for start, end in ((0, low), (high, length)):
            if start < end:
                left = Span(sym.add(span.start, sym.constant(start)), sym.constant(end - start))
                rest.append((*piece[:axis], left, *piece[axis + 1 :]))
        kept = Span(sym.add(span.start, sym.constant(low)), sym.constant(high - low))
        piece = (*piece[:axis], kept, *piece[axis + 1 :])
    return rest


_NOTHING = (0, 0)


def _cut(own: Span, other: Span, size: int) -> tuple[int, int] | None:
    """The part of `own` that `other` covers, from its start: None for all of it, `_NOTHING` where it isn't known."""
    if other.start == ZERO and other.size == sym.constant(size):
        return None  # no access is out of bounds
    offset = sym.sub(other.start, own.start)
    ends = sym.sub(sym.add(other.start, other.size), sym.add(own.start, own.size))
    if sym.range_of(offset).hi <= 0 and sym.range_of(ends).lo >= 0:
        return None
    low, length, extent = sym.constant_of(offset), sym.constant_of(own.size), sym.constant_of(other.size)
    if low is None or length is None or extent is None:
        return _NOTHING
    start, end = max(0, low), min(length, low + extent)
    return (start, end) if start < end else _NOTHING


def disjoint(a: Box | None, b: Box | None) -> bool:
    """Whether two boxes of one buffer surely share no element."""
    if a is None or b is None:
        return False
    return any(_apart(x, y) or _apart(y, x) for x, y in zip(a, b, strict=True))


def _apart(first: Span, second: Span) -> bool:
    return sym.range_of(sym.sub(second.start, sym.add(first.start, first.size))).lo >= 0
