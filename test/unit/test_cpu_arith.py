"""The rules for `arith`, against Python's integers and NumPy's floats; edge values in every combination."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from cpu_harness import apply, operation, refusals, run
from cpu_numbers import float_edges, float_pairs, flushed, pairs, same, signed
from hypothesis import given
from hypothesis import strategies as st

from mosaic_grid.cpu import execute
from mosaic_grid.cpu.arrays import DTYPES
from mosaic_grid.cpu.xla_options import COMPILER_OPTIONS

WIDTHS = (4, 8, 16, 32, 64)


def towards_zero(left: int, right: int) -> int:
    """The quotient without its fraction."""
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


INTEGERS: dict[str, Callable[[int, int, int], int]] = {
    "addi": lambda a, b, w: a + b,
    "subi": lambda a, b, w: a - b,
    "muli": lambda a, b, w: a * b,
    "andi": lambda a, b, w: a & b,
    "ori": lambda a, b, w: a | b,
    "xori": lambda a, b, w: a ^ b,
    "maxsi": lambda a, b, w: max(a, b),
    "minsi": lambda a, b, w: min(a, b),
    "maxui": lambda a, b, w: max(a % 2**w, b % 2**w),
    "minui": lambda a, b, w: min(a % 2**w, b % 2**w),
    "shli": lambda a, b, w: a << b % 2**w if b % 2**w < w else 0,
    "shrui": lambda a, b, w: a % 2**w >> b % 2**w,
    "shrsi": lambda a, b, w: a >> b % 2**w,
}

DIVISIONS: dict[str, Callable[[int, int, int], int]] = {
    "divsi": lambda a, b, w: towards_zero(a, b),
    "remsi": lambda a, b, w: a - b * towards_zero(a, b),
    "floordivsi": lambda a, b, w: a // b,
    "ceildivsi": lambda a, b, w: -(-a // b),
    "divui": lambda a, b, w: a % 2**w // (b % 2**w),
    "remui": lambda a, b, w: a % 2**w % (b % 2**w),
    "ceildivui": lambda a, b, w: -(-(a % 2**w) // (b % 2**w)),
}

COMPARISONS: tuple[Callable[[int, int, int], bool], ...] = (
    lambda a, b, w: a == b,
    lambda a, b, w: a != b,
    lambda a, b, w: a < b,
    lambda a, b, w: a <= b,
    lambda a, b, w: a > b,
    lambda a, b, w: a >= b,
    lambda a, b, w: a % 2**w < b % 2**w,
    lambda a, b, w: a % 2**w <= b % 2**w,
    lambda a, b, w: a % 2**w > b % 2**w,
    lambda a, b, w: a % 2**w >= b % 2**w,
)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", [*INTEGERS, *DIVISIONS])
def test_integers(name: str, width: int) -> None:
    """Integer operations wrap to their width and shift out, as Python's integers cut to that width say."""
    left, right = pairs(width)
    compute = (INTEGERS | DIVISIONS)[name]
    if name in DIVISIONS:
        left, right = left[right.astype(int) != 0], right[right.astype(int) != 0]
    result = apply(f"arith.{name}", [f"i{width}"] * 2, f"i{width}", left, right)
    expected = [signed(compute(int(a), int(b), width), width) for a, b in zip(left, right, strict=True)]
    assert result.astype(int).tolist() == expected


@pytest.mark.parametrize("width", [1, *WIDTHS])
@pytest.mark.parametrize("predicate", range(10))
def test_cmpi(predicate: int, width: int) -> None:
    """Each predicate compares the integers as signed ones or not, also integers of one bit, where true is -1."""
    left, right = pairs(width) if width > 1 else (np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool))
    kind, attributes = f"i{width}", f"predicate = {predicate} : i64"
    result = apply("arith.cmpi", [kind] * 2, "i1", left, right, attributes=attributes)
    numbers = [(signed(int(a), width), signed(int(b), width)) for a, b in zip(left, right, strict=True)]
    assert result.tolist() == [COMPARISONS[predicate](a, b, width) for a, b in numbers]


@pytest.mark.parametrize("name", list(INTEGERS))
def test_predicates_are_integers_of_one_bit(name: str) -> None:
    """Arithmetic on i1 is modulo 2, signed where the operation is, and never StableHLO's logic on predicates."""
    left, right = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    result = apply(f"arith.{name}", ["i1"] * 2, "i1", left, right)
    expected = [INTEGERS[name](signed(int(a), 1), signed(int(b), 1), 1) % 2 for a, b in zip(left, right, strict=True)]
    assert result.tolist() == [bool(number) for number in expected]


