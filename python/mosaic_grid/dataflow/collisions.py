"""Whether two windows can show the same elements of an array at two steps of a grid that differ in a dimension.

Exact where the index maps are quasi-affine. A component that isn't (it is read from a table) is left out, which
only adds collisions: none found is a proof, one found is then a possibility. It is certain where what was left out is
the same at both steps, as an entry of a table that does not depend on the dimension.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import islpy as isl

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.isl_maps import Functions
from mosaic_grid.dataflow.kernel import Opaque
from mosaic_grid.dataflow.scalars import GRID_INDEX

_EFFORT = 300_000
"""How many of isl's operations one question may take; a real kernel's takes a few thousand."""

_BOUNDS = (*range(2, 17), 32, 64, 128, 256, 1024, 4096, 65536, 1 << 20)
"""The numbers of steps of the dynamic dimensions that a collision is looked for with."""


@dataclasses.dataclass(frozen=True)
class Blocks:
    """What each step shows: in each dimension elements from `index * stride + offset` on, `size` of them."""

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
    """Steps `first` and `second` share an element of the block `block`; an index that is read at run time is text."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    block: tuple[int | str, ...]


@dataclasses.dataclass(frozen=True)
class Undecided:
    """Neither is known: the reason is the end of a sentence, `why` says of which steps where somebody knows."""

    reason: str
    why: str = ""


Answer = Apart | Collision | Undecided


Bounds = Sequence[int | None]


def collide(
    bounds: Bounds,
    one: Blocks,
    other: Blocks,
    axes: Sequence[int],
    same: Sequence[int] = (),
    most: Mapping[int, int] = MappingProxyType({}),
) -> Answer:
    """Whether `one` at a step and `other` at a step that differs from it in one of `axes` share an element.

    `bounds` are the grid's, None for a dynamic one, which may be anything from 0 on, to `most` where that is known. In
    the dimensions `same` the two steps are equal. `one` and `other` are windows on the same array.
    """

    if one == other and all(_tells_apart(one, axis) for axis in axes):
        return Apart()

    def bounded(exact: bool) -> Answer:
        context = isl.Context()
        context.set_max_operations(_EFFORT)
        try:
            return _collide(Functions(context, bounds, exact, most), one, other, axes, same)
        except isl.Error:
            return Undecided("takes too long to analyse")

    answer = bounded(exact=False)
    if not isinstance(answer, Apart) or not answer.unless:
        return answer
    exactly = bounded(exact=True)
    # a dynamic dimension of billions of steps is nobody's: its windows leave the array before they meet again
    realistic = isinstance(exactly, Collision) and None not in bounds
    return exactly if isinstance(exactly, Apart) or realistic else answer


def _tells_apart(blocks: Blocks, axis: int) -> bool:
    """Whether steps that differ in a dimension show blocks apart at a glance: its index counts blocks side by side."""
    spans = zip(blocks.indices, blocks.strides, blocks.sizes, strict=True)
    index = f"{GRID_INDEX}{axis}"
    return any(isinstance(i, sym.Param) and i.name == index and stride >= size for i, stride, size in spans)


def _collide(functions: Functions, one: Blocks, other: Blocks, axes: Sequence[int], same: Sequence[int]) -> Answer:
    if len(one.indices) != len(other.indices):
        return Undecided("has two shapes")
    dropped: sym.Expr | None = None
    settled = True
    touching = isl.Map.from_domain_and_range(functions.steps, functions.steps)
    for axis, (a, b) in enumerate(zip(one.indices, other.indices, strict=True)):
        opaque = next((expr for expr in (a, b) if not functions.is_affine(expr)), None)
        if opaque is None:
            touching = touching.intersect(_touching(functions, axis, a, b, one, other))
        else:
            aligned = one.strides[axis] == other.strides[axis] and one.offsets[axis] == other.offsets[axis]
            settled = settled and a == b and aligned and _stays(a, axes)
        dropped = opaque or dropped
    for axis in same:
        touching = touching.equate(isl.dim_type.in_, axis, isl.dim_type.out, axis)
    for pairs in _differing(touching, axes, symmetric=one == other):
        if pairs.is_empty():
            continue
        if dropped is not None and settled:
            pairs = _alike_but(pairs, axes)
        if dropped is not None and (not settled or pairs.is_empty()):
            return Undecided(f"depends on {dropped}{', which is read at run time' if _reads(dropped) else ''}")
        return _witness(functions, pairs, one)
    return Apart(" and ".join(f"no {event}" for event in sorted(functions.unless)))


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


def _stays(index: sym.Expr, axes: Sequence[int]) -> bool:
    """Whether an index is the same at two steps that differ in `axes` only."""
    leaves = sym.leaves_of(index)
    unplaced = any(isinstance(leaf, sym.Load) and not leaf.index for leaf in leaves)
    return not unplaced and {leaf.text for leaf in leaves}.isdisjoint(f"{GRID_INDEX}{axis}" for axis in axes)


def _alike_but(pairs: isl.Map, axes: Sequence[int]) -> isl.Map:
    """The pairs of steps that differ in `axes` only."""
    for axis in set(range(pairs.dim(isl.dim_type.in_))) - set(axes):
        pairs = pairs.equate(isl.dim_type.in_, axis, isl.dim_type.out, axis)
    return pairs


def _witness(functions: Functions, pairs: isl.Map, one: Blocks) -> Collision:
    """The first pair of steps, dynamic bounds as small as possible, all alike if they can be."""
    points = pairs.wrap().flatten()
    dynamic = points.dim(isl.dim_type.param)
    found = next((few for few in _few_steps(points, dynamic) if not few.is_empty()), None)
    # isl's least pair over all bounds at once may take it hours
    points = points if found is None else found.lexmin()
    point = points.move_dims(isl.dim_type.set, 0, isl.dim_type.param, 0, dynamic).sample_point()
    rank = pairs.dim(isl.dim_type.in_)
    values = [point.get_coordinate_val(isl.dim_type.set, k).to_python() for k in range(dynamic + 2 * rank)]
    first, second = tuple(values[dynamic : dynamic + rank]), tuple(values[dynamic + rank :])
    at = {name: (values if kind == isl.dim_type.param else first)[k] for name, (kind, k) in functions.places.items()}
    known = [index if functions.is_affine(index) else None for index in one.indices]
    block = (str(text) if index is None else _at(index, at) for index, text in zip(known, one.indices, strict=True))
    return Collision(first, second, tuple(block))


def _few_steps(points: isl.Set, dynamic: int) -> Iterator[isl.Set]:
    """The points with all of the dynamic bounds alike, smaller ones first."""
    for steps in _BOUNDS if dynamic else (0,):
        few = points
        for axis in range(dynamic):
            few = few.fix_val(isl.dim_type.param, axis, isl.Val.int_from_si(points.get_ctx(), steps))
        yield few


def _at(index: sym.Expr, values: Mapping[str, int]) -> int:
    return sym.value_of(index, {leaf: values[leaf.text] for leaf in sym.leaves_of(index)})


def _reads(expr: sym.Expr) -> bool:
    return any(isinstance(leaf, sym.Load) and not isinstance(leaf, Opaque) for leaf in sym.leaves_of(expr))
