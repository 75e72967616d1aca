"""Values of the interpreter: numpy arrays, of rank 0 for scalars, by MLIR type; and what unwritten memory holds."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir

type Array = npt.NDArray[Any]

DTYPES: dict[str, npt.DTypeLike] = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}

POISON = 0x5EADBEEF
"""What unwritten integers hold, cut to their width; unwritten floats are NaN."""


def dtype_of(kind: ir.Type) -> np.dtype[Any]:
    """The numpy type of a scalar type, or of a shaped type's elements."""
    element = ir.ShapedType(kind).element_type if isinstance(kind, ir.ShapedType) else kind
    name = str(element)
    if name not in DTYPES:
        raise NotImplementedError(f"the oracle has no type {name}")
    return np.dtype(DTYPES[name])


def shape_of(kind: ir.Type) -> tuple[int, ...]:
    """The shape of a type; a scalar's is empty."""
    return tuple(ir.ShapedType(kind).shape) if isinstance(kind, ir.ShapedType) else ()


def poisoned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Fresh memory that nobody wrote."""
    if dtype.kind == "b":
        return np.ones(shape, dtype)
    if dtype.kind == "i":
        return np.full(shape, POISON & (2 ** (8 * dtype.itemsize - 1) - 1), dtype)
    return np.full(shape, np.nan, dtype)


def literal(attribute: ir.Attribute, kind: ir.Type) -> Array:
    """The value of a constant op's attribute."""
    dtype, shape = dtype_of(kind), shape_of(kind)
    if isinstance(attribute, ir.DenseElementsAttr):
        if not attribute.is_splat:
            return np.asarray(attribute).astype(dtype).reshape(shape)
        attribute = attribute.get_splat_value()
    match attribute:
        case ir.BoolAttr() | ir.IntegerAttr() | ir.FloatAttr():
            return np.full(shape, attribute.value, dtype)
        case _:
            raise NotImplementedError(f"the oracle has no constant {attribute}")
