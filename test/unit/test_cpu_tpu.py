"""The rules for the pure operations of `tpu`, against NumPy and, for what JAX itself defines, against JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cpu_harness import context, executable, refusals, run
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.experimental.pallas import tpu as pltpu
from jaxlib.mlir import ir

from mosaic_grid.context import unknown_location
from mosaic_grid.cpu import build
from mosaic_grid.cpu.arrays import DTYPES, Array
from mosaic_grid.cpu.lowering import Lowering
from mosaic_grid.cpu.options import Options
from mosaic_grid.cpu.rules import RULES

SPARSE = "attributes {tpu.core_type = #tpu.core_type<sc_vector_subcore>}"
"""Operations of the SparseCore are accepted in its functions only."""


def vector(shape: tuple[int, ...], element: str) -> str:
    """The type of a vector."""
    return f"vector<{''.join(f'{size}x' for size in shape)}{element}>"


def function(text: str, types: tuple[str, ...], results: tuple[str, ...]) -> str:
    """A function of one operation; its operands are called %0, %1, and so on."""
    arguments = ", ".join(f"%{number}: {kind}" for number, kind in enumerate(types))
    names = ", ".join(f"%r#{number}" for number in range(len(results)))
    several = f"%r:{len(results)}"
    return f"""func.func @f({arguments}) -> ({", ".join(results)}) {SPARSE} {{
      {several} = {text}
      return {names} : {", ".join(results)} }}"""


def apply(text: str, types: tuple[str, ...], result: str, *arrays: Any) -> Array:
    """The one result of an operation."""
    (array,) = run(function(text, types, (result,)), *arrays)
    return array


def integers(shape: tuple[int, ...], element: str = "i32", seed: int = 0) -> Array:
    """Any integers of a type."""
    width = int(element[1:])
    numbers = np.random.default_rng(seed).integers(-(2 ** (width - 1)), 2 ** (width - 1), shape)
    return numbers.astype(DTYPES[element])


def floats(shape: tuple[int, ...], seed: int = 0) -> Array:
    """Numbers of normal size."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("dimensions", [[0], [1], [2], [2, 0], [0, 2], [0, 1, 2], [1, 0]])
@pytest.mark.parametrize("element", ["i32", "i16", "i8", "index"])
def test_iota(dimensions: list[int], element: str) -> None:
    """The place in several dimensions, taken together in row-major order: the last one listed counts fastest."""
    shape = (4, 3, 2)
    listed = ", ".join(map(str, dimensions))
    kind = vector(shape, element)
    found = apply(f"tpu.iota {{dimensions = array<i32: {listed}>}} : {kind}", (), kind)
    wanted = np.zeros(shape, np.int64)
    for axis in dimensions:
        wanted = wanted * shape[axis] + np.arange(shape[axis]).reshape([-1 if k == axis else 1 for k in range(3)])
    np.testing.assert_array_equal(found, wanted)


@settings(max_examples=25)
@given(st.integers(0, 1), st.integers(-20, 20), st.booleans(), st.tuples(st.integers(1, 6), st.integers(1, 6)))
def test_rotate(axis: int, amount: int, known: bool, shape: tuple[int, int]) -> None:
    """A roll towards higher indices, as `numpy.roll`; the amount is a constant or not, and may be negative."""
    value = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    kind = vector(shape, "f32")
    by = f"%c = arith.constant {amount} : i32" if known else ""
    text = f"""func.func @f(%v: {kind}, %n: i32) -> {kind} {{ {by}
      %r = tpu.dynamic_rotate %v by {"%c" if known else "%n"} dim {axis} : {kind}, i32 -> {kind}
      return %r : {kind} }}"""
    np.testing.assert_array_equal(run(text, value, np.int32(amount))[0], np.roll(value, amount, axis))


