"""A serialized `jax.export.Exported`: the StableHLO portable artifact inside is taken out without JAX.

`jax.export.deserialize` needs the `flatbuffers` package, refuses artifacts older than six months, and wants trusted
input (it rebuilds the caller's Python types). The program is one byte vector of the root table of a flatbuffer, and a
flatbuffer's fields never move: schema in JAX's `jax/_src/export/serialization.fbs`.
"""

from __future__ import annotations

import struct

from mosaic_grid.errors import Place, UserError

_MODULE_FIELD = 30
"""Offset in the vtable of `mlir_module_serialized`."""

_MAGIC = b"ML\xefR"


def is_exported(data: bytes) -> bool:
    """Whether the root table has the field that holds a module, even if the data ends before the module does."""
    try:
        start, length = _module_vector(data)
    except (struct.error, ValueError):
        return False
    return data[start : start + 4] == _MAGIC[: max(0, min(4, len(data) - start))] and length > len(_MAGIC)


def module_bytes(data: bytes, name: str) -> bytes:
    """The portable artifact in `data`, for which `is_exported` holds. Raises `UserError` where it is cut off."""
    start, length = _module_vector(data)
    if start + length > len(data):
        raise UserError("this jax.export artifact is truncated: a part of its program is missing", Place(name))
    return data[start : start + length]


def _module_vector(data: bytes) -> tuple[int, int]:
    """Start and length of the vector. Raises `ValueError` or `struct.error` for data without it."""
    (table,) = struct.unpack_from("<I", data, 0)
    (to_vtable,) = struct.unpack_from("<i", data, table)
    vtable = table - to_vtable
    if not 4 <= vtable < len(data):
        raise ValueError("no vtable")
    size, table_size = struct.unpack_from("<HH", data, vtable)
    if size < _MODULE_FIELD + 2 or size % 2:
        raise ValueError("no such field")
    (field_offset,) = struct.unpack_from("<H", data, vtable + _MODULE_FIELD)
    if not 4 <= field_offset < table_size:
        raise ValueError("the field is absent")
    field = table + field_offset
    (to_vector,) = struct.unpack_from("<I", data, field)
    vector = field + to_vector
    if vector >= len(data):
        # The table is sound and the vector lies beyond the end: cut off before the module begins.
        return len(data), 1 << 16
    (length,) = struct.unpack_from("<I", data, vector)
    return vector + 4, length
