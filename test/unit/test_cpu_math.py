"""The rules for `math`: the same bits as JAX gives on the CPU, and the right numbers by NumPy and exact fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from cpu_harness import apply, operation, refusals
from cpu_numbers import edges, float_edges, float_pairs, same, signed
from hypothesis import assume, given
from hypothesis import strategies as st
from jax import lax
from jaxlib.mlir.dialects import _arith_ops_gen, _math_ops_gen

from mosaic_grid.cpu.arrays import DTYPES, Array
from mosaic_grid.cpu.rules import RULES

KINDS = ("f32", "bf16", "f16", "f8E4M3FN", "f8E5M2")

# Each function as JAX has it, and as NumPy or Python computes it in f64.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "absf": (jnp.abs, np.abs),
    "acos": (jnp.arccos, np.arccos),
    "acosh": (jnp.arccosh, np.arccosh),
    "asin": (jnp.arcsin, np.arcsin),
    "asinh": (jnp.arcsinh, np.arcsinh),
    "atan": (jnp.arctan, np.arctan),
    "atanh": (jnp.arctanh, np.arctanh),
    "cbrt": (jnp.cbrt, np.cbrt),
    "ceil": (jnp.ceil, np.ceil),
    "cos": (jnp.cos, np.cos),
    "cosh": (jnp.cosh, np.cosh),
    "erf": (lax.erf, np.vectorize(math.erf)),
    "erfc": (lax.erfc, np.vectorize(math.erfc)),
    "exp": (jnp.exp, np.exp),
    "exp2": (jnp.exp2, np.exp2),
    "expm1": (jnp.expm1, np.expm1),
    "floor": (jnp.floor, np.floor),
    "log": (jnp.log, np.log),
    "log10": (jnp.log10, np.log10),
    "log1p": (jnp.log1p, np.log1p),
    "log2": (jnp.log2, np.log2),
    "round": (lax.round, lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x)),
    "roundeven": (jnp.round, np.rint),
    "rsqrt": (lax.rsqrt, lambda x: 1 / np.sqrt(x)),
    "sin": (jnp.sin, np.sin),
    "sinh": (jnp.sinh, np.sinh),
    "sqrt": (jnp.sqrt, np.sqrt),
    "tan": (jnp.tan, np.tan),
    "tanh": (jnp.tanh, np.tanh),
    "trunc": (jnp.trunc, np.trunc),
}


def arguments(kind: str) -> Array:
    """Edge values, halves, and random numbers of all sizes."""
    rng = np.random.default_rng(7)
    spread = np.exp(rng.uniform(-80, 80, 200)) * rng.choice([-1, 1], 200)
    numbers = [float_edges("f32"), np.arange(-20, 20) / 2, rng.standard_normal(200), rng.uniform(-90, 90, 200), spread]
    with np.errstate(over="ignore", invalid="ignore"):
        return np.concatenate(numbers).astype(np.float32).astype(DTYPES[kind])


def by_jax(function: Callable[..., Any], kind: str, *values: Array) -> Array:
    """What JAX gives for these numbers in f32, rounded to the type."""
    with np.errstate(over="ignore", invalid="ignore"):
        wide = [value.astype(np.float32) for value in values]
        return np.asarray(jax.jit(function)(*wide)).astype(DTYPES[kind])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_the_bits_of_jax(name: str, kind: str) -> None:
    """Every result is JAX's on the CPU, to the last bit; of narrow floats, computed in f32 and rounded once."""
    values = arguments(kind)
    assert same(apply(f"math.{name}", [kind], kind, values), by_jax(FUNCTIONS[name][0], kind, values))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_right(name: str) -> None:
    """Every result is close to that of f64: the rule stands for the function that it is named after."""
    values = arguments("f32")
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name][1](values.astype(np.float64)).astype(np.float32)
    found = apply(f"math.{name}", ["f32"], "f32", values)
    usual = np.abs(values) < 1e6  # the trigonometric ones are given up on far out
    tiny = np.finfo(np.float32).tiny  # zero, to XLA
    np.testing.assert_allclose(found[usual], expected[usual], rtol=2e-5, atol=tiny)


@pytest.mark.parametrize("kind", ["bf16", "f16"])
@pytest.mark.parametrize("name", ["cos", "erf", "exp", "log", "log1p", "rsqrt", "sin", "sqrt", "tanh"])
def test_narrow_functions_are_those_of_jax(name: str, kind: str) -> None:
    """Where JAX has a function of bf16 and f16 as one operation of XLA, it rounds as we do."""
    values = arguments(kind)
    expected = np.asarray(jax.jit(FUNCTIONS[name][0])(values))
    assert same(apply(f"math.{name}", [kind], kind, values), expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "function"), [("powf", jnp.power), ("atan2", jnp.arctan2)])