@pytest.mark.parametrize("width", [8, 16, 32])
@pytest.mark.parametrize("sign", ["si", "ui"])
def test_extended_products(sign: str, width: int) -> None:
    """The two halves of a product of twice the width, the low one first."""
    left, right = pairs(width)
    kinds = [f"i{width}"] * 2
    low, high = operation(f"arith.mul{sign}_extended", kinds, kinds, len(left))(left, right)
    numbers = [(int(a), int(b)) for a, b in zip(left, right, strict=True)]
    wholes = [a * b if sign == "si" else a % 2**width * (b % 2**width) for a, b in numbers]
    assert low.tolist() == [signed(whole, width) for whole in wholes]
    assert high.tolist() == [signed(whole >> width, width) for whole in wholes]


@pytest.mark.parametrize("width", [8, 32])
@pytest.mark.parametrize("name", ["add", "sub"])
def test_carries(name: str, width: int) -> None:
    """A sum's carry and a difference's borrow are those of numbers without a sign."""
    left, right = pairs(width)
    kind = f"i{width}"
    result, flag = operation(f"arith.{name}ui_extended", [kind] * 2, [kind, "i1"], len(left))(left, right)
    numbers = [(int(a) % 2**width, int(b) % 2**width) for a, b in zip(left, right, strict=True)]
    exact = [a + b if name == "add" else a - b for a, b in numbers]
    assert result.tolist() == [signed(number, width) for number in exact]
    assert flag.tolist() == [not 0 <= number < 2**width for number in exact]


_HYPOTHESIS = {name: operation(f"arith.{name}", ["i32"] * 2, ["i32"], 1) for name in (*INTEGERS, *DIVISIONS)}
_I32 = st.integers(-(2**31), 2**31 - 1)


@given(_I32, _I32.filter(bool) | st.integers(1, 40))
def test_any_integers(left: int, right: int) -> None:
    """Every operation on i32 agrees with Python's integers on whatever hypothesis finds."""
    for name, compiled in _HYPOTHESIS.items():
        (result,) = compiled(np.array([left], np.int32), np.array([right], np.int32))
        assert result.tolist() == [signed((INTEGERS | DIVISIONS)[name](left, right, 32), 32)], name


@pytest.mark.parametrize("condition", ["i1", "vector<3xi1>"])
def test_select(condition: str) -> None:
    """A vector is selected element by element, or whole by a scalar."""
    text = (
        f"func.func @f(%p: {condition}, %a: vector<3xf32>, %b: vector<3xf32>) -> vector<3xf32> {{"
        f"%0 = arith.select %p, %a, %b : {condition if condition != 'i1' else 'vector<3xf32>'}"
        f"{', vector<3xf32>' if condition != 'i1' else ''} return %0 : vector<3xf32> }}"
    )
    predicate = np.array([True, False, True]) if condition != "i1" else np.array(False)
    a, b = np.arange(3, dtype=np.float32), np.arange(3, dtype=np.float32) + 10
    (result,) = run(text, predicate, a, b)
    assert result.tolist() == np.where(predicate, a, b).tolist()


def test_a_choice_of_memory_is_refused() -> None:
    """Which of two buffers is meant isn't known while translating."""
    text = "func.func @f(%p: i1, %a: memref<4xf32>) { %0 = arith.select %p, %a, %a : memref<4xf32> return }"
    assert refusals(text) == ["arith.select: of two memrefs"]


@pytest.mark.parametrize("name", ["divsi", "remui"])
def test_division_of_predicates_is_refused(name: str) -> None:
    """Nobody divides by an i1, whose one divisor is -1 or 1."""
    assert refusals(f"func.func @f(%a: i1) {{ %0 = arith.{name} %a, %a : i1 return }}") == [
        f"arith.{name}: of predicates"
    ]