@pytest.mark.parametrize(("axis", "along"), [(0, 1), (1, 0), (2, 0), (1, 2)])
@pytest.mark.parametrize("stride", [0, 1, 3, 7])
def test_rotate_with_a_stride(axis: int, along: int, stride: int) -> None:
    """The amount grows by the stride from one index of the stride dimension to the next, as in JAX's `roll`."""
    value = np.arange(4 * 5 * 6, dtype=np.float32).reshape(4, 5, 6)
    kind = vector(value.shape, "f32")
    text = f"""tpu.dynamic_rotate %0 by %1 dim {axis} {{stride = {stride} : si32, stride_dimension = {along} : si32}}
      : {kind}, i32 -> {kind}"""
    found = apply(text, (kind, "i32"), kind, value, np.int32(2))
    with jax.default_device(jax.devices("cpu")[0]):
        wanted = jax.jit(lambda x: pltpu.roll(x, 2, axis, stride=stride, stride_axis=along))(value)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_dynamic_gather_along_a_dimension(axis: int) -> None:
    """It is `numpy.take_along_axis`; indices are taken modulo the size, also where it is no power of two."""
    value = floats((3, 4, 5))
    shape = tuple(7 if k == axis else size for k, size in enumerate(value.shape))
    indices = np.random.default_rng(1).integers(-20, 20, shape).astype(np.int32)
    types = (vector(value.shape, "f32"), vector(shape, "i32"))
    result = vector(shape, "f32")
    text = f"tpu.dynamic_gather %0[%1] in [{axis}] : {', '.join(types)} -> {result}"
    found = apply(text, types, result, value, indices)
    np.testing.assert_array_equal(found, np.take_along_axis(value, indices % value.shape[axis], axis))


def test_dynamic_gather_along_several_dimensions() -> None:
    """The dimensions are taken together in the order in which they are listed."""
    value, indices = floats((3, 4, 5)), np.random.default_rng(1).integers(0, 15, (3, 4, 5)).astype(np.int32)
    types = (vector(value.shape, "f32"), vector(indices.shape, "i32"))
    text = f"tpu.dynamic_gather %0[%1] in [2, 0] : {', '.join(types)} -> {types[0]}"
    together = value.transpose(1, 2, 0).reshape(4, 15)
    wanted = together[np.arange(4)[None, :, None], indices]
    np.testing.assert_array_equal(apply(text, types, types[0], value, indices), wanted)


def test_gathers_by_known_indices() -> None:
    """`tpu.gather` picks along a dimension; `tpu.sublane_shuffle` picks rows of two vectors as if they were one."""
    value, other = floats((4, 6)), floats((4, 6), 1)
    kind = vector((4, 6), "f32")
    found = apply(f"tpu.gather %0[[5, 0, 0, 3, 2, 2]] in 1 : {kind} -> {kind}", (kind,), kind, value)
    np.testing.assert_array_equal(found, value[:, [5, 0, 0, 3, 2, 2]])
    text = f'"tpu.sublane_shuffle"(%0, %1) <{{pattern = array<i32: 7, 1, 0, 4>}}> : ({kind}, {kind}) -> {kind}'
    found = apply(text, (kind, kind), kind, value, other)
    np.testing.assert_array_equal(found, np.stack([other[3], value[1], value[0], other[0]]))


def test_broadcast_in_sublanes() -> None:
    """Row i is filled with its own element in column lane + i."""
    value, kind = floats((8, 128)), vector((8, 128), "f32")
    found = apply(f"tpu.broadcast_in_sublanes %0, 5 : {kind} -> {kind}", (kind,), kind, value)
    np.testing.assert_array_equal(found, np.repeat(value[np.arange(8), np.arange(8) + 5][:, None], 128, 1))


BITCASTS = [
    ("f32", "i32"), ("i16", "bf16"), ("bf16", "i16"), ("i8", "f8E4M3FN"), ("f8E5M2", "i8"),
    ("bf16", "i32"), ("i32", "bf16"), ("i16", "i32"), ("i32", "i16"), ("f32", "bf16"), ("i32", "i8"), ("i8", "i32"),
    ("i8", "f32"), ("i16", "f8E4M3FN"), ("i4", "i8"), ("i8", "i4"), ("i4", "i32"), ("i32", "i4"),
]  # fmt: skip


def bits_of(name: str) -> int:
    """The bits of an element of a type."""
    return 8 if name.startswith("f8") else int("".join(filter(str.isdigit, name)))


def as_bits(array: Array, width: int) -> Array:
    """Each element as its bits, the lowest first, along a new last dimension."""
    numbers = array.astype(np.int64) % 16 if width == 4 else array.view(f"u{width // 8}").astype(np.int64)
    return numbers[..., None] >> np.arange(width) & 1


