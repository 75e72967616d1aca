"""Arrays at the border of a program: what NumPy type stands for which MLIR type, and a device's memory as an array."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from jaxlib.mlir import ir

from mosaic_grid.errors import UserError

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(kind)
    for name, kind in {
        "i1": np.bool_,
        "i2": ml_dtypes.int2,
        "ui2": ml_dtypes.uint2,
        "i4": ml_dtypes.int4,
        "ui4": ml_dtypes.uint4,
        "i8": np.int8,
        "ui8": np.uint8,
        "i16": np.int16,
        "ui16": np.uint16,
        "i32": np.int32,
        "ui32": np.uint32,
        "i64": np.int64,
        "ui64": np.uint64,
        "bf16": ml_dtypes.bfloat16,
        "f16": np.float16,
        "f32": np.float32,
        "f64": np.float64,
        "f4E2M1FN": ml_dtypes.float4_e2m1fn,
        "f8E3M4": ml_dtypes.float8_e3m4,
        "f8E4M3": ml_dtypes.float8_e4m3,
        "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
        "f8E4M3FN": ml_dtypes.float8_e4m3fn,
        "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
        "f8E5M2": ml_dtypes.float8_e5m2,
        "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
        "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
        "complex<f32>": np.complex64,
        "complex<f64>": np.complex128,
    }.items()
}
"""MLIR's name of an element type to NumPy's; an integer without a sign is a signed one, as in StableHLO."""

_BITS = {"i2": 2, "ui2": 2, "i4": 4, "ui4": 4, "f4E2M1FN": 4}
"""The types that are packed into bytes on the device, the first element in the low bits; in NumPy each has a byte."""

_NAMES = {dtype: name for name, dtype in DTYPES.items()}


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """An argument or result of a program. `name` is for messages: "argument 0 (x)"."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    weak_type: bool = False  # jaxlib asks for one: a spec stands in for JAX's abstract value

    def __str__(self) -> str:
        return f"{_NAMES.get(self.dtype, self.dtype)}[{','.join(map(str, self.shape))}]"

    def read(self, buffer: Any) -> Array:
        """The contents of a buffer of jaxlib on the CPU, once they are there: read-only, and not copied if that can be.

        NumPy's own ways (the buffer protocol, DLPack) know no bf16, and jaxlib's imports JAX.
        """
        buffer.block_until_ready()
        size: int = buffer.on_device_size_in_bytes()
        if not math.prod(self.shape):
            return np.zeros(self.shape, self.dtype)
        raw = np.asarray(_Memory(buffer, size))
        bits = _BITS.get(str(_NAMES[self.dtype]))
        if bits is None:
            return raw.view(self.dtype).reshape(self.shape)
        parts = [(raw >> shift) & (2**bits - 1) for shift in range(0, 8, bits)]
        numbers = np.stack(parts, axis=-1).reshape(-1)[: math.prod(self.shape)]
        return numbers.view(self.dtype).reshape(self.shape)


class _Memory:
    """A buffer's memory in the form that NumPy takes, and keeps alive."""

    def __init__(self, buffer: Any, size: int) -> None:
        self.buffer = buffer
        self.__array_interface__ = {
            "version": 3,
            "shape": (size,),
            "typestr": "|u1",
            "data": (buffer.unsafe_buffer_pointer(), True),
        }


def spec_of(kind: ir.Type, name: str) -> TensorSpec:
    """The array that a tensor type stands for.

    Raises:
        UserError: the type is no tensor of static shape and a known element type; `name` says whose it is.
    """
    if not isinstance(kind, ir.RankedTensorType) or not kind.has_static_shape:
        raise UserError(f"{name} of the program is a {kind}; only arrays of static shape can be handed to it")
    dtype = DTYPES.get(str(kind.element_type))
    if dtype is None:
        raise UserError(f"{name} of the program is a {kind}, which no NumPy type is for")
    return TensorSpec(name, tuple(kind.shape), dtype)