FLOATS = ("f32", "bf16", "f16", "f8E4M3FN", "f8E5M2", "f8E4M3B11FNUZ")


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize(
    ("name", "compute"),
    [("addf", np.add), ("subf", np.subtract), ("mulf", np.multiply), ("divf", np.divide), ("remf", np.fmod)],
)
def test_float_arithmetic(name: str, compute: Any, kind: str) -> None:
    """The result is that of f32, rounded once to the type; subnormal numbers are numbers."""
    left, right = float_pairs(kind)
    result = apply(f"arith.{name}", [kind] * 2, kind, left, right)
    with np.errstate(all="ignore"):
        expected = flushed(compute(left.astype(np.float32), right.astype(np.float32))).astype(DTYPES[kind])
    assert same(result, expected)


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize(
    ("name", "compute"),
    [
        ("maximumf", max),
        ("minimumf", min),
        ("maxnumf", max),
        ("minnumf", min),
        ("maximumnumf", max),
        ("minimumnumf", min),
    ],
)
def test_extremes(name: str, compute: Any, kind: str) -> None:
    """`maximumf` hands on NaN, `maxnumf` takes the number beside it; -0 is less than 0."""
    left, right = float_pairs(kind)
    result = apply(f"arith.{name}", [kind] * 2, kind, left, right)
    expected = []
    for a, b in zip(left.astype(float).tolist(), right.astype(float).tolist(), strict=True):
        if math.isnan(a) or math.isnan(b):
            expected.append((b if math.isnan(a) else a) if "num" in name else math.nan)
        else:
            expected.append(compute(a, b, key=lambda number: (number, math.copysign(1, number))))
    assert same(result, np.array(expected).astype(DTYPES[kind]))


@pytest.mark.parametrize("options", [COMPILER_OPTIONS, {}])
@pytest.mark.parametrize("kind", ["bf16", "f16", "f8E5M2"])
def test_no_rounding_is_skipped(kind: str, options: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The product is rounded before it is added to, with our options and with those that JAX compiles with."""
    monkeypatch.setattr(execute, "COMPILER_OPTIONS", options)
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(1000).astype(DTYPES[kind]) for _ in range(3))
    vector = f"vector<1000x{kind}>"
    (result,) = run(
        f"func.func @f(%a: {vector}, %b: {vector}, %c: {vector}) -> {vector} {{"
        f"%0 = arith.mulf %a, %b : {vector} %1 = arith.addf %0, %c : {vector} return %1 : {vector} }}",
        *(a, b, c),
    )
    assert same(result, a * b + c)


@pytest.mark.parametrize("options", [COMPILER_OPTIONS, {}])
def test_no_conversion_is_skipped(options: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """To bf16 and back loses digits, with our options and with those that JAX compiles with."""
    monkeypatch.setattr(execute, "COMPILER_OPTIONS", options)
    values = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    (result,) = run(
        "func.func @f(%a: vector<1000xf32>) -> vector<1000xf32> {"
        "%0 = arith.truncf %a : vector<1000xf32> to vector<1000xbf16>"
        "%1 = arith.extf %0 : vector<1000xbf16> to vector<1000xf32> return %1 : vector<1000xf32> }",
        values,
    )
    assert same(result, values.astype(ml_dtypes.bfloat16).astype(np.float32))


CMPF: tuple[Callable[[float, float], bool], ...] = (
    lambda a, b: False,
    lambda a, b: a == b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a != b,  # `one`, as JAX and libtpu mean it
    lambda a, b: a == a and b == b,
    lambda a, b: a != a or b != b or a == b,
    lambda a, b: not a <= b,
    lambda a, b: not a < b,
    lambda a, b: not a >= b,
    lambda a, b: not a > b,
    lambda a, b: a != b,
    lambda a, b: a != a or b != b,
    lambda a, b: True,
)


@pytest.mark.parametrize("kind", ["f32", "bf16", "f8E5M2"])
@pytest.mark.parametrize("predicate", range(16))
def test_cmpf(predicate: int, kind: str) -> None:
    """Each predicate, ordered or not, on numbers and NaN."""
    left, right = float_pairs(kind)
    result = apply("arith.cmpf", [kind] * 2, "i1", left, right, attributes=f"predicate = {predicate} : i64")
    numbers = zip(left.astype(float).tolist(), right.astype(float).tolist(), strict=True)
    assert result.tolist() == [CMPF[predicate](a, b) for a, b in numbers]


@pytest.mark.parametrize("kind", FLOATS)
def test_negf(kind: str) -> None:
    """The sign changes, of zeros and infinities too."""
    values = float_edges(kind)
    result = apply("arith.negf", [kind], kind, values)
    assert same(result, (-values.astype(np.float32)).astype(DTYPES[kind]))
