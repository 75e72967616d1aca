"""Claims about windows that hold at a glance, without isl: most windows of most kernels are like that.

Each answer is a proof; False says nothing.
"""

from __future__ import annotations

from mosaic_grid.symbolic.division import ceildiv
from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.facts import leaves_of
from mosaic_grid.symbolic.nodes import Const, Param
from mosaic_grid.symbolic.problem import Grid, Window


def meets_array(grid: Grid, window: Window) -> bool:
    """At every step the window shows some element of its array: by the ranges of its indices."""
    spans = zip(window.index, window.block, window.array, window.strides, window.offsets, strict=True)
    for index, block, array, stride, offset in spans:
        starts = index.range.scaled(stride)
        if starts.lo + offset + block <= 0 or starts.hi + offset >= array.range.lo:
            return False
    return True


def covered(grid: Grid, window: Window) -> bool:
    """Every block is shown by some step, if there is one: each index counts a dimension of its own, far enough."""
    used: set[str] = set()
    bounds = dict(zip(grid.indices, grid.bounds, strict=True))
    for axis, (index, block, array) in enumerate(zip(window.index, window.block, window.array, strict=True)):
        blocks = ceildiv(array, Const(block)).range.hi
        if not window.is_tiled(axis) or window.guards:
            return False
        if isinstance(index, Param) and index.name in bounds and index.name not in used:
            used.add(index.name)
            if bounds[index.name].range.lo < blocks:
                return False
        elif index != Const(0) or blocks > 1:
            return False
    return True


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