def test_functions_of_two_numbers(name: str, function: Any, kind: str) -> None:
    """Powers and angles of all pairs of edge values are JAX's."""
    left, right = float_pairs(kind)
    assert same(apply(f"math.{name}", [kind, kind], kind, left, right), by_jax(function, kind, left, right))


@pytest.mark.parametrize("kind", KINDS)
def test_copysign(kind: str) -> None:
    """The size of the first number with the sign of the second, zeros and infinities among them."""
    left, right = float_pairs(kind)
    found = apply("math.copysign", [kind, kind], kind, left, right)
    expected = np.copysign(left.astype(np.float32), right.astype(np.float32)).astype(DTYPES[kind])
    known = ~np.isnan(right.astype(np.float32))
    assert same(found[known], expected[known])


@pytest.mark.parametrize("kind", ["f32", "bf16"])
def test_clampf(kind: str) -> None:
    """A number beyond one of the two limits becomes that limit."""
    values = np.array([-5, -1, 0, 0.5, 1, 9, math.inf], DTYPES[kind])
    limits = [np.full(len(values), limit, DTYPES[kind]) for limit in (-1, 1)]
    assert apply("math.clampf", [kind] * 3, kind, values, *limits).tolist() == [-1, -1, 0, 0.5, 1, 1, 1]


@pytest.mark.parametrize("kind", ["f32", "bf16"])
def test_sincos(kind: str) -> None:
    """Both at once, the sine first."""
    values = arguments(kind)
    sine, cosine = operation("math.sincos", [kind], [kind, kind], len(values))(values)
    assert same(sine, apply("math.sin", [kind], kind, values))
    assert same(cosine, apply("math.cos", [kind], kind, values))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "holds"),
    [("isnan", math.isnan), ("isinf", math.isinf), ("isfinite", math.isfinite), ("isnormal", None)],
)
def test_kinds_of_numbers(name: str, holds: Callable[[float], bool] | None, kind: str) -> None:
    """Whether a number is NaN, infinite, finite, or neither zero nor subnormal in its own type."""
    least = float(ml_dtypes.finfo(DTYPES[kind]).tiny)
    decide = holds or (lambda number: math.isfinite(number) and abs(number) >= least)
    values = float_edges(kind)
    found = apply(f"math.{name}", [kind], "i1", values)
    assert found.tolist() == [decide(number) for number in values.astype(float).tolist()]


INTEGERS: dict[str, Callable[[int, int], int]] = {
    "absi": lambda n, width: abs(n),
    "ctlz": lambda n, width: width - (n % 2**width).bit_length(),
    "cttz": lambda n, width: (n & -n).bit_length() - 1 if n else width,
    "ctpop": lambda n, width: (n % 2**width).bit_count(),
}


@pytest.mark.parametrize("width", [4, 8, 16, 32])
@pytest.mark.parametrize("name", INTEGERS)
def test_bits_of_integers(name: str, width: int) -> None:
    """Counts of bits, and the absolute value, of all edge values."""
    kind, numbers = f"i{width}", edges(width)
    found = apply(f"math.{name}", [kind], kind, np.array(numbers).astype(DTYPES[kind]))
    assert found.astype(int).tolist() == [signed(INTEGERS[name](n, width), width) for n in numbers]


@pytest.mark.parametrize("width", [8, 16, 32])
def test_ipowi(width: int) -> None:
    """Powers wrap as products do; with a negative exponent only those of 1 and -1 aren't 0."""
    exponents = [0, 1, 2, 3, 5, width - 1, width, 2 ** (width - 1) - 1, -1, -2, -(2 ** (width - 1))]
    cases = [(b, e) for b in edges(width) for e in exponents if b or e >= 0]

    def power(base: int, exponent: int) -> int:
        if exponent < 0:
            return base ** (exponent % 2) if base in (1, -1) else 0
        return signed(pow(base, exponent, 2**width), width)

    kind = f"i{width}"
    left, right = (np.array(column, DTYPES[kind]) for column in zip(*cases, strict=True))
    found = apply("math.ipowi", [kind, kind], kind, left, right)
    assert found.tolist() == [power(base, exponent) for base, exponent in cases]


def test_fpowi() -> None:
    """An exponent that f32 can't hold is odd where it is odd."""
    bases, exponents = [2.0, -2.0, -1.0, -1.0, 0.5, 3.0], [3, 3, 2**24 + 1, 2**24, -2, 0]
    values = np.array(bases, np.float32), np.array(exponents, np.int32)
    assert apply("math.fpowi", ["f32", "i32"], "f32", *values).tolist() == [8, -8, -1, 1, 4, 1]


