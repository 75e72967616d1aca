"""From a text on the command line, a file or a Python number to an array of the type that an argument has."""

from __future__ import annotations

import contextlib
import json
import math
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from mosaic_grid.cpu.arrays import Array, TensorSpec
from mosaic_grid.errors import Place, UserError

INTEGERS_BELOW = 4
"""Random integers are at least 0 and less than this: small enough for most indices, sizes and quantised values."""

_NARROW = tuple(np.dtype(kind) for kind in (ml_dtypes.int2, ml_dtypes.uint2, ml_dtypes.int4, ml_dtypes.uint4))
_FILES = (".npy", ".npz")
_TABLES = (".csv", ".tsv", ".txt", ".dat")
_RANDOM = re.compile(r"random(?::([0-9]+))?")
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
GRAMMAR = "a value is FILE.npy, FILE.npz, a number or JSON list, random[:SEED], zeros, ones or iota"


def parse_value(text: str, spec: TensorSpec, number: int, seed: int) -> Array:
    """The array that a text stands for as argument `number`; `seed` is that of `random` without one.

    A single number fills the whole array. Raises `UserError`.
    """
    if text in _GENERATORS:
        return _GENERATORS[text](spec)
    if chosen := _RANDOM.fullmatch(text):
        return random(spec, number, int(chosen[1]) if chosen[1] else seed)
    if text.endswith(_FILES):
        return from_array(_from_file(text, spec, number), spec)
    try:
        value = _FLOATS[text] if text in _FLOATS else json.loads(text)
    except json.JSONDecodeError:
        notes = [GRAMMAR]
        if text.endswith(_TABLES):
            notes.append("convert the file to .npy first: numpy.save('x.npy', numpy.loadtxt('x.csv', delimiter=','))")
        raise UserError(f"{spec.name}: '{text}' is no value", notes=notes) from None
    return from_literal(value, spec, notes=[GRAMMAR])


def random(spec: TensorSpec, number: int, seed: int) -> Array:
    """Seeded contents: floats from the standard normal distribution, integers below `INTEGERS_BELOW`, bools by a coin.

    Each argument, by its `number`, has a stream of its own: it doesn't change when another one is given.
    """
    stream = np.random.default_rng([seed, number])
    if spec.dtype == np.bool_:
        return stream.integers(0, 2, spec.shape).astype(np.bool_)
    if np.issubdtype(spec.dtype, np.complexfloating):
        return (stream.standard_normal(spec.shape) + 1j * stream.standard_normal(spec.shape)).astype(spec.dtype)
    if is_integer(spec.dtype):
        return stream.integers(0, min(INTEGERS_BELOW, _limits(spec.dtype)[1] + 1), spec.shape).astype(spec.dtype)
    return np.asarray(stream.standard_normal(spec.shape)).astype(spec.dtype)


def is_integer(dtype: np.dtype[Any]) -> bool:
    """Whether it is an integer type, those of 2 and 4 bits included."""
    return np.issubdtype(dtype, np.integer) or dtype in _NARROW


def from_literal(value: object, spec: TensorSpec, notes: Sequence[str] = ()) -> Array:
    """The array of a number, or of nested lists of numbers in the argument's shape. Floats are rounded to its type.

    Raises `UserError` where shape or kind don't fit, or a number is out of range; `notes` say what can be given.
    """
    try:
        found = np.asarray(value)
    except ValueError:
        raise UserError(f"{spec.name} is {spec}; the lists that it got differ in length") from None
    if found.dtype.kind not in "biuf":
        raise UserError(f"{spec.name} is {spec}; it got {str(value)[:40]!r}, which is not numbers", notes=notes)
    if found.shape not in ((), spec.shape):
        raise UserError(f"{spec.name} is {spec}; it got a list of shape {list(found.shape)}")
    if spec.dtype == np.bool_ or is_integer(spec.dtype):
        low, high = (0, 1) if spec.dtype == np.bool_ else _limits(spec.dtype)
        if found.dtype.kind == "f" or (found.size and not (low <= found.min() and found.max() <= high)):
            raise UserError(f"{spec.name} is {spec}: it takes integers from {low} to {high}, and got {str(value)[:40]}")
        return np.broadcast_to(found.astype(spec.dtype), spec.shape)
    return np.broadcast_to(_rounded(found, spec), spec.shape)


def _rounded(numbers: Array, spec: TensorSpec) -> Array:
    """Numbers in a type of floats. Raises `UserError` for a finite one that it is too small for."""
    with np.errstate(all="ignore"):
        found = numbers.astype(spec.dtype)
        there = found.astype(np.complex128).real
    least, most = _range(spec.dtype)
    outside = np.isfinite(numbers) & (~np.isfinite(there) | (abs(numbers) > 2 * most))
    if outside.any():
        number = numbers[outside].flat[0]
        raise UserError(f"{spec.name} is {spec}: it takes numbers from {least:g} to {most:g}, and got {number:g}")
    return found


