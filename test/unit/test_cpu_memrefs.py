"""Rules for allocations and views of memory, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from cpu_harness import refusals, run
from cpu_memory_kernels import kernel, memref, ramp

from mosaic_grid.cpu.options import Options


def test_views_of_views_are_parts_of_one_memory() -> None:
    """A slice, squeezed, reshaped and seen as other numbers, is written through to the memory it is of."""
    m = memref("3x8x128xbf16")
    text = kernel(
        f"%m: {m}, %i: i32",
        f"""%s = tpu.memref_slice %m[%i, %k0, %k0] : {m} -> {memref("1x8x128xbf16")}
        %q = tpu.memref_squeeze %s : {memref("1x8x128xbf16")} -> {memref("8x128xbf16")}
        %b = tpu.memref_bitcast %q : {memref("8x128xbf16")} -> {memref("4x128xi32")}
        %r = tpu.memref_reshape %b : {memref("4x128xi32")} -> {memref("2x2x128xi32")}
        %n = tpu.annotate %r {{no_store = true}} : {memref("2x2x128xi32")}
        %p = memref.memory_space_cast %n : {memref("2x2x128xi32")} to {memref("2x2x128xi32", "any")}
        %e = tpu.erase_memref_layout %p : {memref("2x2x128xi32", "any")} -> {memref("2x2x128xi32", "any")}
        %x = vector.load %e[%c1, %c0, %c0] : {memref("2x2x128xi32", "any")}, vector<1x1x128xi32>
        vector.store %x, %e[%c0, %c1, %c0] : {memref("2x2x128xi32", "any")}, vector<1x1x128xi32>
        return %x : vector<1x1x128xi32>""",
        "vector<1x1x128xi32>",
    )
    source = ramp(3, 8, 128).astype(ml_dtypes.bfloat16)
    read, after = run(text, source, np.int32(1))
    bits = source.view(np.uint16).astype(np.uint32)
    np.testing.assert_array_equal(read.view(np.uint32)[0, 0], bits[1, 4] | bits[1, 5] << 16)
    expected = source.copy()
    expected[1, 2:4] = source[1, 4:6]
    np.testing.assert_array_equal(after, expected)


def test_memory_is_written_through_every_kind_of_view_in_a_loop() -> None:
    """What a loop writes by way of a view that is made in it is there after the loop."""
    m, p = memref("4x8xi32"), memref("1x8xi32")
    views = [
        f"%v = memref.cast %s : {p} to {p}",
        f"%v = memref.memory_space_cast %s : {p} to {p}",
        f"%v = tpu.erase_memref_layout %s : {p} -> {p}",
        f'%v = "tpu.assume_layout"(%s) : ({p}) -> {p}',
        f"%v = tpu.annotate %s {{no_store = false}} : {p}",
        f'%v = "tpu.reinterpret_cast"(%s) <{{operandSegmentSizes = array<i32: 1, 0, 0, 0>}}> : ({p}) -> {p}',
        f"%v = tpu.memref_slice %s[%k0, %k0] : {p} -> {p}",
    ]
    expected = np.zeros((4, 8), np.int32)
    expected[:3] = 7
    for view in views:
        text = kernel(
            f"%m: {m}",
            f"""%x = arith.constant dense<7> : vector<1x8xi32>
            scf.for %i = %k0 to %k3 step %k1 : i32 {{
              %s = tpu.memref_slice %m[%i, %k0] : {m} -> {p}
              {view}
              vector.store %x, %v[%c0, %c0] : {p}, vector<1x8xi32>
            }}
            return""",
        )
        np.testing.assert_array_equal(run(text, np.zeros((4, 8), np.int32))[0], expected)


def test_memory_is_seen_as_numbers_of_the_same_width() -> None:
    """A float's bits are read and written as an integer."""
    m, i = memref("4x8xf32"), memref("4x8xi32")
    text = kernel(
        f"%m: {m}, %i: index",
        f"""%b = tpu.memref_bitcast %m : {m} -> {i}
        %x = vector.load %b[%i, %c2] : {i}, vector<1x3xi32>
        vector.store %x, %b[%c0, %c0] : {i}, vector<1x3xi32>
        return %x : vector<1x3xi32>""",
        "vector<1x3xi32>",
    )
    read, after = run(text, ramp(4, 8), np.int32(3))
    expected = ramp(4, 8)
    expected[0, :3] = expected[3, 2:5]
    np.testing.assert_array_equal(read[0].view(np.float32), expected[3, 2:5])
    np.testing.assert_array_equal(after, expected)


