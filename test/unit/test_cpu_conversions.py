"""The rules for `arith` that lead from one type to another, and for constants, against ml_dtypes and Python."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from cpu_harness import apply, refusals, run
from cpu_numbers import edges, float_edges, same, signed

from mosaic_grid.cpu.arrays import DTYPES, Array

INTEGERS = ("i1", "i4", "i8", "i16", "i32", "i64")
NARROW = ("bf16", "f16", "f8E4M3FN", "f8E5M2", "f8E4M3B11FNUZ", "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E3M4", "f8E4M3")


def width(kind: str) -> int:
    """The bits of an integer type; of an index, those that count here."""
    return 32 if kind == "index" else int(kind.removeprefix("i"))


def cast(op: str, values: Array, source: str, target: str) -> Array:
    """Applies an operation on a vector."""
    return apply(f"arith.{op}", [source], target, values)


def integers(kind: str) -> Array:
    """The edge values of an integer type."""
    dtype = DTYPES["i32" if kind == "index" else kind]
    return np.array([0, 1] if kind == "i1" else edges(width(kind))).astype(dtype)


def as_signed(values: Array, kind: str) -> list[int]:
    """The values as Python integers; of one bit, true is -1."""
    return [signed(int(value), width(kind)) for value in values]


PAIRS = [(a, b) for a in INTEGERS for b in INTEGERS if width(a) < width(b)]


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_extensions_and_truncations(source: str, target: str) -> None:
    """An extension copies the sign or adds zeros; a truncation keeps the low bits, to i1 the lowest alone."""
    narrow, wide = integers(source), integers(target)
    numbers = as_signed(narrow, source)
    assert as_signed(cast("extsi", narrow, source, target), target) == numbers
    assert as_signed(cast("extui", narrow, source, target), target) == [n % 2 ** width(source) for n in numbers]
    truncated = cast("trunci", wide, target, source)
    assert as_signed(truncated, source) == [signed(n, width(source)) for n in as_signed(wide, target)]


@pytest.mark.parametrize("kind", [kind for kind in INTEGERS if kind != "i1"])
def test_index_casts(kind: str) -> None:
    """An index has 32 bits: wider integers lose the rest, narrower ones are extended with their sign or with zeros."""
    values = integers(kind)
    numbers = as_signed(values, kind)
    assert as_signed(cast("index_cast", values, kind, "index"), "i32") == [signed(n, 32) for n in numbers]
    plain = [signed(n % 2 ** width(kind), 32) for n in numbers]
    assert as_signed(cast("index_castui", values, kind, "index"), "i32") == plain
    indices = integers("index")
    back = [signed(n, width(kind)) for n in as_signed(indices, "index")]
    assert as_signed(cast("index_cast", indices, "index", kind), kind) == back


@pytest.mark.parametrize("target", ["f32", *NARROW])
@pytest.mark.parametrize("source", ["i1", "i4", "i8", "i16", "i32"])
def test_integers_to_floats(source: str, target: str) -> None:
    """To f32 to nearest even; to narrow floats by way of f32, as libtpu does."""
    values = integers(source)
    numbers = as_signed(values, source)
    with np.errstate(all="ignore"):
        expected = np.array(numbers, np.float32).astype(DTYPES[target])
        plain = np.array([n % 2 ** width(source) for n in numbers], np.float32).astype(DTYPES[target])
    assert same(cast("sitofp", values, source, target), expected)
    assert same(cast("uitofp", values, source, target), plain)


def test_integers_are_rounded_twice() -> None:
    """Just above a tie of bf16, f32 loses what is above it; so does the TPU's conversion, by way of f32."""
    values = np.array([2**25 + 2**17 + 1, -(2**25) - 2**17 - 1], np.int32)
    assert cast("sitofp", values, "i32", "bf16").astype(int).tolist() == [2**25, -(2**25)]
    assert cast("uitofp", values[:1], "i32", "bf16").astype(int).tolist() == [2**25]