def _range(dtype: np.dtype[Any]) -> tuple[float, float]:
    info = ml_dtypes.finfo(np.zeros(1, dtype).real.dtype)
    return float(info.min), float(info.max)


def from_array(array: Array, spec: TensorSpec) -> Array:
    """The array in the argument's type, which must hold each of its numbers exactly. Raises `UserError`."""
    if array.dtype.type is np.void and array.dtype.names is None and array.dtype.itemsize == spec.dtype.itemsize:
        array = array.view(spec.dtype)  # as NumPy reads from a file what it has no type of its own for
    if array.shape != spec.shape:
        raise UserError(f"{spec.name} is {spec}; it got {array.dtype} of shape {list(array.shape)}")
    if array.dtype == spec.dtype:
        return array
    if array.dtype.kind == "c" and spec.dtype.kind != "c":
        raise UserError(f"{spec.name} is {spec}; it got {array.dtype}, and complex numbers are none of that type")
    if _is_number(array.dtype) and _holds(array, spec.dtype):
        return array.astype(spec.dtype)
    message = f"{spec.name} is {spec}; it got {array.dtype}, and not all of its numbers are the same in that type"
    raise UserError(message, notes=[f"convert it to {spec.dtype} first, with the rounding that you want"])


def _is_number(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "biufc" or dtype.isbuiltin == 2


def _holds(array: Array, dtype: np.dtype[Any]) -> bool:
    """Whether each number of the array is one of the type."""
    discrete = array.dtype == np.bool_ or is_integer(array.dtype)
    if not array.size:
        return True
    if dtype == np.bool_ or is_integer(dtype):
        low, high = (0, 1) if dtype == np.bool_ else _limits(dtype)
        if discrete:
            return low <= int(array.min()) and int(array.max()) <= high
        wide = array.astype(np.float64)
        whole = bool(np.all(np.isfinite(wide) & (np.trunc(wide) == wide)))
        return whole and low <= int(wide.min()) and int(wide.max()) <= high
    with np.errstate(all="ignore"):
        there = array.astype(dtype).astype(np.complex128 if dtype.kind == "c" else np.float64)
    if discrete and array.dtype.itemsize == 8:
        real = there.real
        return bool(np.all(np.isfinite(real))) and all(
            int(a) == int(b) for a, b in zip(array.flat, real.flat, strict=True)
        )
    exact = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    return bool(np.all((exact == there) | (np.isnan(exact) & np.isnan(there))))


def _limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    info = ml_dtypes.iinfo(dtype)
    return int(info.min), int(info.max)


def _from_file(path: str, spec: TensorSpec, number: int) -> Array:
    with load(path) as opened:
        if isinstance(opened, np.ndarray):
            return opened
        keys = [spec.name.partition("(")[2].removesuffix(")"), f"arg{number}", str(number)]
        for key in keys if len(opened.files) > 1 else opened.files:
            if key in opened:
                return read(opened, key, path)
        listed = f"it has {', '.join(opened.files)}" if opened.files else "it has no arrays at all"
        raise UserError(f"there is no array for {spec.name} in it", Place(path), [listed])


@contextlib.contextmanager
def load(path: str) -> Iterator[Any]:
    """Around what is in a NumPy file: one array, or those of an archive. Raises `UserError` where it can't be read."""
    try:
        opened = np.load(path, allow_pickle=False)
    except OSError as error:
        raise UserError(f"can't read the array: {(error.strerror or str(error)).lower()}", Place(path)) from None
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"this is no array of NumPy: {_reason(error)}", Place(path)) from None
    with contextlib.nullcontext(opened) if isinstance(opened, np.ndarray) else opened:
        yield opened


def read(archive: Any, key: str, path: str) -> Array:
    """One array of an archive. Raises `UserError`."""
    try:
        found: Array = archive[key]
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"the array '{key}' can't be read: {_reason(error)}", Place(path)) from None
    return found


def _reason(error: Exception) -> str:
    """What is wrong with a file. NumPy takes what it doesn't know for pickled data, and proposes to load that."""
    text = str(error).lower()
    if "object array" in text:
        return "it holds objects of Python"
    return "it doesn't begin as one" if "pickle" in text else text


def _iota(spec: TensorSpec) -> Array:
    """0, 1, 2, ... in row-major order, and from 0 again where the type would skip a number."""
    if spec.dtype == np.bool_:
        distinct = 2
    elif is_integer(spec.dtype):
        distinct = _limits(spec.dtype)[1] + 1
    else:
        info = ml_dtypes.finfo(spec.dtype)
        distinct = int(min(2.0 ** (info.nmant + 1), float(info.max) + 1))
    count = np.arange(math.prod(spec.shape), dtype=np.int64)
    wrapped = count % distinct if distinct <= np.iinfo(np.int64).max else count
    return wrapped.astype(spec.dtype).reshape(spec.shape)


_GENERATORS: dict[str, Callable[[TensorSpec], Array]] = {
    "zeros": lambda spec: np.zeros(spec.shape, spec.dtype),
    "ones": lambda spec: np.ones(spec.shape, spec.dtype),
    "iota": _iota,
}
