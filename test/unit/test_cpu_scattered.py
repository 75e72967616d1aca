"""Rules for loads and stores of elements that are no box, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cpu_harness import executable, refusals, run
from hypothesis import given, settings
from hypothesis import strategies as st

from mosaic_grid.cpu.options import Options

SPARSE = "attributes {tpu.core_type = #tpu.core_type<sc_vector_subcore>}"
M2 = "memref<5x16xi32, #tpu.memory_space<vmem>>"
M1 = "memref<40xi32, #tpu.memory_space<vmem>>"
V, K = "vector<16xi32>", "vector<16xi1>"

masks = st.lists(st.booleans(), min_size=16, max_size=16).map(lambda bits: np.array(bits))


def kernel(arguments: str, body: str, results: str = "", attributes: str = "") -> str:
    """A function with the constants `%c0` and `%c3`."""
    constants = "%c0 = arith.constant 0 : index\n%c3 = arith.constant 3 : index"
    return f"func.func @f({arguments}) -> ({results}) {attributes} {{\n{constants}\n{body}\n}}"


def ramp(*shape: int) -> np.ndarray[Any, Any]:
    """Numbers from 1 on."""
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.int32).reshape(shape)


def test_elements_are_picked_by_index_vectors() -> None:
    """A gather takes one element for each place; what its mask leaves out is undefined, and may have any index."""
    program = executable(
        kernel(
            f"%m: {M2}, %i: {V}, %j: {V}, %k: {K}",
            f"""%a = tpu.vector_load_idx %m[%i, %j] masked %k : {M2}[{V}, {V}], {V}, {K}
            %b = tpu.vector_load_idx %m[%i, %j] : {M2}[{V}, {V}], {V},
            return %a, %b : {V}, {V}""",
            f"{V}, {V}",
        )
    )

    @settings(max_examples=20, deadline=None)
    @given(masks, st.randoms(use_true_random=False))
    def check(mask: np.ndarray[Any, Any], random: Any) -> None:
        i, j = (np.array([random.randrange(n) for _ in range(16)], np.int32) for n in (5, 16))
        wild = np.where(mask, i, 10**6 * (i - 2)).astype(np.int32)
        source = ramp(5, 16)
        a, _, _ = program(source, wild, j, mask)
        _, b, _ = program(source, i, j, mask)
        np.testing.assert_array_equal(a, np.where(mask, source[i, j], -(2**31)))
        np.testing.assert_array_equal(b, source[i, j])

    check()


@pytest.mark.parametrize("add", [False, True])
def test_elements_are_put_by_index_vectors(add: bool) -> None:
    """A scatter writes where the mask holds; several for one place are all added, and else the last stays."""
    text = kernel(
        f"%m: {M2}, %i: {V}, %j: {V}, %v: {V}, %k: {K}",
        f"""tpu.vector_store_idx %m[%i, %j], %v masked %k {{add = {str(add).lower()}}} : {M2}[{V}, {V}], {V}, {K}
        return""",
    )
    random = np.random.default_rng(0)
    program = executable(text)
    for _ in range(5):
        i, j = random.integers(0, 3, 16, np.int32), random.integers(0, 2, 16, np.int32)
        mask, value, source = random.random(16) < 0.6, -ramp(16), ramp(5, 16)
        (after,) = program(source, i, j, value, mask)
        expected = source.copy()
        for n in np.flatnonzero(mask):
            expected[i[n], j[n]] = value[n] + (expected[i[n], j[n]] if add else 0)
        np.testing.assert_array_equal(after, expected)


EXPAND = {
    "tpu.vector_expand_load": f"%a = tpu.vector_expand_load %m[%i], %k {{expand_dim = 0 : i32}} : {M1}, {V}, {K}",
    "tpu.expand_load_vreg": f"%a = tpu.expand_load_vreg %m[%i], %k : {M1}, {V}, {K}",
    "tpu.vector_load": f"%a = tpu.vector_load %m[%i] masked %k {{strides = array<i32>}} : {M1}, {V}, {K}",
}


@pytest.mark.parametrize("form", EXPAND)
def test_a_load_that_expands_reads_on_where_the_mask_is_set(form: str) -> None:
    """The n-th element that the mask has set is the n-th in memory, also where the vector would stick out of it."""
    program = executable(kernel(f"%m: {M1}, %i: index, %k: {K}", f"{EXPAND[form]}\nreturn %a : {V}", V, SPARSE))

    @settings(max_examples=20, deadline=None)
    @given(masks, st.integers(0, 40))
    def check(mask: np.ndarray[Any, Any], start: int) -> None:
        start = min(start, 40 - int(mask.sum()))
        value, _ = program(ramp(40), np.array(start, np.int32), mask)
        expected = np.full(16, -(2**31), np.int32)
        expected[mask] = ramp(40)[start : start + mask.sum()]
        np.testing.assert_array_equal(value, expected)

    check()


COMPRESS = {
    "tpu.vector_compress_store": "tpu.vector_compress_store %m[%i], %v, %k {ADD, compress_dim = 0 : i32}",
    "tpu.compress_store_vreg": "tpu.compress_store_vreg %m[%i], %v, %k {ADD}",
    "tpu.vector_store": "tpu.vector_store %m[%i], %v masked %k {ADD, strides = array<i32>}",
}


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("form", COMPRESS)
def test_a_store_that_compresses_leaves_no_gaps(form: str, add: bool) -> None:
    """The elements that the mask has set are written, or added, one behind the other; nothing else changes."""
    store = COMPRESS[form].replace("ADD", f"add = {str(add).lower()}")
    program = executable(
        kernel(f"%m: {M1}, %i: index, %v: {V}, %k: {K}", f"{store} : {M1}, {V}, {K}\nreturn", "", SPARSE)
    )

    @settings(max_examples=20, deadline=None)
    @given(masks, st.integers(0, 40))
    def check(mask: np.ndarray[Any, Any], start: int) -> None:
        start = min(start, 40 - int(mask.sum()))
        (after,) = program(ramp(40), np.array(start, np.int32), -ramp(16), mask)
        expected = ramp(40)
        expected[start : start + mask.sum()] = -ramp(16)[mask] + (expected[start : start + mask.sum()] if add else 0)
        np.testing.assert_array_equal(after, expected)

    check()


def test_a_dimension_other_than_the_last_may_be_expanded() -> None:
    """Counting goes along the dimension that is named, for each place of the others by itself."""
    m, v, k = "memref<6x4xi32, #tpu.memory_space<vmem>>", "vector<3x4xi32>", "vector<3x4xi1>"
    text = kernel(
        f"%m: {m}, %k: {k}, %v: {v}, %i: index",
        f"""%a = tpu.vector_expand_load %m[%i, %c0], %k {{expand_dim = 0 : i32}} : {m}, {v}, {k}
        tpu.vector_compress_store %m[%c3, %c0], %v, %k {{add = false, compress_dim = 0 : i32}} : {m}, {v}, {k}
        return %a : {v}""",
        v,
        SPARSE,
    )
    mask = np.array([[1, 0, 1, 1], [1, 1, 0, 0], [1, 1, 0, 1]], bool)
    value, after = run(text, ramp(6, 4), mask, -ramp(3, 4), np.int32(1), options=Options(uninitialized="zero"))
    loaded, stored = np.zeros((3, 4), np.int32), ramp(6, 4)
    for column in range(4):
        rows = np.flatnonzero(mask[:, column])
        loaded[rows, column] = ramp(6, 4)[1 : 1 + len(rows), column]
        stored[3 : 3 + len(rows), column] = -ramp(3, 4)[rows, column]
    np.testing.assert_array_equal(value, loaded)
    np.testing.assert_array_equal(after, stored)


R, W = "memref<40x128xi32, #tpu.memory_space<vmem>>", "vector<8x128xi32>"
EVERY, SOME = "true, true, true, true, true, true, true, true", "true, false, true, true, false, true, true, true"


@pytest.mark.parametrize("mask", [EVERY, SOME])
@pytest.mark.parametrize("offsets", [[0, 1, 2, 3, 4, 5, 6, 7], [0, 3, 6, 9, 12, 15, 18, 21], [7, 2, 2, 30, 0, 1, 9, 5]])
def test_rows_are_loaded_and_stored_one_by_one(mask: str, offsets: list[int]) -> None:
    """A row for each sublane, so many rows further on each; those that the mask leaves out are not touched."""
    stride = offsets[1] - offsets[0]
    if offsets == [n * stride for n in range(8)]:
        how, tail = f"sublanes [{mask}] sublane_stride {stride}", ""
        names = ("tpu.load", "tpu.store")
    else:
        how, tail = "", f"{{sublane_mask = array<i1: {mask}>, sublane_offsets = array<i32: {str(offsets)[1:-1]}>}}"
        names = ("tpu.shuffled_load", "tpu.shuffled_store")
    last = "," if names[1] == "tpu.store" else ""
    text = kernel(
        f"%m: {R}, %i: index, %v: {W}",
        f"""%a = {names[0]} %m[%i, %c0] {how} {tail} : {R}, {W}
        {names[1]} %m[%i, %c0], %v {how} {tail} : {R}, {W}{last}
        return %a : {W}""",
        W,
    )
    wanted = np.array([word == "true" for word in mask.split(", ")])
    source, value = ramp(40, 128), -ramp(8, 128)
    read, after = run(text, source, np.int32(2), value)
    rows = 2 + np.array(offsets)
    np.testing.assert_array_equal(read, np.where(wanted[:, None], source[rows], -(2**31)))
    expected = source.copy()
    for n in np.flatnonzero(wanted):
        expected[rows[n]] = value[n]
    np.testing.assert_array_equal(after, expected)


def test_a_sparse_core_loads_lanes_and_adds_to_them() -> None:
    """A load or store of one register takes its elements from where the index says; a store may add."""
    every = ", ".join(["true"] * 16)
    text = kernel(
        f"%m: {M1}, %i: index, %v: {V}",
        f"""%a = tpu.load %m[%i] sublanes [{every}] : {M1}, {V}
        tpu.store %m[%c3], %v sublanes [{every}] {{add = true}} : {M1}, {V},
        return %a : {V}""",
        V,
        SPARSE,
    )
    read, after = run(text, ramp(40), np.int32(21), -ramp(16))
    np.testing.assert_array_equal(read, ramp(40)[21:37])
    np.testing.assert_array_equal(after[3:19], ramp(40)[3:19] - ramp(16))
    np.testing.assert_array_equal(np.delete(after, range(3, 19)), np.delete(ramp(40), range(3, 19)))


S = "memref<4xi32, #tpu.memory_space<smem>>"


def counter(core: str) -> str:
    """Adds to a counter of the subcore whose number is the value `core`."""
    return kernel(
        f"%m: {S}, %n: i32, %one: i32",
        f"""%me = tpu.subcore_id : i32
        %old = tpu.fetch_and_add_sync %m[%one], %n, %{core} : {S}, i32 -> i32
        return %old : i32""",
        "i32",
        SPARSE,
    )


def test_counters_of_other_subcores_are_refused() -> None:
    """Only a counter that is certainly this subcore's own can be added to."""
    assert "tpu.fetch_and_add_sync: a counter of another subcore" in refusals(counter("one"))
    assert not any("fetch" in line for line in refusals(counter("me")))
