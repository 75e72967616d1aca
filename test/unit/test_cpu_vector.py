"""The rules for `vector`, and for those operations of `tpu` that move or reduce vectors, against NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cpu_harness import context, lower, refusals, run
from hypothesis import given, settings
from hypothesis import strategies as st

from mosaic_grid.context import unknown_location
from mosaic_grid.cpu.arrays import DTYPES, Array
from mosaic_grid.cpu.rules import RULES

SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


def vector(shape: tuple[int, ...], element: str = "f32") -> str:
    """The type of a vector."""
    return f"vector<{''.join(f'{size}x' for size in shape)}{element}>"


def counted(shape: tuple[int, ...], element: str = "f32") -> Array:
    """Different numbers."""
    return np.arange(np.prod(shape)).reshape(shape).astype(DTYPES[element])


def apply(text: str, result: str, *arrays: Any, types: tuple[str, ...]) -> Array:
    """The result of a function of one operation: `text`, in which the arguments are %0, %1, and so on."""
    arguments = ", ".join(f"%{number}: {kind}" for number, kind in enumerate(types))
    (array,) = run(f"func.func @f({arguments}) -> {result} {{ %r = {text} return %r : {result} }}", *arrays)
    return array


@settings(max_examples=30)
@given(SHAPES, st.data())
def test_broadcast(shape: tuple[int, ...], data: st.DataObject) -> None:
    """Trailing dimensions are aligned, and those of size 1 stretched, as `numpy.broadcast_to` does."""
    rank = data.draw(st.integers(1, len(shape)))
    source = tuple(data.draw(st.sampled_from([1, size])) for size in shape[-rank:])
    value = counted(source)
    text = f"vector.broadcast %0 : {vector(source)} to {vector(shape)}"
    np.testing.assert_array_equal(
        apply(text, vector(shape), value, types=(vector(source),)), np.broadcast_to(value, shape)
    )


@pytest.mark.parametrize("element", ["f32", "bf16", "i1", "i32", "i4", "index"])
def test_broadcast_of_a_scalar(element: str) -> None:
    """A scalar of any type fills a vector; an index is an i32."""
    kind = DTYPES["i32" if element == "index" else element]
    text = f"vector.broadcast %0 : {element} to {vector((2, 3), element)}"
    result = apply(text, vector((2, 3), element), np.array(1).astype(kind), types=(element,))
    assert result.dtype == kind
    assert (result == kind.type(1)).all()


@pytest.mark.parametrize("name", ["vector.shape_cast", "tpu.reshape"])
@pytest.mark.parametrize("shapes", [((4, 6), (2, 12)), ((4, 6), (24,)), ((1, 4, 1, 6), (4, 6)), ((1,), (1, 1))])
def test_reshape(name: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    """The elements keep their row-major order."""
    before, after = shapes
    link = "to" if name.startswith("vector") else "->"
    text = f"{name} %0 : {vector(before)} {link} {vector(after)}"
    result = apply(text, vector(after), counted(before), types=(vector(before),))
    np.testing.assert_array_equal(result, counted(after))


@pytest.mark.parametrize("name", ["vector.transpose", "tpu.transpose"])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_transpose(name: str, order: tuple[int, ...]) -> None:
    """Dimension k of the result is dimension `order[k]` of the operand."""
    value = counted((2, 3, 4))
    wanted = value.transpose(order)
    link = "to" if name.startswith("vector") else "->"
    text = f"{name} %0, {list(order)} : {vector(value.shape)} {link} {vector(wanted.shape)}"
    np.testing.assert_array_equal(apply(text, vector(wanted.shape), value, types=(vector(value.shape),)), wanted)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_concatenate(axis: int) -> None:
    """Three vectors of different sizes along each dimension."""
    shapes = [tuple(size + number if k == axis else size for k, size in enumerate((2, 3, 4))) for number in range(3)]
    arrays = [counted(shape) + 100 * number for number, shape in enumerate(shapes)]
    types = tuple(vector(shape) for shape in shapes)
    wanted = np.concatenate(arrays, axis)
    text = f"tpu.concatenate %0, %1, %2 in {axis} : {', '.join(types)} -> {vector(wanted.shape)}"
    np.testing.assert_array_equal(apply(text, vector(wanted.shape), *arrays, types=types), wanted)


@settings(max_examples=30)
@given(SHAPES, st.data())
def test_extract(shape: tuple[int, ...], data: st.DataObject) -> None:
    """A part at a position of the leading dimensions, each number of it known or not; a scalar if all are given."""
    depth = data.draw(st.integers(0, len(shape)))
    position = [data.draw(st.integers(0, size - 1)) for size in shape[:depth]]
    dynamic = [data.draw(st.booleans()) for _ in position]
    value = counted(shape)
    rest = shape[depth:]
    result = vector(rest) if rest else "f32"
    places = iter(range(1, 9))
    names = ", ".join(f"%{next(places)}" if d else str(p) for p, d in zip(position, dynamic, strict=True))
    given_ = [np.int32(p) for p, d in zip(position, dynamic, strict=True) if d]
    text = f"vector.extract %0[{names}] : {result} from {vector(shape)}"
    found = apply(text, result, value, *given_, types=(vector(shape), *("index" for _ in given_)))
    np.testing.assert_array_equal(found, value[tuple(position)])


@settings(max_examples=30)
@given(SHAPES, st.data())
def test_insert(shape: tuple[int, ...], data: st.DataObject) -> None:
    """A scalar or a vector takes the place at a position, and nothing else changes."""
    depth = data.draw(st.integers(1, len(shape)))
    position = [data.draw(st.integers(0, size - 1)) for size in shape[:depth]]
    dynamic = [data.draw(st.booleans()) for _ in position]
    rest = shape[depth:]
    part, value = -1 - counted(rest), counted(shape)
    kind = vector(rest) if rest else "f32"
    places = iter(range(2, 9))
    names = ", ".join(f"%{next(places)}" if d else str(p) for p, d in zip(position, dynamic, strict=True))
    given_ = [np.int32(p) for p, d in zip(position, dynamic, strict=True) if d]
    text = f"vector.insert %0, %1[{names}] : {kind} into {vector(shape)}"
    types = (kind, vector(shape), *("index" for _ in given_))
    wanted = value.copy()
    wanted[tuple(position)] = part
    np.testing.assert_array_equal(apply(text, vector(shape), part, value, *given_, types=types), wanted)


@settings(max_examples=30)
@given(SHAPES, st.data())
def test_strided_slices(shape: tuple[int, ...], data: st.DataObject) -> None:
    """A slice of the leading dimensions is read, and put back where it was."""
    depth = data.draw(st.integers(1, len(shape)))
    starts = [data.draw(st.integers(0, size - 1)) for size in shape[:depth]]
    sizes = [data.draw(st.integers(1, size - start)) for size, start in zip(shape, starts, strict=False)]
    value = counted(shape)
    where = tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))
    part = value[where]
    ones = [1] * depth
    text = f"vector.extract_strided_slice %0 offsets = {starts}, sizes = {sizes}, strides = {ones}"
    text += f" : {vector(shape)} to {vector(part.shape)}"
    np.testing.assert_array_equal(apply(text, vector(part.shape), value, types=(vector(shape),)), part)
    whole = starts + [0] * (len(shape) - depth)
    text = f"vector.insert_strided_slice %0, %1 offsets = {whole}, strides = {[1] * len(shape)}"
    text += f" : {vector(part.shape)} into {vector(shape)}"
    wanted = np.zeros_like(value)
    wanted[where] = part
    types = (vector(part.shape), vector(shape))
    np.testing.assert_array_equal(apply(text, vector(shape), part, np.zeros_like(value), types=types), wanted)


def test_insert_of_lower_rank() -> None:
    """The dimensions of a slice that is inserted are the trailing ones of the target."""
    part, value = -counted((1, 2)) - 1, counted((3, 2, 4))
    text = f"vector.insert_strided_slice %0, %1 offsets = [2, 1, 1], strides = [1, 1] : {vector((1, 2))}"
    wanted = value.copy()
    wanted[2, 1:2, 1:3] = part
    found = apply(
        f"{text} into {vector((3, 2, 4))}", vector((3, 2, 4)), part, value, types=(vector((1, 2)), vector((3, 2, 4)))
    )
    np.testing.assert_array_equal(found, wanted)


def test_shuffles() -> None:
    """Elements by number, of two vectors as of one; alternately; and every second one."""
    left, right = counted((3, 4)), 100 + counted((2, 4))
    types = (vector((3, 4)), vector((2, 4)))
    text = f"vector.shuffle %0, %1 [4, 0, 0, 3] : {types[0]}, {types[1]}"
    wanted = np.concatenate([left, right])[[4, 0, 0, 3]]
    np.testing.assert_array_equal(apply(text, vector((4, 4)), left, right, types=types), wanted)
    text = f"vector.interleave %0, %1 : {vector((3, 4))} -> {vector((3, 8))}"
    both = apply(text, vector((3, 8)), left, -left, types=(vector((3, 4)), vector((3, 4))))
    np.testing.assert_array_equal(both, np.stack([left, -left], -1).reshape(3, 8))
    even, odd = run(f"""func.func @f(%0: {vector((3, 8))}) -> ({vector((3, 4))}, {vector((3, 4))}) {{
      %r:2 = vector.deinterleave %0 : {vector((3, 8))} -> {vector((3, 4))}
      return %r#0, %r#1 : {vector((3, 4))}, {vector((3, 4))} }}""", both)  # fmt: skip
    np.testing.assert_array_equal(even, left)
    np.testing.assert_array_equal(odd, -left)


def test_poison_is_refused() -> None:
    """A shuffle that leaves an element open isn't translated, nor is an element at no place."""
    text = f"vector.shuffle %0, %0 [0, -1] : {vector((2,))}, {vector((2,))}"
    assert refusals(f"func.func @f(%0: {vector((2,))}) {{ %r = {text} return }}") == [
        "vector.shuffle: a poisoned element"
    ]
    text = f'"vector.extract"(%0) <{{static_position = array<i64: -1>}}> : ({vector((2,))}) -> f32'
    assert refusals(f"func.func @f(%0: {vector((2,))}) {{ %r = {text} return }}") == [
        "vector.extract: a poisoned position"
    ]


def test_elements() -> None:
    """Scalars to a vector and back, in row-major order."""
    text = f"vector.from_elements %0, %1, %0, %1, %1, %0 : {vector((2, 3))}"
    value = apply(text, vector((2, 3)), np.float32(1), np.float32(2), types=("f32", "f32"))
    np.testing.assert_array_equal(value, [[1, 2, 1], [2, 2, 1]])
    parts = run(f"""func.func @f(%0: {vector((2, 2))}) -> (f32, f32, f32, f32) {{
      %r:4 = vector.to_elements %0 : {vector((2, 2))}
      return %r#0, %r#1, %r#2, %r#3 : f32, f32, f32, f32 }}""", counted((2, 2)))  # fmt: skip
    assert [float(part) for part in parts] == [0, 1, 2, 3]


def test_masks_and_counting() -> None:
    """A prefix of each dimension, known or not, empty or beyond the end; and the numbers from 0."""
    for sizes in [(2, 3), (0, 2), (9, 1)]:
        text = f"vector.create_mask %0, %1 : {vector((4, 5), 'i1')}"
        mask = apply(text, vector((4, 5), "i1"), *map(np.int32, sizes), types=("index", "index"))
        wanted = (np.arange(4)[:, None] < sizes[0]) & (np.arange(5) < sizes[1])
        np.testing.assert_array_equal(mask, wanted)
    mask = apply(f"vector.constant_mask [2, 5] : {vector((4, 5), 'i1')}", vector((4, 5), "i1"), types=())
    np.testing.assert_array_equal(mask, np.arange(4)[:, None] < np.array([2] * 5))
    np.testing.assert_array_equal(
        apply(f"vector.step : {vector((7,), 'index')}", vector((7,), "index"), types=()), np.arange(7)
    )


def test_fma() -> None:
    """A product and a sum with one rounding."""
    value = np.array([1 + 2**-12, 3, -1], np.float32)
    kind = vector((3,))
    found = apply(f"vector.fma %0, %0, %1 : {kind}", kind, value, -value, types=(kind, kind))
    np.testing.assert_array_equal(found, (value.astype(np.float64) ** 2 - value).astype(np.float32))


KINDS: dict[str, tuple[str, Callable[..., Any], float]] = {
    "add": ("f32", np.add.reduce, 0),
    "mul": ("f32", np.multiply.reduce, 1),
    "maximumf": ("f32", np.maximum.reduce, -np.inf),
    "minimumf": ("f32", np.minimum.reduce, np.inf),
    "maxnumf": ("f32", np.fmax.reduce, -np.inf),
    "minnumf": ("f32", np.fmin.reduce, np.inf),
    "maxsi": ("i32", np.maximum.reduce, -(2**31)),
    "minsi": ("i32", np.minimum.reduce, 2**31 - 1),
    "maxui": ("i32", lambda x, **k: np.maximum.reduce(x.view(np.uint32), **k).view(np.int32), 0),
    "minui": ("i32", lambda x, **k: np.minimum.reduce(x.view(np.uint32), **k).view(np.int32), -1),
    "and": ("i32", np.bitwise_and.reduce, -1),
    "or": ("i32", np.bitwise_or.reduce, 0),
    "xor": ("i32", np.bitwise_xor.reduce, 0),
}


def numbers(shape: tuple[int, ...], element: str, seed: int) -> Array:
    """Small whole numbers as floats, any as integers, both signs among them."""
    generator = np.random.default_rng(seed)
    if element == "f32":
        return generator.integers(-2, 3, shape).astype(np.float32)
    return generator.integers(-(2**31), 2**31, shape).astype(np.int32)


@settings(max_examples=60)
@given(st.sampled_from(sorted(KINDS)), SHAPES, st.data())
def test_multi_reduction(kind: str, shape: tuple[int, ...], data: st.DataObject) -> None:
    """Every kind over every choice of dimensions, down to a scalar, with an accumulator that counts."""
    element, reduce, _ = KINDS[kind]
    axes = tuple(sorted(data.draw(st.sets(st.integers(0, len(shape) - 1)))))
    value = numbers(shape, element, 1)
    rest = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    result = vector(rest, element) if rest else element
    acc = numbers(rest, element, 2)
    text = f"vector.multi_reduction <{kind}>, %0, %1 {list(axes)} : {vector(shape, element)} to {result}"
    found = apply(text, result, value, acc, types=(vector(shape, element), result))
    first = reduce(value, axis=axes) if axes else value
    np.testing.assert_array_equal(found, reduce(np.stack([acc, first]), axis=0))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_neutral_accumulator(kind: str) -> None:
    """A constant that changes nothing isn't combined in; one that does is."""
    element, reduce, neutral = KINDS[kind]
    shape, value = (6, 8), numbers((6, 8), element, 3)

    def text(number: float) -> str:
        if np.isinf(number):
            spelled = "0xFF800000" if number < 0 else "0x7F800000"
        else:
            spelled = f"{number:.1f}" if element == "f32" else str(int(number))
        return f"""func.func @f(%0: {vector(shape, element)}) -> {vector(shape[:1], element)} {{
          %a = arith.constant dense<{spelled}> : {vector(shape[:1], element)}
          %r = vector.multi_reduction <{kind}>, %0, %a [1] : {vector(shape, element)} to {vector(shape[:1], element)}
          return %r : {vector(shape[:1], element)} }}"""

    np.testing.assert_array_equal(run(text(neutral), value)[0], reduce(value, axis=1))
    other = np.full((1, 6), 1 if element == "i32" else -1).astype(value.dtype)
    wanted = reduce(np.concatenate([other, reduce(value, axis=1)[None]]), axis=0)
    np.testing.assert_array_equal(run(text(float(other[0, 0])), value)[0], wanted)


def test_neutral_accumulator_costs_nothing() -> None:
    """Nothing but the reduction is left of a sum that starts from zeros."""
    text = f"""func.func @f(%0: {vector((6, 8))}) -> {vector((6,))} {{
      %z = arith.constant 0.0 : f32
      %a = vector.broadcast %z : f32 to {vector((6,))}
      %r = vector.multi_reduction <add>, %0, %a [1] : {vector((6, 8))} to {vector((6,))}
      return %r : {vector((6,))} }}"""
    with context(), unknown_location():
        lowered = str(lower(text, RULES, None)[0])
    assert lowered.count("stablehlo.reduce(") == 1
    assert lowered.count("stablehlo.add %") == 0


@pytest.mark.parametrize("element", ["bf16", "f16", "f8E4M3FN", "f8E5M2"])
def test_narrow_floats_are_reduced_in_f32(element: str) -> None:
    """A sum of many small numbers doesn't get stuck, accumulator included; a maximum is exact."""
    value = np.full((2, 64), 2**-6).astype(DTYPES[element])
    acc = np.ones(2).astype(DTYPES[element])
    types = (vector((2, 64), element), vector((2,), element))
    text = f"vector.multi_reduction <{{}}>, %0, %1 [1] : {types[0]} to {types[1]}"
    total = apply(text.format("add"), types[1], value, acc, types=types)
    np.testing.assert_array_equal(total.astype(np.float32), [2, 2])
    most = apply(text.format("maximumf"), types[1], value, -acc, types=types)
    np.testing.assert_array_equal(most.astype(np.float32), [2**-6, 2**-6])


@pytest.mark.parametrize(
    ("kind", "wanted"), [("maximumf", np.nan), ("minimumf", np.nan), ("maxnumf", 3.0), ("minnumf", -1.0)]
)
def test_nan(kind: str, wanted: float) -> None:
    """`maximumf` and `minimumf` return a NaN that they meet; the others pass it over."""
    value = np.array([3, np.nan, -1], np.float32)
    text = f"vector.reduction <{kind}>, %0 : {vector((3,))} into f32"
    np.testing.assert_array_equal(apply(text, "f32", value, types=(vector((3,)),)), np.float32(wanted))
    nothing = np.full(3, np.nan, np.float32)
    assert np.isnan(apply(text, "f32", nothing, types=(vector((3,)),)))


def test_predicates_are_not_added() -> None:
    """A sum of i1 would have one bit."""
    text = f"vector.reduction <add>, %0 : {vector((3,), 'i1')} into i1"
    assert refusals(f"func.func @f(%0: {vector((3,), 'i1')}) {{ %r = {text} return }}") == [
        "vector.reduction: the kind add of predicates"
    ]
    for kind, wanted in (("and", False), ("or", True), ("xor", False)):
        text = f"vector.reduction <{kind}>, %0 : {vector((3,), 'i1')} into i1"
        found = apply(text, "i1", np.array([True, False, True]), types=(vector((3,), "i1"),))
        assert bool(found) is wanted


@pytest.mark.parametrize(
    ("before", "after"), [("f32", "i32"), ("f32", "i16"), ("i16", "f32"), ("i8", "i32"), ("i32", "i8")]
)
def test_bitcast_of_vectors(before: str, after: str) -> None:
    """`vector.bitcast` is NumPy's view: neighbours of the last dimension, the first in the low bits."""
    bits = np.random.default_rng(0).integers(0, 2**16, (3, 8)).astype(np.uint32)
    value = (bits | bits << 16).view(DTYPES[before])[:, :8].copy()
    wanted = value.view(DTYPES[after])
    text = f"vector.bitcast %0 : {vector(value.shape, before)} to {vector(wanted.shape, after)}"
    found = apply(text, vector(wanted.shape, after), value, types=(vector(value.shape, before),))
    assert found.tobytes() == wanted.tobytes()
