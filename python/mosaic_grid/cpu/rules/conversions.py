"""`arith` from one type to another.

A float becomes an integer towards zero; beyond the integer's range it is the nearest integer there is, and NaN is 0. An
integer becomes a narrow float by way of f32, rounded twice: so do libtpu and JAX's own lowering for the TPU.
"""

from __future__ import annotations

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.bits import width_of
from mosaic_grid.cpu.lowering import Lowering, Rule, UnsupportedError
from mosaic_grid.cpu.rules.arith import is_predicate
from mosaic_grid.cpu.types import lowered, unsigned
from mosaic_grid.cpu.wide import is_narrow, widen
from mosaic_grid.ir_types import Value


def _element(op: ir.Operation) -> ir.Type:
    """The element type of the result."""
    return lowered(op.results[0].type).element_type


def _extsi(low: Lowering, op: ir.Operation) -> Value:
    return _sign_extended(low.value(op.operands[0]), _element(op))


def _extui(low: Lowering, op: ir.Operation) -> Value:
    return _zero_extended(low.value(op.operands[0]), _element(op))


def _trunci(low: Lowering, op: ir.Operation) -> Value:
    return _truncated(low.value(op.operands[0]), _element(op))


def _index_cast(low: Lowering, op: ir.Operation) -> Value:
    """An index has 32 bits here, so that casting one to i64 and back keeps only these."""
    return _resized(low, op, sign=True)


def _index_castui(low: Lowering, op: ir.Operation) -> Value:
    return _resized(low, op, sign=False)


def _resized(low: Lowering, op: ir.Operation, sign: bool) -> Value:
    value, element = low.value(op.operands[0]), _element(op)
    if width_of(element) < width_of(build.element_of(value)):
        return _truncated(value, element)
    return _sign_extended(value, element) if sign else _zero_extended(value, element)


def _sign_extended(value: Value, element: ir.Type) -> Value:
    wide = build.convert(value, element)
    return hlo.negate(wide) if is_predicate(value) and wide is not value else wide


def _zero_extended(value: Value, element: ir.Type) -> Value:
    if is_predicate(value) or build.element_of(value) == element:
        return build.convert(value, element)
    plain = build.bitcast(value, unsigned(build.element_of(value)))
    return build.bitcast(build.convert(plain, unsigned(element)), element)


def _truncated(value: Value, element: ir.Type) -> Value:
    """The low bits. StableHLO's conversion to i1 asks for any bit that isn't 0."""
    if element == build.i1_type() and not is_predicate(value):
        value = hlo.and_(value, build.constant(1, build.shape_of(value), build.element_of(value)))
    return build.convert(value, element)


def _extf(low: Lowering, op: ir.Operation) -> Value:
    return _to_float(low.value(op.operands[0]), _element(op))


def _truncf(low: Lowering, op: ir.Operation) -> Value:
    """To the nearest, of two the even one. Beyond the range it is what the type has for it: infinity, or NaN."""
    if "roundingmode" in op.attributes and str(op.attributes["roundingmode"]) != "0 : i32":
        raise UnsupportedError("with a rounding mode other than to the nearest even number")
    return _to_float(low.value(op.operands[0]), _element(op))


def _to_float(value: Value, element: ir.Type) -> Value:
    """Between two narrow floats by way of f32, which holds each of their numbers."""
    return build.convert(widen(value), element)


def _sitofp(low: Lowering, op: ir.Operation) -> Value:
    value = low.value(op.operands[0])
    return _from_integer(_sign_extended(value, build.i32_type()) if is_predicate(value) else value, _element(op))


def _uitofp(low: Lowering, op: ir.Operation) -> Value:
    value = low.value(op.operands[0])
    if not is_predicate(value):
        value = build.bitcast(value, unsigned(build.element_of(value)))
    return _from_integer(value, _element(op))


def _from_integer(value: Value, element: ir.Type) -> Value:
    return build.convert(build.convert(value, ir.F32Type.get()) if is_narrow(element) else value, element)


def _fptosi(low: Lowering, op: ir.Operation) -> Value:
    return build.convert(widen(low.value(op.operands[0])), _integer(op))


def _fptoui(low: Lowering, op: ir.Operation) -> Value:
    element = _integer(op)
    return build.bitcast(build.convert(widen(low.value(op.operands[0])), unsigned(element)), element)


def _integer(op: ir.Operation) -> ir.Type:
    element = _element(op)
    if element == build.i1_type():
        raise UnsupportedError("to a predicate")
    return element


def _bitcast(low: Lowering, op: ir.Operation) -> Value:
    return build.bitcast(low.value(op.operands[0]), _element(op))


RULES: dict[str, Rule] = {
    "arith.extsi": _extsi,
    "arith.extui": _extui,
    "arith.trunci": _trunci,
    "arith.index_cast": _index_cast,
    "arith.index_castui": _index_castui,
    "arith.extf": _extf,
    "arith.truncf": _truncf,
    "arith.convertf": _truncf,
    "arith.sitofp": _sitofp,
    "arith.uitofp": _uitofp,
    "arith.fptosi": _fptosi,
    "arith.fptoui": _fptoui,
    "arith.bitcast": _bitcast,
}
