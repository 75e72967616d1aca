"""Rules for loads and stores, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from cpu_harness import run
from cpu_memory_kernels import kernel, memref, ramp
from hypothesis import given, settings
from hypothesis import strategies as st

from mosaic_grid.cpu.options import Options


def test_scalars_are_loaded_and_stored_at_indices() -> None:
    """A scalar store changes one element, a load sees what was stored before it, not after."""
    m = memref("4x5xi32", "smem")
    text = kernel(
        f"%m: {m}, %i: index, %j: index, %x: i32",
        f"""%a = memref.load %m[%i, %j] : {m}
        memref.store %x, %m[%i, %j] : {m}
        %b = memref.load %m[%i, %j] : {m}
        memref.store %a, %m[%c0, %c3] : {m}
        return %a, %b : i32, i32""",
        "i32, i32",
    )
    source = ramp(4, 5, dtype=np.int32)
    first, second, after = run(text, source, np.int32(2), np.int32(4), np.int32(-7))
    expected = source.copy()
    expected[2, 4], expected[0, 3] = -7, source[2, 4]
    assert [int(first), int(second)] == [source[2, 4], -7]
    np.testing.assert_array_equal(after, expected)


@pytest.mark.parametrize("element", ["f32", "bf16", "f8E4M3FN", "i8", "i1"])
def test_vectors_are_boxes_of_memory(element: str) -> None:
    """A vector of fewer dimensions than the memory is one along the last dimensions; others hold their place."""
    dtype = {"bf16": ml_dtypes.bfloat16, "f8E4M3FN": ml_dtypes.float8_e4m3fn, "i1": np.bool_}.get(element)
    dtype = dtype or {"f32": np.float32, "i8": np.int8}[element]
    m = memref(f"3x4x8x{element}")
    text = kernel(
        f"%m: {m}, %i: index",
        f"""%a = vector.load %m[%i, %c1, %c2] : {m}, vector<2x5x{element}>
        %b = vector.load %m[%c0, %i, %c0] : {m}, vector<3x1x8x{element}>
        vector.store %a, %m[%c0, %c2, %c3] : {m}, vector<2x5x{element}>
        return %a, %b : vector<2x5x{element}>, vector<3x1x8x{element}>""",
        f"vector<2x5x{element}>, vector<3x1x8x{element}>",
    )
    source = (ramp(3, 4, 8) % 7 - 3).astype(dtype)
    a, b, after = run(text, source, np.int32(2))
    expected = source.copy()
    expected[0, 2:4, 3:8] = source[2, 1:3, 2:7]
    np.testing.assert_array_equal(a, source[2, 1:3, 2:7])
    np.testing.assert_array_equal(b, source[:, 2:3])
    np.testing.assert_array_equal(after, expected)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("add", [False, True])
def test_stores_where_a_mask_holds_and_sums(masked: bool, add: bool) -> None:
    """A masked store leaves what the mask leaves out; an accumulating one adds."""
    m = memref("4x8xf32")
    mask, kind = ("masked %k", "vector<2x8xi1>") if masked else ("", "")
    text = kernel(
        f"%m: {m}, %i: index, %v: vector<2x8xf32>, %k: vector<2x8xi1>",
        f"""tpu.vector_store %m[%i, %c0], %v {mask} {{add = {str(add).lower()}, strides = array<i32>}}
          : {m}, vector<2x8xf32>, {kind}
        return""",
    )
    source, value = ramp(4, 8), -ramp(2, 8)
    where = ramp(2, 8) % 3 == 1
    (after,) = run(text, source, np.int32(2), value, where)
    expected = source.copy()
    new = source[2:] + value if add else value
    expected[2:] = np.where(where, new, source[2:]) if masked else new
    np.testing.assert_array_equal(after, expected)


@pytest.mark.parametrize("uninitialized", ["nan", "zero"])
def test_what_a_mask_leaves_out_of_a_load_is_undefined(uninitialized: Any) -> None:
    """A masked load on a TensorCore shows where its result is undefined."""
    m = memref("4x8xf32")
    text = kernel(
        f"%m: {m}, %k: vector<2x8xi1>",
        f"""%v = tpu.vector_load %m[%c1, %c0] masked %k {{strides = array<i32>}} : {m}, vector<2x8xf32>, vector<2x8xi1>
        return %v : vector<2x8xf32>""",
        "vector<2x8xf32>",
    )
    where = ramp(2, 8) % 3 == 1
    value, _ = run(text, ramp(4, 8), where, options=Options(uninitialized=uninitialized))
    np.testing.assert_array_equal(value, np.where(where, ramp(4, 8)[1:3], np.nan if uninitialized == "nan" else 0))


def test_strided_loads_and_stores_are_those_of_numpy() -> None:
    """Every so many elements, in several dimensions, from anywhere; what is between them stays."""

    @settings(max_examples=15, deadline=None)
    @given(
        st.tuples(*[st.integers(1, 4)] * 3), st.tuples(*[st.integers(1, 3)] * 3), st.tuples(*[st.integers(0, 3)] * 3)
    )
    def check(sizes: tuple[int, ...], strides: tuple[int, ...], starts: tuple[int, ...]) -> None:
        shape = tuple(
            start + (size - 1) * stride + 1 + extra
            for start, size, stride, extra in zip(starts, sizes, strides, (0, 1, 2), strict=True)
        )
        m, v = memref("x".join(map(str, shape)) + "xi32"), "vector<" + "x".join(map(str, sizes)) + "xi32>"
        steps = f"{{strides = array<i32: {', '.join(map(str, strides))}>}}"
        text = kernel(
            f"%m: {m}, %i: index, %j: index, %l: index, %v: {v}",
            f"""%a = tpu.strided_load %m[%i, %j, %l] {steps} : {m}, {v}
            tpu.strided_store %m[%i, %j, %l], %v {steps} : {m}, {v}
            return %a : {v}""",
            v,
        )
        source, value = ramp(*shape, dtype=np.int32), -ramp(*sizes, dtype=np.int32)
        read, after = run(text, source, *map(np.int32, starts), value)
        where = tuple(
            slice(start, start + (size - 1) * stride + 1, stride)
            for start, size, stride in zip(starts, sizes, strides, strict=True)
        )
        np.testing.assert_array_equal(read, source[where])
        expected = source.copy()
        expected[where] = value
        np.testing.assert_array_equal(after, expected)

    check()
