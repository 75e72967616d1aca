"""`tpu.matmul`, `vector.contract` and `tpu.conv` on the CPU, against `numpy.einsum` and `lax.conv_general_dilated`.

The operands are small integers unless rounding is the point, so that every order of summation gives the same bits.
"""

from __future__ import annotations

import dataclasses
import string
from typing import Any

import numpy as np
import pytest
from cpu_harness import context, executable, lower, refusals, run
from hypothesis import given, settings
from hypothesis import strategies as st

from mosaic_grid.context import unknown_location
from mosaic_grid.cpu.arrays import DTYPES, Array
from mosaic_grid.cpu.options import Options
from mosaic_grid.cpu.rules import RULES


def vector(array: Array, element: str) -> str:
    """The type of an array."""
    return f"vector<{''.join(f'{size}x' for size in array.shape)}{element}>"


def small(shape: tuple[int, ...], element: str, seed: int) -> Array:
    """Integers from -4 to 3, which every type holds."""
    return np.random.default_rng(seed).integers(-4, 4, shape).astype(DTYPES[element])


@dataclasses.dataclass(frozen=True)
class Dot:
    """A contraction: each operand's and the result's dimensions as letters, and the letters' sizes."""

    lhs: str
    rhs: str
    out: str
    sizes: dict[str, int]

    def shape(self, letters: str) -> tuple[int, ...]:
        """The sizes of some letters."""
        return tuple(self.sizes[letter] for letter in letters)

    @property
    def equation(self) -> str:
        """What `einsum` calls it."""
        return f"{self.lhs},{self.rhs}->{self.out}"

    @property
    def numbers(self) -> str:
        """The attribute that says the same."""
        contracted = [letter for letter in self.lhs if letter in self.rhs and letter not in self.out]
        batch = [letter for letter in self.lhs if letter in self.rhs and letter in self.out]
        kept = [[x for x in part if x not in contracted and x not in batch] for part in (self.lhs, self.rhs)]
        order = [
            number for x in self.out for number in ((0, self.lhs.index(x)) if x in self.lhs else (1, self.rhs.index(x)))
        ]
        lists = [
            [self.lhs.index(x) for x in contracted],
            [self.rhs.index(x) for x in contracted],
            [self.lhs.index(x) for x in kept[0]],
            [self.rhs.index(x) for x in kept[1]],
            order,
            [self.lhs.index(x) for x in batch],
            [self.rhs.index(x) for x in batch],
        ]
        return f"#tpu.dot_dimension_numbers<{', '.join(str(numbers) for numbers in lists)}>"


@st.composite
def dots(draw: st.DrawFn, most: int = 2, ordered: bool = False) -> Dot:
    """Contractions with at most `most` contracted and paired dimensions, and the operands' dimensions in any order.

    The result's are in any order too; if `ordered`, they are the paired ones, the left operand's and the right's.
    """
    letters = iter(string.ascii_lowercase)
    contracted, batch, left, right = (
        [next(letters) for _ in range(draw(st.integers(*bounds)))] for bounds in ((1, most), (0, most), (0, 2), (0, 2))
    )
    sizes = {letter: draw(st.integers(1, 4)) for letter in [*contracted, *batch, *left, *right]}
    lhs, rhs = ("".join(draw(st.permutations([*contracted, *batch, *part]))) for part in (left, right))
    out = [*batch, *(x for x in lhs if x in left), *(x for x in rhs if x in right)]
    return Dot(lhs, rhs, "".join(out if ordered else draw(st.permutations(out))), sizes)


def matmul(
    attributes: str, lhs: Array, rhs: Array, acc: Array, kinds: tuple[str, str, str], options: Options | None = None
) -> Array:
    """The result of one `tpu.matmul`."""
    types = [vector(array, kind) for array, kind in zip((lhs, rhs, acc), kinds, strict=True)]
    (result,) = run(
        f"""func.func @f(%l: {types[0]}, %r: {types[1]}, %a: {types[2]}) -> {types[2]} {{
          %0 = "tpu.matmul"(%l, %r, %a) <{{{attributes}, transpose_lhs_hint = false}}>
            : ({", ".join(types)}) -> {types[2]}
          return %0 : {types[2]} }}""",
        lhs, rhs, acc, options=options,
    )  # fmt: skip
    return result