@pytest.mark.parametrize("shape", [(16, 4), (2, 8, 3), (2, 1, 16, 1)])
@pytest.mark.parametrize(("before", "after"), BITCASTS)
def test_bitcast(before: str, after: str, shape: tuple[int, ...]) -> None:
    """Between any widths: rows of the second last dimension share a wider row, the first in the low bits."""
    old, new = bits_of(before), bits_of(after)
    source = integers(shape, f"i{old}")
    value = source if before.startswith("i") else source.view(DTYPES[before])
    rows = shape[-2] * old // new
    result = (*shape[:-2], rows, shape[-1])
    types = vector(shape, before), vector(result, after)
    found = apply(f"tpu.bitcast %0 : {types[0]} -> {types[1]}", types[:1], types[1], value)
    # bits of a column in order: (rows, bits) of either width are the same list
    wanted = np.moveaxis(as_bits(source, old), -2, -3).reshape(*shape[:-2], shape[-1], -1)
    np.testing.assert_array_equal(np.moveaxis(as_bits(found, new), -2, -3).reshape(wanted.shape), wanted)


@pytest.mark.parametrize(("before", "after"), [("float32", "bfloat16"), ("bfloat16", "int32"), ("int8", "int32")])
def test_bitcast_is_that_of_jax(before: str, after: str) -> None:
    """`pltpu.bitcast` has a definition of its own outside of kernels: the same bits."""
    names = {"float32": "f32", "bfloat16": "bf16", "int32": "i32", "int8": "i8"}
    value = integers((16, 8), "i32").view(DTYPES[names[before]])[:, :8].copy()
    wanted = np.asarray(jax.jit(lambda x: pltpu.bitcast(x, jnp.dtype(after)))(value))
    types = vector(value.shape, names[before]), vector(wanted.shape, names[after])
    found = apply(f"tpu.bitcast %0 : {types[0]} -> {types[1]}", types[:1], types[1], value)
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    ("source", "target"), [("i32", "i16"), ("i32", "i8"), ("i32", "i4"), ("i16", "i8"), ("i8", "i4")]
)
def test_integers_packed_and_unpacked(source: str, target: str) -> None:
    """High bits are lost, the first source is in the low bits, and what comes out again is sign-extended."""
    wide, narrow = int(source[1:]), int(target[1:])
    factor = wide // narrow
    arrays = [integers((8, 16), source, seed) for seed in range(factor)]
    kind = vector((8, 16), source)
    names = ", ".join(f"%{number}" for number in range(factor))
    text = f"tpu.pack_elementwise {names} {{target_type = {target}}} : {', '.join([kind] * factor)} -> {kind}"
    packed = apply(text, (kind,) * factor, kind, *arrays)
    wanted = sum((array.astype(np.int64) % 2**narrow) << number * narrow for number, array in enumerate(arrays))
    np.testing.assert_array_equal(packed.astype(np.int64) % 2**wide, wanted)
    for number, array in enumerate(arrays):
        text = f"tpu.unpack_elementwise %0, {number} {{source_type = {target}}} : {kind} -> {kind}"
        half = 2 ** (narrow - 1)
        found = apply(text, (kind,), kind, packed)
        np.testing.assert_array_equal(found, (array.astype(np.int64) + half) % 2**narrow - half)


def test_floats_packed_and_unpacked() -> None:
    """f32 is rounded to bf16, to nearest even, and comes out as it went in."""
    arrays = [floats((8, 16), seed) for seed in (0, 1)]
    kind, word = vector((8, 16), "f32"), vector((8, 16), "i32")
    text = f"tpu.pack_elementwise %0, %1 {{target_type = bf16}} : {kind}, {kind} -> {word}"
    packed = apply(text, (kind, kind), word, *arrays)
    for number, array in enumerate(arrays):
        text = f"tpu.unpack_elementwise %0, {number} {{source_type = bf16}} : {word} -> {kind}"
        found = apply(text, (word,), kind, packed)
        np.testing.assert_array_equal(found, array.astype(DTYPES["bf16"]).astype(np.float32))


