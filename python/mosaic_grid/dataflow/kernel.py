"""The index maps of a kernel's windows as expressions of its grid indices and of its scalar-prefetch operands.

    index_map(kernel, window)  ->  (i // 4, table[j], 0)

Everything has an expression: an operation without a rule is an `Opaque` function of its operands, never an error.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import cast

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.index_maps import IndexMap, evaluate, read_index_map
from mosaic_grid.dataflow.index_maps import Opaque as Opaque
from mosaic_grid.location_text import text_of_name
from mosaic_grid.program import Kernel, ProgramError, Window

ANY_STEP = sym.Range(0, 2**31 - 2)
"""A grid index of a dimension whose bound is an i32."""

_ANYTHING = sym.type_range(64, True)


def prefetch_names(kernel: Kernel) -> tuple[str, ...]:
    """The prefetch operands by their names in the user's function, `prefetch0` where they have none; all different."""
    if prefetch_names not in kernel.memo:
        names: list[str] = []
        for k, argument in enumerate(kernel.prefetch):
            location = argument.location
            name = (text_of_name(location) if isinstance(location, ir.NameLoc) else "") or f"prefetch{k}"
            names.append(f"{name}_{k}" if name in names else name)
        kernel.memo[prefetch_names] = tuple(names)
    return cast("tuple[str, ...]", kernel.memo[prefetch_names])


def grid_indices(kernel: Kernel, exact: bool = True) -> tuple[sym.Expr, ...]:
    """The grid indices `i, j, k, ...`, outermost first; the name of a prefetch operand is left out.

    An `exact` index is below a static bound, so it is the constant 0 where there is one step. The others may be
    anything from 0 on, whatever the bound: what is made of them reads as it was written.
    """
    key = (grid_indices, exact)
    if key not in kernel.memo:
        taken = set(prefetch_names(kernel))
        letters = (*string.ascii_lowercase[8:], *(f"i{n}" for n in range(len(kernel.grid))))
        names = (name for name in letters if name not in taken)
        ranges = [
            ANY_STEP if dimension.bound is None or not exact else sym.Range(0, max(dimension.bound, 1) - 1)
            for dimension in kernel.grid
        ]
        kernel.memo[key] = tuple(sym.parameter(next(names), steps) for steps in ranges)
    return cast("tuple[sym.Expr, ...]", kernel.memo[key])


def index_map(kernel: Kernel, window: Window, indices: Sequence[sym.Expr] | None = None) -> tuple[sym.Expr, ...] | None:
    """The block that a window shows at a step of the grid: an index for each of the operand's dimensions.

    `indices` is the step, `grid_indices(kernel)` if left out. Returns `None` for a window without an index map; raises
    `ProgramError` where the map it names is not in the kernel, or has no body.
    """
    indices, symbol = grid_indices(kernel) if indices is None else indices, window.transform
    if symbol is None:
        affine = window.affine_map
        return None if affine is None else tuple(_affine(result, indices) for result in affine.results)
    key = (index_map, symbol, tuple(indices))
    if key not in kernel.memo:
        bounds = [dimension.bound for dimension in kernel.grid]
        kernel.memo[key] = evaluate(_read(kernel, symbol), indices, bounds)
    return cast("tuple[sym.Expr, ...]", kernel.memo[key])


def _read(kernel: Kernel, symbol: str) -> IndexMap:
    key = (IndexMap, symbol)
    if key not in kernel.memo:
        if symbol not in kernel.functions:
            raise ProgramError(f"this kernel has a window whose index map @{symbol} is missing", kernel.body)
        function = kernel.functions[symbol]
        if not len(function.regions[0].blocks):
            raise ProgramError(f"the index map @{symbol} has no body", function)
        kernel.memo[key] = read_index_map(function, len(kernel.grid), prefetch_names(kernel))
    return cast("IndexMap", kernel.memo[key])


def moves(kernel: Kernel, window: Window) -> bool:
    """Whether a window may show another block at another step of the grid, as libtpu tells it.

    It does where the index map, with constants folded, still mentions the index of a dimension of more than one step.
    """
    several = {axis for axis, dimension in enumerate(kernel.grid) if dimension.bound != 1}
    places = None if window.transform is None else _read(kernel, window.transform).results
    if places and not several.isdisjoint(places):
        # it returns one as it is
        return True
    indices = grid_indices(kernel, exact=False)
    blocks = index_map(kernel, window, indices) or ()
    stepping = {indices[axis] for axis in several}
    return any(leaf in stepping for block in blocks for leaf in sym.leaves_of(block))


def _affine(expr: ir.AffineExpr, indices: Sequence[sym.Expr]) -> sym.Expr:
    """An affine expression over the grid's indices, in mathematical integers."""
    match expr:
        case ir.AffineConstantExpr():
            return sym.constant(expr.value)
        case ir.AffineDimExpr():
            return indices[expr.position]
        case ir.AffineAddExpr():
            return sym.add(_affine(expr.lhs, indices), _affine(expr.rhs, indices))
        case ir.AffineMulExpr():
            return sym.mul(_affine(expr.lhs, indices), _affine(expr.rhs, indices))
        case ir.AffineFloorDivExpr() if 0 not in _affine(expr.rhs, indices).range:
            return sym.floordiv(_affine(expr.lhs, indices), _affine(expr.rhs, indices))
        case ir.AffineCeilDivExpr() if 0 not in _affine(expr.rhs, indices).range:
            return sym.ceildiv(_affine(expr.lhs, indices), _affine(expr.rhs, indices))
        case ir.AffineModExpr() if 0 not in _affine(expr.rhs, indices).range:
            return sym.mod(_affine(expr.lhs, indices), _affine(expr.rhs, indices))
    return Opaque(str(expr), tuple(indices), _ANYTHING)
