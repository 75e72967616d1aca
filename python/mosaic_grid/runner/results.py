"""What came out, for people and for scripts: each result in a line, its values, and files of arrays."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from mosaic_grid.cpu.arrays import Array, TensorSpec
from mosaic_grid.errors import Place, UserError
from mosaic_grid.program import attribute_of
from mosaic_grid.runner.values import is_integer
from mosaic_grid.write import write_atomically

_DIGITS = 6


@dataclasses.dataclass(frozen=True)
class Result:
    """One result of a program. `name` is JAX's for it, a path into what the function returns: `[0]`, `['a']`."""

    number: int
    name: str
    spec: TensorSpec
    array: Array

    @property
    def label(self) -> str:
        """How messages call it."""
        return f"result {self.number} ({self.name})" if self.name else f"result {self.number}"


def results_of(main: ir.Operation, specs: Sequence[TensorSpec], arrays: Sequence[Array]) -> tuple[Result, ...]:
    """The results of the function `@main` with their names."""
    attributes = list(attribute_of(main, "res_attrs", ir.ArrayAttr) or [])
    names = [_name(each) for each in attributes] or [""] * len(specs)
    numbered = zip(range(len(specs)), names, specs, arrays, strict=True)
    return tuple(Result(number, name, spec, array) for number, name, spec, array in numbered)


def _name(attributes: ir.Attribute) -> str:
    if isinstance(attributes, ir.DictAttr) and "jax.result_info" in attributes:
        info = attributes["jax.result_info"]
        return info.value.removeprefix("result") if isinstance(info, ir.StringAttr) else ""
    return ""


def facts(result: Result) -> dict[str, Any]:
    """A result in numbers; `None` where there is none: the extremes and the mean are of what is no NaN.

    `sha256` is of the array's bytes in row-major order, the first 16 digits.
    """
    array = result.array
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
    counts: dict[str, Any] = {"min": None, "max": None, "mean": None, "nan": 0}
    if array.dtype.kind != "c":
        discrete = array.dtype == np.bool_ or is_integer(array.dtype)
        if not discrete:
            missing = np.isnan(array)
            counts["nan"] = int(np.count_nonzero(missing))
            array = array[~missing]
        if array.size:
            # 64-bit integers as they are: a float doesn't hold them all
            wide = (
                array if discrete and array.dtype.itemsize == 8 else array.astype(np.int64 if discrete else np.float64)
            )
            plain = int if discrete else float
            with np.errstate(all="ignore"):
                counts.update(min=plain(wide.min()), max=plain(wide.max()), mean=float(wide.mean()))
    else:
        counts["nan"] = int(np.count_nonzero(np.isnan(array)))
    spec = result.spec
    return {
        "result": result.number,
        "name": result.name,
        "type": str(spec).partition("[")[0],
        "shape": list(spec.shape),
        **counts,
        "sha256": digest,
    }


def may_be_unwritten(result: Result) -> bool:
    """Whether it holds what memory holds that nobody wrote: NaN, or the least integer where that is a rare one."""
    array = result.array
    if array.dtype == np.bool_:
        return False
    if is_integer(array.dtype):
        rare = array.dtype in (np.int32, np.int64)
        return rare and bool(np.any(array == np.iinfo(array.dtype).min))
    return bool(np.isnan(array).any())


def table(results: Sequence[Result]) -> str:
    """A line a result, in columns under a heading."""
    if not results:
        return "the program returns nothing\n"
    rows = [("result", "type", "min", "max", "mean", "NaN", "sha256")]
    for result in results:
        found = facts(result)
        numbers = [_number(found[key]) for key in ("min", "max", "mean")]
        label = f"{result.number} {result.name}" if result.name else str(result.number)
        rows.append((label, str(result.spec), *numbers, str(found["nan"]), found["sha256"]))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "".join(f"{line}\n" for line in lines)


def values(results: Sequence[Result]) -> str:
    """The values, as NumPy prints them: the middle of a large array is left out."""
    return "".join(f"\n{result.label} {result.spec} =\n{_printed(result.array)}\n" for result in results)


def plain(value: Any) -> Any:
    """The same with what JSON can't hold as text: `"nan"`, `"inf"`, `"-inf"`."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def number_of(value: Any) -> Any:
    """A NumPy scalar as a Python number; a complex one as text."""
    if np.iscomplexobj(value):
        return str(complex(value))
    if value.dtype == np.bool_:
        return bool(value)
    return int(value) if is_integer(value.dtype) else float(value)


def save(results: Sequence[Result], path: str) -> None:
    """Writes the arrays at once: `result0`, `result1`, ... of an .npz, or the one result as .npy. Raises `UserError`.

    What NumPy has no type of its own for (bf16, ...) is written as raw bytes of the same size, void as it calls them.
    """
    check_path(path)
    arrays = {f"result{result.number}": _storable(result.array) for result in results}
    buffer = io.BytesIO()
    if path.endswith(".npy"):
        if len(results) != 1:
            message = f"the program returns {len(results)} arrays, and a .npy file holds one"
            raise UserError(message, Place(path), ["give -o a name that ends in .npz"])
        np.save(buffer, arrays["result0"])
    else:
        named: Any = arrays
        np.savez(buffer, **named)
    write_atomically(path, buffer.getvalue())


def check_path(path: str) -> None:
    """Raises `UserError` for a file that arrays can't be written to, by its name."""
    if not path.endswith((".npy", ".npz")):
        raise UserError(f"-o writes arrays: '{path}' should end in .npz, or in .npy for one array")


def _storable(array: Array) -> Array:
    return (
        array
        if array.dtype.isbuiltin == 1
        else np.ascontiguousarray(array).reshape(array.shape).view(f"V{array.itemsize}")
    )


def _printed(array: Array) -> str:
    shown = array
    if array.dtype.isbuiltin != 1:  # NumPy's printer doesn't know how many digits they have
        shown = array.astype(np.int64 if is_integer(array.dtype) else np.float32)
    return np.array2string(shown, separator=", ", threshold=1000)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.{_DIGITS}g}"