@pytest.mark.parametrize("form", ["interleaved", "compressed"])
@pytest.mark.parametrize(("wide", "narrow"), [("f32", "bf16"), ("i32", "i16"), ("i16", "i8")])
def test_subelements(form: str, wide: str, narrow: str) -> None:
    """Two vectors of the SparseCore packed into one, alternating or one behind the other, and out again."""
    arrays = [floats((16,), seed) if wide == "f32" else integers((16,), wide, seed) for seed in (0, 1)]
    kept = [array.astype(DTYPES[narrow]) for array in arrays]
    source = vector((16,), wide)
    shape = (32,) if form == "interleaved" else (16, 2)
    packed = vector(shape, narrow)
    text = f"""tpu.pack_subelements %0, %1 {{positions = array<i32: 0, 1>, pack_format = #tpu.pack_format<{form}>}}
      : {source}, {source} -> {packed}"""
    found = apply(text, (source, source), packed, *arrays)
    wanted = np.stack(kept, -1).reshape(-1) if form == "interleaved" else np.concatenate(kept).reshape(16, 2)
    assert found.tobytes() == wanted.tobytes()
    for number, part in enumerate(kept):
        text = f"tpu.unpack_subelements %0, {number} {{pack_format = #tpu.pack_format<{form}>}} : {packed} -> {source}"
        np.testing.assert_array_equal(apply(text, (packed,), source, found), part.astype(DTYPES[wide]))


def test_unsigned_subelements() -> None:
    """Zeros are put in front of unsigned integers."""
    value = np.array([-1, 1, -128, 2], np.int8)
    types = vector((4,), "i8"), vector((2,), "i16")
    text = f"""tpu.unpack_subelements %0, 0 {{pack_format = #tpu.pack_format<interleaved>, unsigned_integers = true}}
      : {types[0]} -> {types[1]}"""
    np.testing.assert_array_equal(apply(text, types[:1], types[1], value), [255, 128])


