"""Claims about windows that hold at a glance, without isl: most windows of most kernels are like that.

Each answer is a proof; False says nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from mosaic_grid.symbolic.division import ceildiv
from mosaic_grid.symbolic.evaluate import value_of
from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.facts import leaves_of
from mosaic_grid.symbolic.nodes import Const, Param
from mosaic_grid.symbolic.problem import Grid, Window

_FEW = 256
"""How many steps are counted: beyond, isl is faster."""


def meets_array(grid: Grid, window: Window) -> bool:
    """At every step the window shows some element of its array: by the ranges of its indices."""
    spans = zip(window.index, window.block, window.array, window.strides, window.offsets, strict=True)
    for index, block, array, stride, offset in spans:
        lo, hi = index.range.lo * stride, index.range.hi * stride
        if min(lo, hi) + offset + block <= 0 or max(lo, hi) + offset >= array.range.lo:
            return False
    return True


def covered(grid: Grid, window: Window) -> bool:
    """Every block is shown by some step, if there is one.

    Each index counts a dimension of its own, far enough; the others do it together, by a count of few steps.
    """
    used: set[str] = set()
    others: list[tuple[Expr, int]] = []
    bounds = dict(zip(grid.indices, grid.bounds, strict=True))
    for axis, (index, block, array) in enumerate(zip(window.index, window.block, window.array, strict=True)):
        blocks = ceildiv(array, Const(block)).range.hi
        if not window.is_tiled(axis) or window.guards:
            return False
        if isinstance(index, Param) and index.name in bounds and index.name not in used:
            used.add(index.name)
            if bounds[index.name].range.lo < blocks:
                return False
        elif not isinstance(index, Const) or index.value or blocks > 1:
            others.append((index, blocks))
    return not others or _cover({name: bound for name, bound in bounds.items() if name not in used}, others)


def _cover(bounds: Mapping[str, Expr], indices: Sequence[tuple[Expr, int]]) -> bool:
    """Whether these indices take all values below these numbers together, in a few steps of a grid of such bounds."""
    leaves = list(dict.fromkeys(leaf for index, _ in indices for leaf in leaves_of(index)))
    steps: list[range] = []
    for leaf in leaves:
        bound = bounds.get(leaf.name) if isinstance(leaf, Param) else None
        if not isinstance(bound, Const):
            return False
        steps.append(range(bound.value))
    wanted, made = math.prod(count for _, count in indices), math.prod(map(len, steps))
    if not wanted <= made <= _FEW:
        return False
    found = set[tuple[int, ...]]()
    for place in itertools.product(*steps):
        point: dict[Expr, int] = dict(zip(leaves, place, strict=True))
        found.add(tuple(value_of(index, point) for index, _ in indices))
    return set(itertools.product(*(range(count) for _, count in indices))) <= found


def revisits_follow(grid: Grid, window: Window) -> bool:
    """No block comes back after another one: the outer dimensions choose the block, each choice one of its own."""
    moving = [name for name, bound in zip(grid.indices, grid.bounds, strict=True) if bound != Const(1)]
    own = {index.name for index in window.index if isinstance(index, Param)}
    mentioned = {name for index in window.index for name in _indices_in(index, moving)}
    outer = moving[: max((moving.index(name) + 1 for name in mentioned), default=0)]
    return own.issuperset(outer) and not any(_is_placed_anyhow(index) for index in window.index)


def _indices_in(expr: Expr, moving: list[str]) -> set[str]:
    """The grid indices in an expression, those that tables are read at included."""
    return {leaf.name for leaf in _params(expr) if leaf.name in moving}


def _params(expr: Expr) -> set[Param]:
    found: set[Param] = set()
    waiting = [expr]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Param):
            found.add(part)
        waiting.extend(part.args)
    return found


def _is_placed_anyhow(expr: Expr) -> bool:
    """Whether it reads a table at a place that isn't known, which may differ from step to step."""
    return any(not isinstance(leaf, Param) and not leaf.index for leaf in leaves_of(expr))