MATRICES = "dimension_numbers = #tpu.dot_dimension_numbers<[1], [0], [0], [1], [0, 0, 1, 1], [], []>"


@settings(max_examples=60)
@given(dots(most=1, ordered=True))
def test_dimension_numbers(dot: Dot) -> None:
    """Whatever is contracted, paired and kept, as far as MLIR takes it, is what `einsum` makes of it."""
    lhs, rhs = small(dot.shape(dot.lhs), "f32", 1), small(dot.shape(dot.rhs), "f32", 2)
    acc = small(dot.shape(dot.out), "f32", 3)
    if min(lhs.ndim, rhs.ndim, acc.ndim) == 0:
        return  # tpu.matmul takes no vector without dimensions
    result = matmul(f"dimension_numbers = {dot.numbers}", lhs, rhs, acc, ("f32", "f32", "f32"))
    np.testing.assert_array_equal(result, np.einsum(dot.equation, lhs, rhs) + acc)


@settings(max_examples=30)
@given(dots())
def test_contract(dot: Dot) -> None:
    """`vector.contract` says it with maps, and has no order of its own: neither of the operands nor of the result."""
    axes = sorted(dot.sizes)
    names = {letter: f"d{number}" for number, letter in enumerate(axes)}
    domain = ", ".join(names[letter] for letter in axes)
    maps = [
        f"affine_map<({domain}) -> ({', '.join(names[letter] for letter in part)})>"
        for part in (dot.lhs, dot.rhs, dot.out)
    ]
    sorts = ['"parallel"' if letter in dot.out else '"reduction"' for letter in axes]
    lhs, rhs = small(dot.shape(dot.lhs), "f32", 1), small(dot.shape(dot.rhs), "f32", 2)
    acc = small(dot.shape(dot.out), "f32", 3)
    types = [vector(array, "f32") if array.ndim else "f32" for array in (lhs, rhs, acc)]
    (result,) = run(
        f"""func.func @f(%l: {types[0]}, %r: {types[1]}, %a: {types[2]}) -> {types[2]} {{
          %0 = vector.contract {{indexing_maps = [{", ".join(maps)}], iterator_types = [{", ".join(sorts)}],
            kind = #vector.kind<add>}} %l, %r, %a : {types[0]}, {types[1]} into {types[2]}
          return %0 : {types[2]} }}""",
        lhs, rhs, acc,
    )  # fmt: skip
    np.testing.assert_array_equal(result, np.einsum(dot.equation, lhs, rhs) + acc)


def contraction(element: str, kind: str = "add") -> str:
    """A function with a product of two matrices as a `vector.contract`."""
    types = [f"vector<{shape}x{element}>" for shape in ("2x3", "3x4", "2x4")]
    return f"""func.func @f(%l: {types[0]}, %r: {types[1]}, %a: {types[2]}) -> {types[2]} {{
      %0 = vector.contract {{indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
        affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"],
        kind = #vector.kind<{kind}>}} %l, %r, %a : {types[0]}, {types[1]} into {types[2]}
      return %0 : {types[2]} }}"""


def test_sum_of_one_operand_is_refused() -> None:
    """A dimension that is summed over and stands in one operand only is no contraction."""
    text = """func.func @f(%l: vector<2x3xf32>, %r: vector<3x4xf32>, %a: vector<2xf32>) {
      %0 = vector.contract {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
        affine_map<(i, j, k) -> (i)>], iterator_types = ["parallel", "reduction", "reduction"],
        kind = #vector.kind<add>} %l, %r, %a : vector<2x3xf32>, vector<3x4xf32> into vector<2xf32>
      return }"""
    assert refusals(text) == ["vector.contract: a dimension that stands in one map only"]