def test_a_dimension_known_at_run_time_has_a_size_and_an_origin() -> None:
    """Memory of dynamic size is read from its beginning, and tells its size, sliced twice or cast as well."""
    m, d, e = memref("16x4xi32"), memref("?x4xi32"), memref("2x4xi32")
    text = kernel(
        f"%m: {m}, %i: i32, %n: i32",
        f"""%s = tpu.memref_slice %m[%i, %k0] <%n> : {m} -> {d}
        %t = tpu.memref_slice %s[%k1, %k0] <%n> : {d} -> {d}
        %u = memref.cast %t : {d} to {e}
        %v = vector.load %t[%c1, %c0] : {d}, vector<2x4xi32>
        %w = vector.load %u[%c0, %c0] : {e}, vector<2x4xi32>
        %size = memref.dim %t, %c0 : {d}
        %other = memref.dim %t, %c1 : {d}
        return %v, %w, %size, %other : vector<2x4xi32>, vector<2x4xi32>, index, index""",
        "vector<2x4xi32>, vector<2x4xi32>, index, index",
    )
    source = ramp(16, 4, dtype=np.int32)
    v, w, size, other, _ = run(text, source, np.int32(11), np.int32(4))
    np.testing.assert_array_equal(v, source[13:15])
    np.testing.assert_array_equal(w, source[12:14])
    assert [int(size), int(other)] == [4, 4]


@pytest.mark.parametrize("uninitialized", ["nan", "zero"])
def test_allocations_hold_what_nobody_wrote(uninitialized: Any) -> None:
    """Fresh memory shows when it is read: NaN, the least integer, false; or zeros. Semaphores count from 0."""
    kinds = ["f32", "bf16", "f8E5M2", "i32", "i8", "i1"]
    lines = [
        f"%m{n} = memref.alloca() : {memref(f'8x{kind}')}\n%v{n} = vector.load %m{n}[%c0] : {memref(f'8x{kind}')}, "
        f"vector<8x{kind}>"
        for n, kind in enumerate(kinds)
    ]
    sem = "memref<!tpu.semaphore, #tpu.memory_space<semaphore_mem>>"
    lines.append(f'%s = tpu.sem_alloc : {sem}\n%count = "tpu.sem_read"(%s) : ({sem}) -> i32')
    types = ", ".join([*(f"vector<8x{kind}>" for kind in kinds), "i32"])
    names = ", ".join([*(f"%v{n}" for n in range(len(kinds))), "%count"])
    text = kernel("", "\n".join([*lines, f"return {names} : {types}"]), types)
    *found, count = run(text, options=Options(uninitialized=uninitialized))
    assert count == 0
    if uninitialized == "zero":
        assert not any(value.astype(np.float32).any() for value in found)
    else:
        assert all(np.isnan(value.astype(np.float32)).all() for value in found[:3])
        assert [value[0] for value in found[3:]] == [-(2**31), -128, False]


@pytest.mark.parametrize(
    ("asked", "core", "answer"),
    [
        ("vmem", None, True),
        ("smem", None, False),
        ("vmem, tc", None, True),
        ("vmem, sc_vector_subcore", None, False),
        ("vmem, sc_vector_subcore", "sc_vector_subcore", True),
    ],
)
def test_whether_memory_is_in_a_space(asked: str, core: str | None, answer: bool) -> None:
    """The kind of core counts where it is asked for, and is the kernel's own where the memory doesn't say."""
    attributes = f"attributes {{tpu.core_type = #tpu.core_type<{core}>}}" if core else ""
    text = f"""func.func @f(%m: {memref("8xf32")}) -> i1 {attributes} {{
        %a = "tpu.memref_memory_space_is"(%m) <{{memory_space = #tpu.memory_space<{asked}>}}>
          : ({memref("8xf32")}) -> i1
        return %a : i1 }}"""
    assert run(text, ramp(8))[0] == answer


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            f'%r = "tpu.reinterpret_cast"(%m) <{{operandSegmentSizes = array<i32: 1, 0, 0, 0>}}> '
            f": ({memref('4x8xf32')}) -> {memref('8x4xf32')}",
            "tpu.reinterpret_cast: another shape, type or layout",
        ),
        (
            f"%a = memref.memory_space_cast %m : {memref('4x8xf32')} to {memref('4x8xf32', 'any')}\n"
            f'%r = "tpu.memref_memory_space_is"(%a) <{{memory_space = #tpu.memory_space<hbm>}}> '
            f": ({memref('4x8xf32', 'any')}) -> i1",
            "tpu.memref_memory_space_is: a memory space that is left open",
        ),
        (
            f"%r = memref.dim %m, %i : {memref('4x8xf32')}",
            "memref.dim: a dimension that is only known at run time",
        ),
    ],
)
def test_what_isnt_exact_is_refused(body: str, reason: str) -> None:
    """A form whose meaning isn't certain is listed with the reason."""
    assert refusals(kernel(f"%m: {memref('4x8xf32')}, %i: index", f"{body}\nreturn")) == [reason]