@pytest.mark.parametrize("source", ["f32", *NARROW])
@pytest.mark.parametrize("target", ["i4", "i8", "i16", "i32"])
def test_floats_to_integers(source: str, target: str) -> None:
    """Towards zero, to the nearest end of the range beyond it, and to 0 from NaN."""
    info = ml_dtypes.finfo(DTYPES[source])
    numbers = [*float_edges(source).astype(np.float64), 7.9, -7.9, 15.5, 127.9, 128.0, -128.9, 255.5, 256.0, 32767.9]
    numbers += [-0.9, 0.9, 2.0**31, 2.0**31 - 128, -(2.0**31), 2.0**32, 2.0**32 - 256, -1.0]
    numbers = [n for n in numbers if not abs(n) > float(info.max) or math.isinf(n)]
    values = np.array(numbers).astype(np.float32).astype(DTYPES[source])
    bits = width(target)

    def clipped(number: float, least: int, greatest: int) -> int:
        if math.isnan(number):
            return 0
        return int(min(max(number, least), greatest))

    exact = values.astype(np.float64).tolist()
    expected = [clipped(number, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for number in exact]
    assert as_signed(cast("fptosi", values, source, target), target) == expected
    plain = [signed(clipped(number, 0, 2**bits - 1), bits) for number in exact]
    assert as_signed(cast("fptoui", values, source, target), target) == plain


def every(kind: str) -> Array:
    """All numbers of a narrow type."""
    dtype = DTYPES[kind]
    return np.arange(2 ** (8 * dtype.itemsize), dtype=np.uint32).astype(f"u{dtype.itemsize}").view(dtype)


def near_ties(kind: str) -> Array:
    """Numbers of f32: those of a narrow type, what lies halfway to the next, and the neighbours of all of them."""
    with np.errstate(invalid="ignore"):
        numbers = every(kind).astype(np.float32)
    numbers = np.sort(numbers[np.isfinite(numbers)])
    middles = (numbers[:-1].astype(np.float64) + numbers[1:]) / 2
    ends = np.array([np.inf, -np.inf, np.nan, 3e38, -3e38])
    centre = np.concatenate([numbers, middles, ends]).astype(np.float32)
    with np.errstate(over="ignore"):
        neighbours = [np.nextafter(centre, np.float32(end)) for end in (np.inf, -np.inf)]
    return np.concatenate([centre, *neighbours])


@pytest.mark.parametrize("kind", NARROW)
def test_truncf(kind: str) -> None:
    """To the nearest, ties to even, also among subnormal numbers; what is too large is what the type has for it."""
    values = near_ties(kind)
    with np.errstate(all="ignore"):
        expected = values.astype(DTYPES[kind])
    assert same(cast("truncf", values, "f32", kind), expected)


@pytest.mark.parametrize("kind", NARROW)
def test_extf(kind: str) -> None:
    """Every number of a narrow type keeps its value."""
    values = every(kind)
    with np.errstate(invalid="ignore"):
        expected = values.astype(np.float32)
    assert same(cast("extf", values, kind, "f32"), expected)


@pytest.mark.parametrize(
    ("op", "source", "target"),
    [
        ("convertf", "bf16", "f16"),
        ("convertf", "f16", "bf16"),
        ("truncf", "bf16", "f8E4M3FN"),
        ("truncf", "f16", "f8E5M2"),
        ("extf", "f8E5M2", "bf16"),
    ],
)
def test_between_narrow_floats(op: str, source: str, target: str) -> None:
    """One rounding, whichever way it goes."""
    with np.errstate(all="ignore"):
        values = near_ties(target).astype(DTYPES[source])
        expected = values.astype(np.float32).astype(DTYPES[target])
    assert same(cast(op, values, source, target), expected)


def test_other_roundings_are_refused() -> None:
    """A rounding mode other than to nearest even isn't ignored."""
    text = "func.func @f(%a: f32) {{ %0 = arith.truncf %a {} : f32 to bf16 return }}"
    assert refusals(text.format("to_nearest_even")) == []
    assert refusals(text.format("upward")) == [
        "arith.truncf: with a rounding mode other than to the nearest even number"
    ]


@pytest.mark.parametrize(("source", "target"), [("f32", "i32"), ("i16", "bf16"), ("f8E5M2", "i8"), ("f32", "f32")])
def test_bitcast(source: str, target: str) -> None:
    """The bits stay, as those of another type."""
    values = np.arange(40, dtype=np.uint8).view(DTYPES[source])
    assert cast("bitcast", values, source, target).tobytes() == values.tobytes()


CONSTANTS: list[tuple[str, str, Any]] = [
    ("7", "i32", 7),
    ("-8", "i4", -8),
    ("true", "i1", True),
    ("-5", "index", -5),
    ("0x7FC00000", "f32", math.nan),
    ("0xFF80", "bf16", -math.inf),
    ("1.5", "f8E4M3FN", 1.5),
    ("dense<2.5>", "vector<2x3xf32>", 2.5),
    ("dense<true>", "vector<3xi1>", True),
    ("dense<-3>", "vector<2xindex>", -3),
    ("dense<[1, -2, 3]>", "vector<3xi32>", [1, -2, 3]),
    ("dense<[1, -2]>", "vector<2xindex>", [1, -2]),
    ("dense<[true, false]>", "vector<2xi1>", [True, False]),
    ("dense<[[1.0, -0.0], [0x7F80, 3.0]]>", "vector<2x2xbf16>", [[1, -0.0], [math.inf, 3]]),
    ("dense<[1.0, -2.0]>", "vector<2xf8E5M2>", [1, -2]),
    ("dense<[1, -8, 7]>", "vector<3xi4>", [1, -8, 7]),
]


@pytest.mark.parametrize(("text", "kind", "expected"), CONSTANTS)
def test_constants(text: str, kind: str, expected: Any) -> None:
    """Scalars, splats and dense constants of every element type."""
    typed = text if kind == "i1" else f"{text} : {kind}"
    (result,) = run(f"func.func @f() -> {kind} {{ %0 = arith.constant {typed} return %0 : {kind} }}")
    wanted = np.broadcast_to(np.array(expected), result.shape).astype(result.dtype)
    assert same(result, wanted)


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ("4294967296", "index", "the index 4294967296, which has more than 32 bits"),
        ("dense<[0, -2147483649]>", "vector<2xindex>", "the index -2147483649, which has more than 32 bits"),
        ("dense_resource<some>", "vector<2xf32>", "a constant that isn't written out"),
    ],
)
def test_refused_constants(text: str, kind: str, reason: str) -> None:
    """What has no value here is refused, and nothing is cut off."""
    assert refusals(f"func.func @f() {{ %0 = arith.constant {text} : {kind} return }}") == [f"arith.constant: {reason}"]
