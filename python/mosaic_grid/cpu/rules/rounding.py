"""Conversions of `tpu` that name a rounding, and those that round at random."""

from __future__ import annotations

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.bits import width_of
from mosaic_grid.cpu.lowering import Lowering, Rule, UnsupportedError
from mosaic_grid.cpu.rules import conversions
from mosaic_grid.cpu.rules.attributes import integer, keyword
from mosaic_grid.cpu.types import lowered, unsigned
from mosaic_grid.cpu.wide import widen
from mosaic_grid.ir_types import Value


def _to_nearest(name: str) -> Rule:
    """As the operation `name` of `arith`, which rounds to the nearest, of two the even one."""

    def rule(low: Lowering, op: ir.Operation) -> Value:
        if keyword(op, "rounding_mode") != "to_nearest_even":
            raise UnsupportedError(f"the rounding mode {keyword(op, 'rounding_mode')}")
        return _as_arith(name, low, op)

    return rule


def _as_arith(name: str, low: Lowering, op: ir.Operation) -> Value:
    result = conversions.RULES[name](low, op)
    assert isinstance(result, ir.Value)
    return result


def _extf(low: Lowering, op: ir.Operation) -> Value:
    return _as_arith("arith.extf", low, op)


def _truncf(low: Lowering, op: ir.Operation) -> Value:
    """To the nearest, of two the even one; or from f32 to bf16 by leaving bits out, which is towards zero."""
    value, element = low.value(op.operands[0]), lowered(op.results[0].type).element_type
    if keyword(op, "rounding_mode") == "to_nearest_even":
        return _as_arith("arith.truncf", low, op)
    if build.element_of(value) != ir.F32Type.get() or element != ir.BF16Type.get():
        raise UnsupportedError(f"the rounding mode {keyword(op, 'rounding_mode')} to {element}")
    bits = build.bitcast(value, build.i32_type())
    high = build.constant(-(2**16), build.shape_of(value), build.i32_type())
    return build.convert(_unless_nan(value, build.bitcast(hlo.and_(bits, high), ir.F32Type.get())), element)


def _to_integer(signed: bool) -> Rule:
    """Beyond the range it is the nearest integer there is; NaN is 0."""

    def rule(low: Lowering, op: ir.Operation) -> Value:
        value, element = widen(low.value(op.operands[0])), lowered(op.results[0].type).element_type
        if keyword(op, "rounding_mode") == "to_nearest_even":
            value = hlo.round_nearest_even(value)
        return build.bitcast(build.convert(value, element if signed else unsigned(element)), element)

    return rule


def _reduce_precision(low: Lowering, op: ir.Operation) -> Value:
    return hlo.reduce_precision(low.value(op.operands[0]), integer(op, "exponent_bits"), integer(op, "mantissa_bits"))


def _stochastic_convert(low: Lowering, op: ir.Operation) -> Value:
    value, random = low.operands(op)
    return _rounded_at_random(value, random, lowered(op.results[0].type).element_type)


def _stochastic_convert_elementwise(low: Lowering, op: ir.Operation) -> Value:
    """The number is in the low bits of a 32-bit word."""
    value, random = low.operands(op)
    target = ir.TypeAttr(op.attributes["dst_type"]).value
    rounded = _rounded_at_random(value, random, target)
    bits = build.bitcast(rounded, ir.IntegerType.get_unsigned(width_of(target)))
    return build.bitcast(build.convert(bits, unsigned(build.i32_type())), build.i32_type())


def _rounded_at_random(value: Value, random: Value, target: ir.Type) -> Value:
    """f32 to one of the two numbers of bf16 next to it: away from zero as often as it is near to that one.

    The low 16 random bits are added to those that are left out. Which bits the TPU takes isn't documented.
    """
    if target != ir.BF16Type.get():
        raise UnsupportedError(f"random rounding to {target}")
    shape, word = build.shape_of(value), build.i32_type()
    low_bits = build.constant(2**16 - 1, shape, word)
    sum_ = hlo.add(build.bitcast(value, word), hlo.and_(random, low_bits))
    kept = build.bitcast(hlo.and_(sum_, hlo.not_(low_bits)), ir.F32Type.get())
    return build.convert(build.select(hlo.is_finite(value), kept, value), target)


def _unless_nan(value: Value, otherwise: Value) -> Value:
    return build.select(build.compare(value, value, "NE"), value, otherwise)


RULES: dict[str, Rule] = {
    "tpu.extf": _extf,
    "tpu.fptosi": _to_integer(signed=True),
    "tpu.fptoui": _to_integer(signed=False),
    "tpu.reduce_precision": _reduce_precision,
    "tpu.sitofp": _to_nearest("arith.sitofp"),
    "tpu.stochastic_convert": _stochastic_convert,
    "tpu.stochastic_convert_elementwise": _stochastic_convert_elementwise,
    "tpu.truncf": _truncf,
    "tpu.uitofp": _to_nearest("arith.uitofp"),
}
