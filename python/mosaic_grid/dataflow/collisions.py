"""Whether two windows can show the same elements of an array at two steps of a grid that differ in a dimension.

Exact where the index maps are quasi-affine. A component that isn't (it is read from a table) is left out, which
only adds collisions: none found is a proof, one found is then a possibility.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import islpy as isl

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.isl_maps import Functions, NotAffineError
from mosaic_grid.dataflow.scalars import GRID_INDEX

_EFFORT = 300_000
"""How many of isl's operations one question may take; a real kernel's takes a few thousand."""


@dataclasses.dataclass(frozen=True)
class Blocks:
    """The blocks that a window shows: in each dimension elements from `index * stride` on, `size` of them."""

    indices: tuple[sym.Expr, ...]
    strides: tuple[int, ...]
    sizes: tuple[int, ...]
    offsets: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Apart:
    """No two such steps share an element; `unless` names what was taken for granted."""

    unless: str = ""


@dataclasses.dataclass(frozen=True)
class Collision:
    """Steps `first` and `second` share an element, where the windows' block indices are `blocks`."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    block: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Undecided:
    """Neither is known, and why, as the end of a sentence."""

    reason: str


Answer = Apart | Collision | Undecided


Bounds = Sequence[int | None]


def collide(bounds: Bounds, one: Blocks, other: Blocks, axes: Sequence[int], same: Sequence[int] = ()) -> Answer:
    """Whether `one` at a step and `other` at a step that differs from it in one of `axes` share an element.

    `bounds` are the grid's, None for a dynamic one, which may be anything from 0 on. In the dimensions `same` the two
    steps are equal. `one` and `other` are windows on the same array.
    """
    context = isl.Context()
    context.set_max_operations(_EFFORT)
    try:
        return _collide(context, bounds, one, other, axes, same)
    except isl.Error:
        return Undecided("takes too long to analyse")


def _collide(
    context: isl.Context, bounds: Bounds, one: Blocks, other: Blocks, axes: Sequence[int], same: Sequence[int]
) -> Answer:
    functions = Functions(context, bounds)
    if len(one.indices) != len(other.indices):
        return Undecided("has two shapes")
    touching = isl.Map.from_domain_and_range(functions.steps, functions.steps)
    dropped: sym.Expr | None = None
    for axis, (a, b) in enumerate(zip(one.indices, other.indices, strict=True)):
        wrapped = functions.wraps
        try:
            touching = touching.intersect(_touching(functions, axis, a, b, one, other))
        except NotAffineError:
            functions.wraps = wrapped
            dropped = a if _is_opaque(functions, a) else b
    for axis in same:
        touching = touching.equate(isl.dim_type.in_, axis, isl.dim_type.out, axis)
    symmetric = one == other
    for pairs in _differing(touching, axes, symmetric):
        if pairs.is_empty():
            continue
        if dropped is not None:
            return Undecided(f"depends on {dropped}{', which is read at run time' if _reads(dropped) else ''}")
        if functions.wraps:
            return Undecided("may wrap around")
        return _witness(pairs, len(bounds), one)
    return Apart("no sum in its index map wraps around" if functions.wraps else "")


def _touching(functions: Functions, axis: int, a: sym.Expr, b: sym.Expr, one: Blocks, other: Blocks) -> isl.Map:
    """The pairs of steps whose blocks overlap in one dimension of the array."""
    first, second = (isl.Map.from_pw_aff(functions.of(expr)) for expr in (a, b))
    steps = (blocks.strides[axis] for blocks in (one, other))
    if next(steps) == next(steps) == one.sizes[axis] == other.sizes[axis] and one.offsets[axis] == other.offsets[axis]:
        return first.apply_range(second.reverse())
    # a * s + o < b * t + p + size_b  and  b * t + p < a * s + o + size_a
    first_start = f"{one.strides[axis]}a + {one.offsets[axis]}"
    second_start = f"{other.strides[axis]}b + {other.offsets[axis]}"
    first_end, second_end = f"{first_start} + {one.sizes[axis]}", f"{second_start} + {other.sizes[axis]}"
    condition = f"{first_start} < {second_end} and {second_start} < {first_end}"
    overlap = isl.Map.read_from_str(functions.steps.get_ctx(), f"{{ [a] -> [b] : {condition} }}")
    return first.apply_range(overlap).apply_range(second.reverse())


def _differing(pairs: isl.Map, axes: Sequence[int], symmetric: bool) -> Iterator[isl.Map]:
    """The pairs by how they differ: in each axis, below first; a symmetric relation needs one order only."""
    for axis in axes:
        yield pairs.order_lt(isl.dim_type.in_, axis, isl.dim_type.out, axis)
        if not symmetric:
            yield pairs.order_gt(isl.dim_type.in_, axis, isl.dim_type.out, axis)


def _witness(pairs: isl.Map, rank: int, one: Blocks) -> Collision:
    """The first pair of steps, with the smallest bounds that have it."""
    points = pairs.wrap().flatten()
    parameters = points.dim(isl.dim_type.param)
    points = points.move_dims(isl.dim_type.set, 0, isl.dim_type.param, 0, parameters)
    point = points.lexmin().sample_point()
    values = [point.get_coordinate_val(isl.dim_type.set, parameters + i).to_python() for i in range(2 * rank)]
    first, second = tuple(values[:rank]), tuple(values[rank:])
    return Collision(first, second, tuple(_at(index, first) for index in one.indices))


def _at(index: sym.Expr, step: Sequence[int]) -> int:
    return sym.value_of(index, {leaf: step[int(leaf.text.removeprefix(GRID_INDEX))] for leaf in sym.leaves_of(index)})


def _is_opaque(functions: Functions, expr: sym.Expr) -> bool:
    try:
        functions.of(expr)
    except NotAffineError:
        return True
    return False


def _reads(expr: sym.Expr) -> bool:
    return any(isinstance(leaf, sym.Load) for leaf in sym.leaves_of(expr))