def test_contract_is_rounded_once() -> None:
    """A result of bf16 is added up in f32, accumulator included, and rounded at the end."""
    lhs, rhs = np.full((2, 3), 2**-4).astype(DTYPES["bf16"]), np.full((3, 4), 2**-5).astype(DTYPES["bf16"])
    acc = np.ones((2, 4)).astype(DTYPES["bf16"])
    (result,) = run(contraction("bf16"), lhs, rhs, acc)  # 1 + 3 * 2**-9: each product alone would be lost
    np.testing.assert_array_equal(result.astype(np.float32), np.full((2, 4), 1 + 2**-7, np.float32))


@pytest.mark.parametrize(
    ("element", "kind", "reason"),
    [
        ("f32", "maximumf", "the kind maximumf"),
        ("i16", "add", "a sum in i16"),
        ("f64", "add", "f64"),
    ],
)
def test_refused_contractions(element: str, kind: str, reason: str) -> None:
    """What no matrix unit does is refused."""
    assert refusals(contraction(element, kind)) == [f"vector.contract: {reason}"]


@pytest.mark.parametrize("transposed", [False, True])
def test_no_dimension_numbers(transposed: bool) -> None:
    """The older form is of two matrices, the right one transposed or not."""
    lhs, rhs, acc = small((5, 3), "f32", 1), small((3, 7), "f32", 2), small((5, 7), "f32", 3)
    flag = f"transpose_rhs = {str(transposed).lower()}"
    result = matmul(flag, lhs, rhs.T.copy() if transposed else rhs, acc, ("f32", "f32", "f32"))
    np.testing.assert_array_equal(result, lhs @ rhs + acc)


@pytest.mark.parametrize(
    "kinds",
    [
        ("bf16", "bf16", "f32"),
        ("f32", "bf16", "f32"),
        ("bf16", "f32", "f32"),
        ("f16", "f16", "f32"),
        ("bf16", "f8E4M3FN", "f32"),
        ("f8E4M3FN", "f8E4M3FN", "f32"),
        ("f8E5M2", "f8E4M3FN", "f32"),
        ("f8E4M3B11FNUZ", "f8E4M3B11FNUZ", "f32"),
        ("i8", "bf16", "f32"),
        ("f32", "i4", "f32"),
        ("i8", "i8", "i32"),
        ("i4", "i4", "i32"),
        ("i8", "i4", "i32"),
        ("i16", "i8", "i32"),
        ("i32", "i32", "i32"),
    ],
)
def test_element_types(kinds: tuple[str, str, str]) -> None:
    """Each pair of types that occurs is multiplied exactly, whichever side is wider."""
    lhs, rhs, acc = small((5, 6), kinds[0], 1), small((6, 7), kinds[1], 2), small((5, 7), kinds[2], 3)
    wanted = lhs.astype(np.float64) @ rhs.astype(np.float64) + acc.astype(np.float64)
    result = matmul(MATRICES, lhs, rhs, acc, kinds)
    assert result.dtype == DTYPES[kinds[2]]
    np.testing.assert_array_equal(result.astype(np.float64), wanted)


def test_integers_do_not_saturate() -> None:
    """Sums of products of i8 reach far beyond 16 bits; the least number times itself is positive."""
    lhs, rhs = np.full((2, 1024), -128, np.int8), np.full((1024, 3), -128, np.int8)
    result = matmul(MATRICES, lhs, rhs, np.zeros((2, 3), np.int32), ("i8", "i8", "i32"))
    assert (result == 128 * 128 * 1024).all()


def test_narrow_floats_are_added_up_in_f32() -> None:
    """Products of bf16 keep their 16 bits, and 2**-12 isn't lost beside 1."""
    lhs = np.array([[1 + 2**-7, 1, 2**-12]]).astype(DTYPES["bf16"])
    rhs = np.array([[1 + 2**-7], [1], [1]]).astype(DTYPES["bf16"])
    result = matmul(MATRICES, lhs, rhs, np.zeros((1, 1), np.float32), ("bf16", "bf16", "f32"))
    assert result[0, 0] == (1 + 2**-7) ** 2 + 1 + 2**-12