@pytest.mark.parametrize(("before", "after"), [(4, 2), (4, 1), (2, 4), (1, 2), (2, 2)])
def test_mask_cast(before: int, after: int) -> None:
    """Each predicate of a word stands for as many rows as the other packing has more."""
    words = np.random.default_rng(0).integers(0, 2, (8, 16, min(before, after))).astype(bool)
    value, wanted = (np.repeat(words, packing // min(before, after), 2) for packing in (before, after))
    value, wanted = (array[..., 0] if array.shape[2] == 1 else array for array in (value, wanted))
    types = vector(value.shape, "i1"), vector(wanted.shape, "i1")
    found = apply(f"tpu.mask_cast %0 : {types[0]} -> {types[1]}", types[:1], types[1], value)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("text", "types", "result", "reason"),
    [
        (
            "tpu.pack_subelements %0, %0 {positions = array<i32: 0, 2>, pack_format = #tpu.pack_format<interleaved>}"
            " : vector<16xi32>, vector<16xi32> -> vector<64xi8>",
            ("vector<16xi32>",),
            "vector<64xi8>",
            "sources of more than one dimension, or places that stay empty",
        ),
        (
            "tpu.pack_subelements %0, %0 {positions = array<i32: 0, 1>, pack_format = #tpu.pack_format<compressed>}"
            " : vector<16xf32>, vector<16xf32> -> vector<32xi16>",
            ("vector<16xf32>",),
            "vector<32xi16>",
            "a conversion between floats and integers",
        ),
        (
            "tpu.unpack_subelements %0, 0 {pack_format = #tpu.pack_format<compressed>}"
            " : vector<8x32xi16> -> vector<8x16xi32>",
            ("vector<8x32xi16>",),
            "vector<8x16xi32>",
            "a result of more than one dimension",
        ),
        (
            "tpu.create_mask [%0] [%1] : vector<8x128xi1>",
            ("index", "index"),
            "vector<8x128xi1>",
            "1 pairs of bounds for a mask with 2 dimensions",
        ),
        (
            "tpu.broadcast_in_sublanes %0, 0 : vector<8x128x2xi16> -> vector<8x128x2xi16>",
            ("vector<8x128x2xi16>",),
            "vector<8x128x2xi16>",
            "vectors that are packed or change their shape",
        ),
    ],
)
def test_refusals(text: str, types: tuple[str, ...], result: str, reason: str) -> None:
    """Forms of which nobody says what they mean are not guessed at."""
    assert refusals(function(text, types, (result,))) == [f"{text.split()[0]}: {reason}"]


def test_masks_of_a_box() -> None:
    """A mask is set between two corners, of which the second is outside."""
    kind = vector((4, 6), "i1")
    text = f"tpu.create_mask [%0, %1] [%2, %3] : {kind}"
    corners = [np.int32(number) for number in (1, 0, 3, 9)]
    found = apply(text, ("index",) * 4, kind, *corners)
    wanted = np.zeros((4, 6), bool)
    wanted[1:3, 0:9] = True
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(("start", "stop"), [(3, 9), (9, 3), (0, 16), (5, 5)])
def test_masks_of_packed_rows(start: int, stop: int) -> None:
    """The example of the operation's description; where the ends are in the wrong order, the rest is set."""
    kind = vector((8, 4, 2), "i1")
    text = f'"tpu.create_subelement_mask"() <{{from = {start} : i32, to = {stop} : i32}}> : () -> {kind}'
    row = np.arange(16).reshape(8, 1, 2).repeat(4, 1)
    inside = (row >= min(start, stop)) & (row < max(start, stop))
    np.testing.assert_array_equal(apply(text, (), kind), inside if start <= stop else ~inside)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("kind", ["arg_max", "arg_min"])
@pytest.mark.parametrize(("element", "index"), [("f32", "i32"), ("bf16", "i16")])
def test_reduce_index(axis: int, kind: str, element: str, index: str) -> None:
    """The first of equal extremes, or the first NaN, as JAX's `argmax` and `argmin` say; infinities count."""
    value = np.random.default_rng(0).integers(-2, 3, (5, 6, 7)).astype(DTYPES[element])
    value[0, 1, 2] = value[3, 1, 2] = value[4, 4, 4] = np.nan
    value[:, 0, :] = -np.inf
    value[:, :, 0] = np.inf
    shape = tuple(size for k, size in enumerate(value.shape) if k != axis)
    types = vector(value.shape, element), vector(shape, index)
    text = f"tpu.reduce_index %0 {{axis = {axis} : i32, kind = #tpu.reduction_kind<{kind}>}} : {types[0]} -> {types[1]}"
    find = jnp.argmax if kind == "arg_max" else jnp.argmin
    np.testing.assert_array_equal(apply(text, types[:1], types[1], value), find(value, axis=axis))


@pytest.mark.parametrize(("kind", "find"), [("arg_max", np.argmax), ("arg_min", np.argmin)])
def test_index_everywhere(kind: str, find: Callable[..., Array]) -> None:
    """`tpu.all_reduce` leaves the place of the extreme in every place of the dimension."""
    value = floats((5, 6))
    types = vector((5, 6), "f32"), vector((5, 6), "i32")
    text = f"tpu.all_reduce %0 {{dim = 1 : i64, kind = #tpu.reduction_kind<{kind}>}} : {types[0]} -> {types[1]}"
    wanted = np.broadcast_to(find(value, axis=1)[:, None], (5, 6))
    np.testing.assert_array_equal(apply(text, types[:1], types[1], value), wanted)


REDUCTIONS: dict[str, tuple[str, Callable[..., Any]]] = {
    "sum": ("f32", np.sum),
    "maxf": ("f32", np.max),
    "minf": ("f32", np.min),
    "maxsi": ("i32", np.max),
    "minsi": ("i32", np.min),
    "maxui": ("i32", lambda x, **k: np.max(x.view(np.uint32), **k).view(np.int32)),
    "minui": ("i32", lambda x, **k: np.min(x.view(np.uint32), **k).view(np.int32)),
}


@pytest.mark.parametrize("kind", REDUCTIONS)
def test_reductions_that_keep_the_rank(kind: str) -> None:
    """`tpu.reduce` leaves size 1 where it reduces, `tpu.all_reduce` the result everywhere."""
    element, reduce = REDUCTIONS[kind]
    value = np.random.default_rng(0).integers(-4, 4, (3, 4, 5)).astype(DTYPES[element])
    types = vector((3, 4, 5), element), vector((1, 4, 1), element)
    text = f""""tpu.reduce"(%0) <{{dimensions = array<i64: 0, 2>, kind = #tpu.reduction_kind<{kind}>}}>
      : ({types[0]}) -> {types[1]}"""
    np.testing.assert_array_equal(apply(text, types[:1], types[1], value), reduce(value, axis=(0, 2), keepdims=True))
    text = f"tpu.all_reduce %0 {{dim = 1 : i64, kind = #tpu.reduction_kind<{kind}>}} : {types[0]} -> {types[0]}"
    wanted = np.broadcast_to(reduce(value, axis=1, keepdims=True), value.shape)
    np.testing.assert_array_equal(apply(text, types[:1], types[0], value), wanted)


def test_unclear_reductions_are_refused() -> None:
    """A count of a mask with two dimensions has one number, and nobody says along which."""
    types = vector((4, 8), "i1"), vector((8,), "i32")
    text = f"tpu.all_reduce %0 {{dim = 0 : i64, kind = #tpu.reduction_kind<sum>}} : {types[0]} -> {types[1]}"
    assert refusals(function(text, types[:1], types[1:])) == [
        "tpu.all_reduce: the kind sum of a mask with 2 dimensions"
    ]


@pytest.mark.parametrize("positions", [[], [3], [3, 9], [0, 15], list(range(16))])
def test_reductions_of_masks(positions: list[int]) -> None:
    """How many hold, and which is the first: the size if there is none; as many copies as the result has elements."""
    mask = np.isin(np.arange(16), positions)
    types = vector((16,), "i1"), vector((8,), "i32")
    for kind, wanted in (("sum", len(positions)), ("find_first_set", min([*positions, 16]))):
        text = f"tpu.all_reduce %0 {{dim = 0 : i64, kind = #tpu.reduction_kind<{kind}>}} : {types[0]} -> {types[1]}"
        np.testing.assert_array_equal(apply(text, types[:1], types[1], mask), np.full(8, wanted))


def scanned(kind: str, element: str, value: Array, mask: Array | None) -> Array:
    """The result of a `tpu.scan` along the last dimension."""
    types = [vector(value.shape, element)]
    masked = ""
    if mask is not None:
        types.append(vector(mask.shape, "i1"))
        masked = ", %1"
    result = vector(value.shape, "i32" if element == "i1" else element)
    text = f""""tpu.scan"(%0{masked}) <{{kind = #tpu.reduction_kind<{kind}>, dimension = {value.ndim - 1} : i64}}>
      : ({", ".join(types)}) -> {result}"""
    return apply(text, tuple(types), result, value, *([] if mask is None else [mask]))


@pytest.mark.parametrize(
    ("kind", "element", "ufunc"),
    [("sum", "f32", np.add), ("sum", "i32", np.add), ("maxf", "f32", np.maximum), ("minf", "f32", np.minimum)],
)
@pytest.mark.parametrize("size", [1, 5, 16])
def test_scan(kind: str, element: str, ufunc: np.ufunc, size: int) -> None:
    """A running reduction: masked elements repeat the last result, and those before the first stay as they are."""
    value = np.random.default_rng(0).integers(-4, 4, size).astype(DTYPES[element])
    np.testing.assert_array_equal(scanned(kind, element, value, None), ufunc.accumulate(value))
    mask = np.random.default_rng(1).integers(0, 2, size).astype(bool)
    wanted, total = [], None
    for number, counts in zip(value, mask, strict=True):
        if counts:
            total = number if total is None else ufunc(total, number)
        wanted.append(number if total is None else total)
    np.testing.assert_array_equal(scanned(kind, element, value, mask), wanted)


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [("maxui", [1, -1, -1, -1]), ("minui", [1, 1, 1, 1]), ("maxsi", [1, 1, 5, 5]), ("minsi", [1, -1, -1, -7])],
)
def test_scan_of_integers(kind: str, wanted: list[int]) -> None:
    """With a sign and without."""
    value = np.array([1, -1, 5, -7], np.int32)
    np.testing.assert_array_equal(scanned(kind, "i32", value, None), wanted)


