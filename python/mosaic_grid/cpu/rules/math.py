"""`math`: each function as JAX gives it on the CPU, so that a kernel agrees with its reference to the last bit.

Of narrow floats it is computed in f32 and rounded once. That differs from JAX in `exp2`, `log2` and `log10`, where JAX
multiplies by a constant that it has rounded to the narrow type first: of bf16, `jnp.exp2(10)` is 1000 there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import ml_dtypes
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import chlo
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.arrays import DTYPES
from mosaic_grid.cpu.bits import width_of
from mosaic_grid.cpu.fma import exact_fma
from mosaic_grid.cpu.lowering import Lowering, Rule, UnsupportedError
from mosaic_grid.cpu.rules.floats import is_nan, rounded
from mosaic_grid.cpu.types import unsigned
from mosaic_grid.cpu.wide import widen
from mosaic_grid.ir_types import Value


def _of_integer(compute: Callable[..., Value]) -> Rule:
    return lambda low, op: compute(*low.operands(op))


def _test(compute: Callable[[Value], Value]) -> Rule:
    """A rule for a predicate of a float."""
    return lambda low, op: compute(widen(low.value(op.operands[0])))


def _like(value: Value, number: float) -> Value:
    return build.constant(number, build.shape_of(value), build.element_of(value))


def _scaled_exp2(value: Value) -> Value:
    return hlo.exponential(hlo.multiply(_like(value, math.log(2)), value))


def _scaled_log(factor: float) -> Callable[[Value], Value]:
    """A logarithm to another base; `factor` is the reciprocal of that base's natural one."""
    return lambda value: hlo.multiply(hlo.log(value), _like(value, factor))


def _asin(value: Value) -> Value:
    """JAX's formula on the CPU, where that of CHLO is less exact."""
    one = _like(value, 1)
    return hlo.atan2(value, hlo.sqrt(hlo.multiply(hlo.subtract(one, value), hlo.add(one, value))))


def _is_infinite(value: Value) -> Value:
    return build.compare(hlo.abs(value), _like(value, math.inf), "EQ")


def _is_normal(low: Lowering, op: ir.Operation) -> Value:
    value = low.value(op.operands[0])
    least = ml_dtypes.finfo(DTYPES[str(build.element_of(value))]).tiny
    wide = widen(value)
    return hlo.and_(hlo.is_finite(wide), build.compare(hlo.abs(wide), _like(wide, float(least)), "GE"))


def _trailing_zeros(value: Value) -> Value:
    """The zeros below the lowest one are the ones of that bit less 1; all of them, where there is none."""
    lowest = hlo.and_(value, hlo.negate(value))
    return _ones(hlo.subtract(lowest, _like(value, 1)))


def _ones(value: Value) -> Value:
    """XLA counts the copies of the sign too where an integer is smaller than a byte."""
    element = build.element_of(value)
    if width_of(element) >= 8:
        return hlo.popcnt(value)
    plain = build.convert(build.bitcast(value, unsigned(element)), ir.IntegerType.get_unsigned(8))
    return build.convert(hlo.popcnt(plain), element)


def _integer_power(base: Value, exponent: Value) -> Value:
    """By squaring, once for each bit: XLA looks at the low bits of the exponent alone.

    With a negative exponent, the integer that the fraction is rounded to towards zero.
    """
    zero, one = _like(base, 0), _like(base, 1)

    def step(values: Sequence[Value]) -> list[Value]:
        count, result, square, rest = values
        odd = build.compare(hlo.and_(rest, one), one, "EQ")
        larger = build.select(odd, hlo.multiply(result, square), result)
        shifted = hlo.shift_right_logical(rest, one)
        return [hlo.add(count, build.i32(1)), larger, hlo.multiply(square, square), shifted]

    bits = build.i32(width_of(build.element_of(base)))
    start = [build.i32(0), one, base, exponent]
    result = build.while_(start, lambda values: build.compare(values[0], bits, "LT"), step)[1]
    is_unit = hlo.or_(build.compare(base, one, "EQ"), build.compare(base, hlo.negate(one), "EQ"))
    return build.select(build.compare(exponent, zero, "LT"), build.select(is_unit, result, zero), result)