def nearest(exact: Fraction, kind: str) -> float:
    """The number of a type that is nearest to a fraction, of two the even one."""
    dtype = DTYPES[kind]
    with np.errstate(over="ignore"):
        middle = np.array(float(exact), np.float64).astype(np.float32).astype(dtype)
    bits = int(middle.view(f"u{dtype.itemsize}"))
    around = [np.array(b, f"u{dtype.itemsize}").view(dtype) for b in (bits - 1, bits, bits + 1) if b >= 0]
    finite = [(float(each), int(each.view(f"u{dtype.itemsize}"))) for each in around if math.isfinite(float(each))]
    return min(finite, key=lambda each: (abs(Fraction(each[0]) - exact), each[1] % 2))[0]


_FMA = {kind: operation("math.fma", [kind] * 3, [kind], 1) for kind in ("f32", "bf16", "f16", "f8E5M2")}
_EXPONENTS = {"f8E5M2": (-2, 2), "f16": (-9, 2)}  # of others, from -30 to 30: nothing overflows or is subnormal


@given(st.sampled_from(sorted(_FMA)), st.data())
def test_fma_rounds_once(kind: str, data: st.DataObject) -> None:
    """The result is the number nearest to the exact sum, also where rounding the product first would miss it."""
    dtype = DTYPES[kind]
    precision = -int(math.log2(float(ml_dtypes.finfo(dtype).eps)))
    mantissas = st.integers(-(2 ** (precision + 1)) + 1, 2 ** (precision + 1) - 1)
    exponents = st.integers(*_EXPONENTS.get(kind, (-30, 30)))
    numbers = [data.draw(mantissas) * 2.0 ** (data.draw(exponents) - precision) for _ in range(3)]
    if data.draw(st.booleans()):  # nearly nothing is left, or the sum is near a tie
        numbers[2] = -numbers[0] * numbers[1] * data.draw(st.sampled_from([1.0, 2.0, 0.5, -(2.0**precision), 0.0]))
    with np.errstate(over="ignore"):
        a, b, c = (np.array([number]).astype(np.float32).astype(dtype) for number in numbers)
    assume(math.isfinite(float(c[0])))
    exact = Fraction(float(a[0])) * Fraction(float(b[0])) + Fraction(float(c[0]))
    assume(abs(exact) <= float(ml_dtypes.finfo(dtype).max))
    (found,) = _FMA[kind](a, b, c)
    assert float(found[0]) == nearest(exact, kind)


@pytest.mark.parametrize(
    ("kind", "left", "right", "rest"),
    [
        ("f32", 2.0**-12, 2.0**-12, 2.0**-60),
        ("bf16", 2.0**-4, 2.0**-4, 2.0**-24),
        ("bf16", 2.0**-4, 2.0**-4, 2.0**-60),
        ("f16", 2.0**-5, 2.0**-6, 2.0**-24),
    ],
)
def test_fma_sees_beyond_a_tie(kind: str, left: float, right: float, rest: float) -> None:
    """A product that is a tie is rounded up by the least addend, and down by its opposite."""
    values = [np.full(2, 1 + digit, DTYPES[kind]) for digit in (left, right)] + [np.array([rest, -rest], DTYPES[kind])]
    exact = [Fraction((1 + left) * (1 + right)) + Fraction(sign * rest) for sign in (1, -1)]
    found = apply("math.fma", [kind] * 3, kind, *values).astype(float)
    assert found.tolist() == [nearest(number, kind) for number in exact]
    assert found[0] > found[1]


def test_fma_of_what_is_no_number() -> None:
    """Infinities and NaN come out as from a product and a sum."""
    inf, nan = math.inf, math.nan
    rows = [(inf, 1, 1), (inf, 0, 1), (1, 1, -inf), (nan, 1, 1), (inf, 1, -inf), (3e38, 3e38, 0)]
    values = [np.array(column, np.float32) for column in zip(*rows, strict=True)]
    found = apply("math.fma", ["f32"] * 3, "f32", *values)
    assert same(found, np.array([inf, nan, -inf, nan, nan, inf], np.float32))


def test_fma_of_doubles_is_refused() -> None:
    """There is no wider type to compute it in."""
    text = "func.func @f(%a: f64) { %0 = math.fma %a, %a, %a : f64 return }"
    assert refusals(text) == ["math.fma: of floats of more than 32 bits"]


def test_every_operation_has_a_rule() -> None:
    """The two dialects are translated whole, but for what works on blocks with a common scale, and flushing."""
    names = {
        kind.OPERATION_NAME
        for module in (_arith_ops_gen, _math_ops_gen)
        for kind in vars(module).values()
        if hasattr(kind, "OPERATION_NAME")
    }
    assert names - RULES.keys() == {"arith.flush_denormals", "arith.scaling_extf", "arith.scaling_truncf"}