def test_scan_of_predicates_and_of_rows() -> None:
    """Predicates are counted; a mask of one dimension holds for each row."""
    value = np.array([True, False, True, True])
    np.testing.assert_array_equal(scanned("sum", "i1", value, None), [1, 1, 2, 3])
    rows = np.arange(8, dtype=np.int32).reshape(2, 4)
    mask = np.array([False, True, False, True])
    np.testing.assert_array_equal(scanned("sum", "i32", rows, mask), [[0, 1, 1, 4], [4, 5, 5, 12]])


@settings(max_examples=20)
@given(st.data())
def test_scan_count(data: st.DataObject) -> None:
    """Each element's number among its equals so far, and whether it is the last of them; masked ones don't count."""
    values = data.draw(st.lists(st.integers(0, 3), min_size=16, max_size=16))
    mask = data.draw(st.lists(st.booleans(), min_size=16, max_size=16))
    types = (vector((16,), "i1"), vector((16,), "i32"))
    text = function(f'"tpu.scan_count"(%0, %1) : {types} -> {types}'.replace("'", ""), types, types)
    last, counts = COUNT(text, np.array(mask), np.array(values, np.int32))
    for place, (value, counted) in enumerate(zip(values, mask, strict=True)):
        equal = [k for k in range(16) if counted and mask[k] and values[k] == value]
        assert counts[place] == 1 + sum(k < place for k in equal)
        assert bool(last[place]) == (counted and place == equal[-1])


