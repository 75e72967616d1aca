"""`arith` on integers and predicates. Floats are in `floats.py`, changes of type in `conversions.py`.

Where MLIR leaves a result open, it is StableHLO's, which JAX promises everywhere: a shift by the width or more gives 0,
or copies of the sign; a number divided by 0 is all ones and leaves itself; the least number divided by -1 is itself.
An i1 is a number of one bit: as a signed one, true is -1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.lowering import Lowering, Rule, UnsupportedError
from mosaic_grid.cpu.types import unsigned
from mosaic_grid.ir_types import Value

Binary: TypeAlias = Callable[[Value, Value], Value]


def _signed(compute: Binary, of_bits: Binary | None = None) -> Rule:
    """A rule for signed integers; `of_bits` is the same for i1, which StableHLO takes for a predicate."""

    def rule(low: Lowering, op: ir.Operation) -> Value:
        left, right = low.operands(op)
        if not is_predicate(left):
            return compute(left, right)
        if of_bits is None:
            raise UnsupportedError("of predicates")
        return of_bits(left, right)

    return rule


def _unsigned(compute: Binary, of_bits: Binary | None = None) -> Rule:
    """A rule for integers without a sign."""
    return _signed(lambda left, right: on_unsigned(compute, left, right), of_bits)


def on_unsigned(compute: Binary, left: Value, right: Value) -> Value:
    """`compute` of the bits as numbers without a sign, an integer or a predicate."""
    element = build.element_of(left)
    result = compute(*(build.bitcast(value, unsigned(element)) for value in (left, right)))
    return result if is_predicate(result) else build.bitcast(result, element)


def is_predicate(value: Value) -> bool:
    """Whether the elements are i1."""
    return build.element_of(value) == build.i1_type()


def _floor_quotient(left: Value, right: Value) -> Value:
    return hlo.subtract(hlo.divide(left, right), _beyond(left, right, "NE"))


def _ceil_quotient(left: Value, right: Value) -> Value:
    return hlo.add(hlo.divide(left, right), _beyond(left, right, "EQ"))


def _beyond(left: Value, right: Value, signs: str) -> Value:
    """1 where there is a remainder, and the quotient was rounded past the wanted integer; else 0."""
    rest, zero = hlo.remainder(left, right), build.zeros_like(left)
    wrong = build.compare(build.compare(rest, zero, "LT"), build.compare(right, zero, "LT"), signs)
    return build.convert(hlo.and_(build.compare(rest, zero, "NE"), wrong), build.element_of(left))


def _unsigned_ceil_quotient(left: Value, right: Value) -> Value:
    more = build.compare(hlo.remainder(left, right), build.zeros_like(left), "NE")
    return hlo.add(hlo.divide(left, right), build.convert(more, build.element_of(left)))


def _only_left(left: Value, right: Value) -> Value:
    return hlo.and_(left, hlo.not_(right))


def _cmpi(low: Lowering, op: ir.Operation) -> Value:
    left, right = low.operands(op)
    sign, direction = _PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value]
    if is_predicate(left):  # StableHLO takes true for 1; as a signed integer it is -1
        left, right = (right, left) if sign == "s" else (left, right)
    elif sign == "u":
        return on_unsigned(lambda x, y: build.compare(x, y, direction), left, right)
    return build.compare(left, right, direction)


_PREDICATES = (("", "EQ"), ("", "NE"), ("s", "LT"), ("s", "LE"), ("s", "GT"), ("s", "GE"),
               ("u", "LT"), ("u", "LE"), ("u", "GT"), ("u", "GE"))  # fmt: skip
"""The predicates of `arith.cmpi` in the order of their numbers: eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge."""


def _select(low: Lowering, op: ir.Operation) -> Value:
    """The condition may be a scalar where the values are vectors."""
    if isinstance(op.results[0].type, ir.MemRefType):
        raise UnsupportedError("of two memrefs")
    return build.select(*low.operands(op))


def _product(sign: bool) -> Rule:
    """Both halves of a product of twice the width, the low one first."""

    def rule(low: Lowering, op: ir.Operation) -> Sequence[Value]:
        left, right = low.operands(op)
        element = build.element_of(left)
        width = ir.IntegerType(element).width
        if width not in (8, 16, 32):
            raise UnsupportedError(f"of integers of {width} bits")
        wide = ir.IntegerType.get_signless(2 * width) if sign else ir.IntegerType.get_unsigned(2 * width)
        narrow = element if sign else unsigned(element)
        whole = hlo.multiply(*(build.convert(build.bitcast(value, narrow), wide) for value in (left, right)))
        high = hlo.shift_right_logical(whole, build.constant(width, build.shape_of(left), wide))
        return [build.bitcast(build.convert(part, narrow), element) for part in (whole, high)]

    return rule


def _sum_with_carry(low: Lowering, op: ir.Operation) -> Sequence[Value]:
    left, right = low.operands(op)
    result = hlo.add(left, right)
    return [result, on_unsigned(lambda x, y: build.compare(x, y, "LT"), result, left)]


def _difference_with_borrow(low: Lowering, op: ir.Operation) -> Sequence[Value]:
    left, right = low.operands(op)
    return [hlo.subtract(left, right), on_unsigned(lambda x, y: build.compare(x, y, "LT"), left, right)]


RULES: dict[str, Rule] = {
    "arith.addi": _signed(hlo.add, hlo.xor),
    "arith.subi": _signed(hlo.subtract, hlo.xor),
    "arith.muli": _signed(hlo.multiply, hlo.and_),
    "arith.divsi": _signed(hlo.divide),
    "arith.remsi": _signed(hlo.remainder),
    "arith.floordivsi": _signed(_floor_quotient),
    "arith.ceildivsi": _signed(_ceil_quotient),
    "arith.divui": _unsigned(hlo.divide),
    "arith.remui": _unsigned(hlo.remainder),
    "arith.ceildivui": _unsigned(_unsigned_ceil_quotient),
    "arith.andi": _signed(hlo.and_, hlo.and_),
    "arith.ori": _signed(hlo.or_, hlo.or_),
    "arith.xori": _signed(hlo.xor, hlo.xor),
    "arith.shli": _signed(hlo.shift_left, _only_left),
    "arith.shrui": _signed(hlo.shift_right_logical, _only_left),
    "arith.shrsi": _signed(hlo.shift_right_arithmetic, lambda left, _: left),
    "arith.maxsi": _signed(hlo.maximum, hlo.and_),
    "arith.minsi": _signed(hlo.minimum, hlo.or_),
    "arith.maxui": _unsigned(hlo.maximum, hlo.or_),
    "arith.minui": _unsigned(hlo.minimum, hlo.and_),
    "arith.cmpi": _cmpi,
    "arith.select": _select,
    "arith.addui_extended": _sum_with_carry,
    "arith.subui_extended": _difference_with_borrow,
    "arith.mulsi_extended": _product(sign=True),
    "arith.mului_extended": _product(sign=False),
}