@pytest.mark.parametrize("kinds", [("bf16", "bf16"), ("f32", "bf16"), ("f8E5M2", "f8E4M3FN"), ("bf16", "i8")])
@pytest.mark.parametrize("rows", [1, 3, 64])
def test_long_sums(kinds: tuple[str, str], rows: int) -> None:
    """However XLA computes it, for one row or many: a sum of 2048 products is as exact as one in f32."""
    generator = np.random.default_rng(0)
    lhs, rhs = (
        (4 * generator.standard_normal(shape)).astype(DTYPES[kind])
        for shape, kind in (((rows, 2048), kinds[0]), ((2048, 32), kinds[1]))
    )
    acc = np.zeros((rows, 32), np.float32)
    result = matmul(MATRICES, lhs, rhs, acc, (*kinds, "f32"))
    left, right = lhs.astype(np.float64), rhs.astype(np.float64)
    assert (abs(result - left @ right) <= 1e-5 * (abs(left) @ abs(right))).all()


@pytest.mark.parametrize(
    ("options", "precision", "rounded"),
    [
        (Options(), "", False),
        (Options(precision="bf16"), "", True),
        (Options(precision="bf16"), ", precision = #tpu.contract_precision<fp32>", False),
        (Options(precision="bf16"), ", precision = #tpu.contract_precision<bf16x3>", False),
        (Options(), ", precision = #tpu.contract_precision<bf16>", True),
    ],
)
def test_precision(options: Options, precision: str, rounded: bool) -> None:
    """f32 operands are exact unless the kernel or, where it says nothing, the options ask for the rounding to bf16."""
    lhs, rhs = np.array([[1 + 2**-9]], np.float32), np.array([[3.0]], np.float32)
    acc = np.array([[2**-20]], np.float32)
    result = matmul(MATRICES + precision, lhs, rhs, acc, ("f32", "f32", "f32"), options)
    assert result[0, 0] == 3 * (1 if rounded else 1 + 2**-9) + 2**-20


def test_rounding_is_to_nearest_even() -> None:
    """The matrix unit's rounding of f32 is that of a conversion to bf16."""
    lhs = np.random.default_rng(0).standard_normal((8, 1)).astype(np.float32)
    one, zero = np.ones((1, 1), np.float32), np.zeros((8, 1), np.float32)
    result = matmul(MATRICES, lhs, one, zero, ("f32", "f32", "f32"), Options(precision="bf16"))
    np.testing.assert_array_equal(result, lhs.astype(DTYPES["bf16"]).astype(np.float32))


@pytest.mark.parametrize(
    ("kinds", "reason"),
    [
        (("i8", "i8", "f32"), "integers that are added up as floats"),
        (("f32", "i8", "i32"), "floats that are added up as integers"),
    ],
)
def test_refused_types(kinds: tuple[str, str, str], reason: str) -> None:
    """Sums in a type that no matrix unit has are refused, not guessed at."""
    types = [f"vector<4x4x{kind}>" for kind in kinds]
    text = f"""func.func @f(%l: {types[0]}, %r: {types[1]}, %a: {types[2]}) {{
      %0 = "tpu.matmul"(%l, %r, %a) <{{{MATRICES}, transpose_lhs_hint = false}}> : ({", ".join(types)}) -> {types[2]}
      return }}"""
    assert refusals(text) == [f"tpu.matmul: {reason}"]