def COUNT(text: str, *arrays: Array) -> list[Array]:  # noqa: N802
    """Runs a program that is compiled once."""
    if text not in _COMPILED:
        _COMPILED[text] = executable(text)
    found: list[Array] = _COMPILED[text](*arrays)
    return found


_COMPILED: dict[str, Any] = {}


@pytest.mark.parametrize("element", ["i32", "f32"])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_sort(element: str, descending: bool, masked: bool) -> None:
    """Stable in both directions; integers are unsigned, NaN is the greatest, and what is masked out comes last."""
    if element == "i32":
        keys = np.array([3, -1, 3, 0, 7, 7, -5, 3], np.int32)
        order = keys.view(np.uint32).astype(np.float64)
    else:
        keys = np.array([3, -1, np.nan, 0.0, np.inf, -0.0, -np.inf, 3], np.float32)
        order = np.where(np.isnan(keys), 1e300, keys.astype(np.float64))
    order = np.nan_to_num(order, posinf=1e200, neginf=-1e200)
    mask = np.array([True, True, False, True, True, True, False, True]) if masked else np.ones(8, bool)
    values = np.arange(8, dtype=np.int32)
    places = sorted(range(8), key=lambda k: (not mask[k], -order[k] if descending else order[k], k))
    kinds = vector((8,), element), vector((8,), "i32"), vector((8,), "i1")
    operands = [keys, values, mask] if masked else [keys, values]
    types = kinds[: len(operands)]
    results = (kinds[2], kinds[0], kinds[1])
    text = f""""tpu.sort"({", ".join(f"%{k}" for k in range(len(types)))}) <{{descending = {str(descending).lower()}}}>
      : ({", ".join(types)}) -> ({", ".join(results)})"""
    valid, sorted_keys, sorted_values = run(function(text, types, results), *operands)
    np.testing.assert_array_equal(valid, mask[places])
    inside = valid.astype(bool)
    np.testing.assert_array_equal(sorted_values[inside], values[places][inside])
    np.testing.assert_array_equal(sorted_keys[inside], keys[places][inside])


def test_elementwise() -> None:
    """The exact reciprocal, also where an approximation will do; the logistic function; what is not finite."""
    value = np.array([3, -0.1, 0, np.inf, -np.inf, np.nan, 1e-30, 88], np.float32)
    kind = vector((8,), "f32")
    with np.errstate(all="ignore"):
        for form in ("", "{approx = true}", "{approx = true, full_range = false}"):
            found = apply(f"tpu.reciprocal %0 {form} : {kind} -> {kind}", (kind,), kind, value)
            np.testing.assert_array_equal(found, np.float32(1) / value)
        found = apply(f"tpu.logistic %0 : {kind} -> {kind}", (kind,), kind, value)
        np.testing.assert_allclose(found, 1 / (1 + np.exp(-value.astype(np.float64))), rtol=1e-6)
    mask = vector((8,), "i1")
    found = apply(f"tpu.weird %0 : {kind} -> {mask}", (kind,), mask, value)
    np.testing.assert_array_equal(found, ~np.isfinite(value))


def test_hints_and_the_grid() -> None:
    """Hints leave values as they are; there is one device."""
    text = """func.func @f(%n: i32, %v: vector<8x128xf32>, %p: i1) -> (i32, i32) {
      %0 = tpu.assume_multiple %n, 8 : i32
      "tpu.trace_start"() <{level = 10 : i32, message = "x"}> : () -> ()
      "tpu.trace_stop"() : () -> ()
      tpu.delay %n
      "tpu.log"(%n) <{tag = "n", formatted = false}> : (i32) -> ()
      "tpu.trace_value"(%n) <{label = "n"}> : (i32) -> ()
      cf.assert %p, "never"
      %1 = tpu.device_id : i32
      return %0, %1 : i32, i32 }"""
    found = run(text, np.int32(24), np.zeros((8, 128), np.float32), np.array(False))
    assert [int(number) for number in found] == [24, 0]


