"""StableHLO's operations that make or move elements, as rules from operand tensors to the result; `None` if unknown."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.tensors import (
    LIMIT,
    Each,
    Elements,
    Shape,
    Tensor,
    Uniform,
    collect,
    element,
    indices,
    int_type,
    is_written_out,
    linear_index,
    reindex,
    shape_of,
    spread,
)

Rule = Callable[[ir.Operation, Sequence[Tensor]], Tensor | None]

# jaxlib's bindings read arrays of these widths only
_READABLE = (1, 8, 16, 32, 64)


def _constant(op: ir.Operation, _: Sequence[Tensor]) -> Tensor | None:
    value = op.attributes["value"]
    kind, shape = int_type(op.results[0].type), shape_of(op.results[0].type)
    if kind is None or shape is None or not isinstance(value, ir.DenseIntElementsAttr):
        return None
    if kind.bits not in _READABLE or len(value) == 0 or (not value.is_splat and len(value) > LIMIT):
        return None
    return (
        Uniform(sym.constant(value[0]))
        if value.is_splat
        else collect([sym.constant(value[i]) for i in range(len(value))])
    )


def _iota(op: ir.Operation, _: Sequence[Tensor]) -> Tensor | None:
    shape, kind = shape_of(op.results[0].type), int_type(op.results[0].type)
    axis = ir.IntegerAttr(op.attributes["iota_dimension"]).value
    if shape is None or kind is None or not 0 < math.prod(shape) <= LIMIT or shape[axis] - 1 not in kind.range:
        return None
    return collect([sym.constant(index[axis]) for index in indices(shape)])


def _reshape(op: ir.Operation, operands: Sequence[Tensor]) -> Tensor | None:
    (a,), (old, new) = operands, _shapes(op)
    if isinstance(a, Uniform | Elements):
        return a
    exprs = spread(a, old) if new is not None and is_written_out(math.prod(new), [a]) else None
    return None if exprs is None else collect(exprs)


def _broadcast_in_dim(op: ir.Operation, operands: Sequence[Tensor]) -> Tensor | None:
    old, new = _shapes(op)
    axes = _array(op, "broadcast_dimensions")

    def source(index: Shape) -> Shape:
        # a dimension of size 1 is repeated
        return tuple(index[axis] if size > 1 else 0 for axis, size in zip(axes, old or (), strict=True))

    return reindex(operands[0], old, new, source)


def _slice(op: ir.Operation, operands: Sequence[Tensor]) -> Tensor | None:
    starts, strides = _array(op, "start_indices"), _array(op, "strides")
    old, new = _shapes(op)
    return reindex(
        operands[0],
        old,
        new,
        lambda index: tuple(start + stride * i for start, stride, i in zip(starts, strides, index, strict=True)),
    )


def _transpose(op: ir.Operation, operands: Sequence[Tensor]) -> Tensor | None:
    axes = _array(op, "permutation")
    old, new = _shapes(op)
    # result axis i is operand axis axes[i]
    return reindex(operands[0], old, new, lambda index: tuple(index[axes.index(a)] for a in range(len(axes))))


def _reverse(op: ir.Operation, operands: Sequence[Tensor]) -> Tensor | None:
    axes = _array(op, "dimensions")
    old, new = _shapes(op)

    def source(index: Shape) -> Shape:
        return tuple(n - 1 - i if a in axes else i for a, (i, n) in enumerate(zip(index, old or (), strict=True)))

    return reindex(operands[0], old, new, source)


def _dynamic_slice(op: ir.Operation, operands: Sequence[Tensor]) -> Tensor | None:
    a, starts = operands[0], [element(t, (), ()) for t in operands[1:]]
    old, new = _shapes(op)
    if isinstance(a, Uniform) or old is None or new is None:
        return a if isinstance(a, Uniform) else None
    # StableHLO clamps the start so that the slice lies inside
    last = [size - part for size, part in zip(old, new, strict=True)]
    clamped = [
        sym.constant_of(sym.clamp(sym.constant(0), start, sym.constant(end)))
        for start, end in zip(starts, last, strict=True)
    ]
    known = [c for c in clamped if c is not None]
    if len(known) == len(clamped):
        return reindex(a, old, new, lambda index: tuple(c + i for c, i in zip(known, index, strict=True)))
    match a:
        case Each(sym.Load(name, (), values, origin)) if math.prod(new) == 1:
            # the index is written as the program has it; equal ones are clamped to equal places
            index = [start if c is None else sym.constant(c) for start, c in zip(starts, clamped, strict=True)]
            return Uniform(sym.load(name, index, values, origin))
    return None


def _concatenate(op: ir.Operation, operands: Sequence[Tensor]) -> Tensor | None:
    shape = shape_of(op.results[0].type)
    shapes = [shape_of(value.type) for value in op.operands]
    if all(t == operands[0] for t in operands) and isinstance(operands[0], Uniform):
        return operands[0]
    if shape is None or not is_written_out(math.prod(shape), operands):
        return None
    axis = ir.IntegerAttr(op.attributes["dimension"]).value
    exprs: list[sym.Expr | None] = [None] * math.prod(shape)
    offset = 0
    for tensor, part in zip(operands, shapes, strict=True):
        if part is None:
            return None
        for index in indices(part):
            moved = (*index[:axis], index[axis] + offset, *index[axis + 1 :])
            exprs[linear_index(moved, shape)] = element(tensor, part, index)
        offset += part[axis]
    return collect([e for e in exprs if e is not None])


def _get_dimension_size(op: ir.Operation, _: Sequence[Tensor]) -> Tensor | None:
    type, axis = op.operands[0].type, ir.IntegerAttr(op.attributes["dimension"]).value
    if not isinstance(type, ir.RankedTensorType) or type.is_dynamic_dim(axis):
        return None
    return Uniform(sym.constant(type.shape[axis]))


def _shapes(op: ir.Operation) -> tuple[Shape | None, Shape | None]:
    return shape_of(op.operands[0].type), shape_of(op.results[0].type)


def _array(op: ir.Operation, name: str) -> tuple[int, ...]:
    return tuple(ir.DenseI64ArrayAttr(op.attributes[name]))


RULES: dict[str, Rule] = {
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.constant": _constant,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.iota": _iota,
    "stablehlo.reshape": _reshape,
    "stablehlo.reverse": _reverse,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
}

SIZES: dict[str, Rule] = {"stablehlo.get_dimension_size": _get_dimension_size}
"""Operations of which only the operand's type is asked."""

PICKS: dict[str, tuple[int, ...]] = {
    "stablehlo.broadcast_in_dim": (0,),
    "stablehlo.concatenate": (),
    "stablehlo.dynamic_slice": (0,),
    "stablehlo.dynamic_update_slice": (0, 1),
    "stablehlo.gather": (0,),
    "stablehlo.pad": (0, 1),
    "stablehlo.reshape": (0,),
    "stablehlo.reverse": (0,),
    "stablehlo.slice": (0,),
    "stablehlo.transpose": (0,),
}
"""Operations whose result's elements all are elements of these operands; of all operands where none is listed."""