@pytest.mark.parametrize(("accumulator", "additions"), [("0.0", 0), ("1.0", 1)])
def test_zero_accumulator_costs_nothing(accumulator: str, additions: int) -> None:
    """What the compiler gets is one `dot_general` without a transposition, and an addition only where it counts."""
    text = f"""func.func @f(%l: vector<4x8xf32>, %r: vector<16x8xf32>) -> vector<4x16xf32> {{
      %a = arith.constant dense<{accumulator}> : vector<4x16xf32>
      %0 = "tpu.matmul"(%l, %r, %a) <{{dimension_numbers =
        #tpu.dot_dimension_numbers<[1], [1], [0], [0], [0, 0, 1, 0], [], []>, transpose_lhs_hint = false}}>
        : (vector<4x8xf32>, vector<16x8xf32>, vector<4x16xf32>) -> vector<4x16xf32>
      return %0 : vector<4x16xf32> }}"""
    with context(), unknown_location():
        lowered = str(lower(text, RULES, None)[0])
    counts = {op: lowered.count(f"stablehlo.{op} ") for op in ("dot_general", "transpose", "add", "convert")}
    assert counts == {"dot_general": 1, "transpose": 0, "add": additions, "convert": 0}


def test_zero_of_the_wrong_sort_is_added() -> None:
    """An accumulator that is zero at run time only, and one of which some elements are zero, count."""
    lhs = rhs = np.eye(2, dtype=np.float32)
    mixed = """func.func @f(%l: vector<2x2xf32>, %r: vector<2x2xf32>) -> vector<2x2xf32> {
      %a = arith.constant dense<[[0.0, 1.0], [2.0, 0.0]]> : vector<2x2xf32>
      %0 = "tpu.matmul"(%l, %r, %a) <{transpose_lhs_hint = false}>
        : (vector<2x2xf32>, vector<2x2xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      return %0 : vector<2x2xf32> }"""
    np.testing.assert_array_equal(run(mixed, lhs, rhs)[0], [[1, 1], [2, 1]])


CONVOLUTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "strided": {"window_strides": [2, 1]},
    "padded": {"padding": [(1, 2), (0, 1)]},
    "dilated": {"lhs_dilation": [2, 1], "rhs_dilation": [1, 2]},
    "grouped": {"feature_group_count": 2},
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_conv(name: str) -> None:
    """A convolution is that of `lax`, plus the accumulator; the layout is channels first for the kernel alone."""
    lax = pytest.importorskip("jax").lax
    chosen: dict[str, Any] = {
        "window_strides": [1, 1],
        "padding": [(0, 0), (0, 0)],
        "lhs_dilation": [1, 1],
        "rhs_dilation": [1, 1],
        "feature_group_count": 1,
        **CONVOLUTIONS[name],
    }
    groups = chosen["feature_group_count"]
    lhs, rhs = small((2, 6, 7, 4), "f32", 1), small((6, 4 // groups, 3, 2), "f32", 2)
    wanted = lax.conv_general_dilated(lhs, rhs, dimension_numbers=("NHWC", "OIHW", "NHWC"), **chosen)
    acc = small(wanted.shape, "f32", 3)
    types = [vector(array, "f32") for array in (lhs, rhs, acc)]
    dense = {key: f"array<i64: {', '.join(map(str, np.ravel(value)))}>" for key, value in chosen.items()}
    text = f"""func.func @f(%l: {types[0]}, %r: {types[1]}, %a: {types[2]}) -> {types[2]} {{
      %0 = "tpu.conv"(%l, %r, %a) <{{
        dimension_numbers = #tpu.conv_dimension_numbers<0, 3, [1, 2], 1, 0, [2, 3], 0, 3, [1, 2]>,
        window_strides = {dense["window_strides"]}, padding = {dense["padding"]},
        lhs_dilation = {dense["lhs_dilation"]}, rhs_dilation = {dense["rhs_dilation"]},
        window_reversal = array<i1: false, false>, feature_group_count = {groups} : i64, batch_group_count = 1 : i64
      }}> : ({", ".join(types)}) -> {types[2]}
      return %0 : {types[2]} }}"""
    np.testing.assert_array_equal(executable(text)(lhs, rhs, acc)[0], wanted + acc)