def test_iteration_bound() -> None:
    """The size of a dimension of the grid, be it known or not."""
    with context(), unknown_location():
        source = ir.Module.parse("""func.func @f() -> (i32, i32) {
          %0 = tpu.iteration_bound 0 : i32
          %1 = tpu.iteration_bound 1 : i32
          return %0, %1 : i32, i32 }""")
        target, low = ir.Module.create(), Lowering(RULES, Options())
        with ir.InsertionPoint(target.body):
            dynamic = build.i32(5)
            low.bounds = [7, dynamic]
            known, unknown = low.block(source.body.operations[0].operation.regions[0].blocks[0])
        assert isinstance(known, ir.Value)
        assert "dense<7>" in str(known.owner)
        assert unknown == dynamic


ROUNDINGS = np.array([0.5, 1.5, -0.5, -1.5, 2.7, -2.7, 127.4, 1e10, -1e10, np.nan], np.float32)


@pytest.mark.parametrize(("mode", "round_"), [("towards_zero", np.trunc), ("to_nearest_even", np.round)])
@pytest.mark.parametrize(("name", "signed"), [("fptosi", True), ("fptoui", False)])
@pytest.mark.parametrize("width", [8, 32])
def test_to_integers(mode: str, round_: Callable[..., Array], name: str, signed: bool, width: int) -> None:
    """Rounded as the operation says; beyond the range it is the nearest integer, and NaN is 0."""
    types = vector((10,), "f32"), vector((10,), f"i{width}")
    text = f"tpu.{name} %0 {{rounding_mode = #tpu.rounding_mode<{mode}>}} : {types[0]} -> {types[1]}"
    found = apply(text, types[:1], types[1], ROUNDINGS)
    least, most = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if signed else (0, 2**width - 1)
    wanted = np.clip(round_(np.nan_to_num(ROUNDINGS.astype(np.float64))), least, most)
    np.testing.assert_array_equal(found if signed else found.view(f"u{width // 8}"), wanted)


def test_between_floats() -> None:
    """To nearest even as in `arith`, and towards zero from f32 to bf16; NaN stays one."""
    value = np.concatenate([floats((60,)), [np.nan, np.inf, -np.inf, 0]]).astype(np.float32)
    types = vector((64,), "f32"), vector((64,), "bf16")
    text = f"tpu.truncf %0 {{rounding_mode = #tpu.rounding_mode<to_nearest_even>}} : {types[0]} -> {types[1]}"
    near = apply(text, types[:1], types[1], value)
    np.testing.assert_array_equal(near.astype(np.float32), value.astype(DTYPES["bf16"]).astype(np.float32))
    cut = apply(text.replace("to_nearest_even", "towards_zero"), types[:1], types[1], value)
    wanted = np.where(np.isnan(value), value, (value.view(np.int32) & -65536).view(np.float32))
    np.testing.assert_array_equal(cut.astype(np.float32), wanted)
    text = f"tpu.extf %0 : {types[1]} -> {types[0]}"
    np.testing.assert_array_equal(apply(text, types[1:], types[0], near), near.astype(np.float32))
    text = f"tpu.reduce_precision %0 {{exponent_bits = 8 : i32, mantissa_bits = 7 : i32}} : {types[0]} -> {types[0]}"
    np.testing.assert_array_equal(apply(text, types[:1], types[0], value), near.astype(np.float32))


@pytest.mark.parametrize(("name", "wanted"), [("sitofp", [-1, 5]), ("uitofp", [255, 5])])
def test_from_integers(name: str, wanted: list[int]) -> None:
    """With a sign or without."""
    types = vector((2,), "i8"), vector((2,), "f32")
    text = f"tpu.{name} %0 {{rounding_mode = #tpu.rounding_mode<to_nearest_even>}} : {types[0]} -> {types[1]}"
    np.testing.assert_array_equal(apply(text, types[:1], types[1], np.array([-1, 5], np.int8)), wanted)
    assert refusals(function(text.replace("to_nearest_even", "towards_zero"), types[:1], types[1:])) == [
        f"tpu.{name}: the rounding mode towards_zero"
    ]