def _truncated(value: Value) -> Value:
    """Towards zero; a result of 0 keeps the sign."""
    return _with_sign(hlo.floor(hlo.abs(value)), value)


def _with_sign(size: Value, sign: Value) -> Value:
    """The size of one float, with the sign of the other of the same type."""
    element = build.element_of(size)
    integer = ir.IntegerType.get_signless(width_of(element))
    bits = [build.bitcast(value, integer) for value in (size, sign)]
    top = build.constant(-(2 ** (integer.width - 1)), build.shape_of(size), integer)
    return build.bitcast(hlo.or_(hlo.and_(bits[0], hlo.not_(top)), hlo.and_(bits[1], top)), element)


def _copysign(low: Lowering, op: ir.Operation) -> Value:
    return _with_sign(*low.operands(op))


def _clamp(value: Value, least: Value, greatest: Value) -> Value:
    return hlo.minimum(hlo.maximum(value, least), greatest)


def _fma(low: Lowering, op: ir.Operation) -> Value:
    return exact_fma(*low.operands(op))


def _sincos(low: Lowering, op: ir.Operation) -> Sequence[Value]:
    value = low.value(op.operands[0])
    wide = widen(value)
    return [build.convert(part(wide), build.element_of(value)) for part in (hlo.sine, hlo.cosine)]


def _fpowi(low: Lowering, op: ir.Operation) -> Value:
    """In f64, which holds each exponent of 32 bits: whether it is odd decides the sign."""
    base, exponent = low.operands(op)
    double = ir.F64Type.get()
    if width_of(build.element_of(exponent)) > 32:
        raise UnsupportedError("with an exponent of more than 32 bits")
    result = hlo.power(build.convert(widen(base), double), build.convert(exponent, double))
    return build.convert(build.convert(result, ir.F32Type.get()), build.element_of(base))


RULES: dict[str, Rule] = {
    "math.absf": rounded(hlo.abs),
    "math.absi": _of_integer(hlo.abs),
    "math.acos": rounded(chlo.acos),
    "math.acosh": rounded(chlo.acosh),
    "math.asin": rounded(_asin),
    "math.asinh": rounded(chlo.asinh),
    "math.atan": rounded(chlo.atan),
    "math.atan2": rounded(hlo.atan2),
    "math.atanh": rounded(chlo.atanh),
    "math.cbrt": rounded(hlo.cbrt),
    "math.ceil": rounded(hlo.ceil),
    "math.clampf": rounded(_clamp),
    "math.copysign": _copysign,
    "math.cos": rounded(hlo.cosine),
    "math.cosh": rounded(chlo.cosh),
    "math.ctlz": _of_integer(hlo.count_leading_zeros),
    "math.ctpop": _of_integer(_ones),
    "math.cttz": _of_integer(_trailing_zeros),
    "math.erf": rounded(chlo.erf),
    "math.erfc": rounded(chlo.erfc),
    "math.exp": rounded(hlo.exponential),
    "math.exp2": rounded(_scaled_exp2),
    "math.expm1": rounded(hlo.exponential_minus_one),
    "math.floor": rounded(hlo.floor),
    "math.fma": _fma,
    "math.fpowi": _fpowi,
    "math.ipowi": _of_integer(_integer_power),
    "math.isfinite": _test(hlo.is_finite),
    "math.isinf": _test(_is_infinite),
    "math.isnormal": _is_normal,
    "math.isnan": _test(is_nan),
    "math.log": rounded(hlo.log),
    "math.log10": rounded(_scaled_log(0.4342944819032518)),
    "math.log1p": rounded(hlo.log_plus_one),
    "math.log2": rounded(_scaled_log(1.4426950408889634)),
    "math.powf": rounded(hlo.power),
    "math.round": rounded(hlo.round_nearest_afz),
    "math.roundeven": rounded(hlo.round_nearest_even),
    "math.rsqrt": rounded(hlo.rsqrt),
    "math.sin": rounded(hlo.sine),
    "math.sincos": _sincos,
    "math.sinh": rounded(chlo.sinh),
    "math.sqrt": rounded(hlo.sqrt),
    "math.tan": rounded(hlo.tan),
    "math.tanh": rounded(hlo.tanh),
    "math.trunc": rounded(_truncated),
}
