"""StableHLO's elementwise operations on integers, as rules from expressions to an expression.

The meaning is that of the StableHLO specification. What it leaves to the implementation (division by 0, the lowest
integer divided by -1, a shift by more than the width) has no rule: `None`, anything is possible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.tensors import IntType, int_type

Rule = Callable[[IntType, Sequence[sym.Expr]], sym.Expr | None]

_RELATIONS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}


def rule_of(op: ir.Operation) -> Rule | None:
    """The rule of an operation, if it is an elementwise one that has any."""
    if op.name == "stablehlo.compare":
        return _compare_rule(op)
    return _RULES.get(op.name)


def _fitted(kind: IntType, exact: sym.Expr) -> sym.Expr:
    """An exact result as the machine holds it: modulo 2**bits."""
    return sym.wrap(exact, kind.bits, kind.signed)


def _add(kind: IntType, args: Sequence[sym.Expr]) -> sym.Expr:
    # on i1 the sum is the disjunction
    return sym.disjunction(*args) if kind.is_bool else _fitted(kind, sym.add(*args))


def _subtract(kind: IntType, args: Sequence[sym.Expr]) -> sym.Expr | None:
    return None if kind.is_bool else _fitted(kind, sym.sub(*args))


def _multiply(kind: IntType, args: Sequence[sym.Expr]) -> sym.Expr:
    # on i1 the product is the conjunction
    return sym.conjunction(*args) if kind.is_bool else _fitted(kind, sym.mul(*args))


def _negate(kind: IntType, args: Sequence[sym.Expr]) -> sym.Expr | None:
    return None if kind.is_bool else _fitted(kind, sym.neg(*args))


def _abs(kind: IntType, args: Sequence[sym.Expr]) -> sym.Expr:
    # |lowest| = highest + 1 wraps to lowest
    return _fitted(kind, sym.absolute(*args))


def _sign(kind: IntType, args: Sequence[sym.Expr]) -> sym.Expr:
    return sym.sign(*args)


def _minimum(kind: IntType, args: Sequence[sym.Expr]) -> sym.Expr:
    return sym.conjunction(*args) if kind.is_bool else sym.minimum(*args)


def _maximum(kind: IntType, args: Sequence[sym.Expr]) -> sym.Expr:
    return sym.disjunction(*args) if kind.is_bool else sym.maximum(*args)


def _clamp(kind: IntType, args: Sequence[sym.Expr]) -> sym.Expr:
    low, a, high = args
    return sym.clamp(low, a, high)


def _divide(kind: IntType, args: Sequence[sym.Expr]) -> sym.Expr | None:
    a, b = args
    if not _is_defined_division(kind, a, b):
        return None
    return sym.truncdiv(a, b)


def _remainder(kind: IntType, args: Sequence[sym.Expr]) -> sym.Expr | None:
    a, b = args
    return sym.truncrem(a, b) if _is_defined_division(kind, a, b) else None


def _is_defined_division(kind: IntType, a: sym.Expr, b: sym.Expr) -> bool:
    """Whether the divisor is never 0 and the quotient always fits its type."""
    divisors, dividends = sym.range_of(b), sym.range_of(a)
    overflows = kind.signed and kind.range.lo in dividends and -1 in divisors
    return 0 not in divisors and not overflows and not kind.is_bool


def _select(kind: IntType, args: Sequence[sym.Expr]) -> sym.Expr:
    return sym.select(*args)


def _convert(kind: IntType, args: Sequence[sym.Expr]) -> sym.Expr:
    (a,) = args
    if kind.is_bool:
        return sym.comparison("!=", a, sym.constant(0))
    return sym.wrap(a, kind.bits, kind.signed, cast=True)


def _and(kind: IntType, args: Sequence[sym.Expr]) -> sym.Expr | None:
    if kind.is_bool:
        return sym.conjunction(*args)
    return _of_constants(kind, args, int.__and__) or _masked(kind, *args) or _masked(kind, *reversed(args))


def _masked(kind: IntType, a: sym.Expr, mask: sym.Expr) -> sym.Expr | None:
    """`a & mask` for a mask of low or of high bits."""
    bits = sym.constant_of(mask)
    if bits is None:
        return None
    bits %= 1 << kind.bits
    low = (1 << kind.bits) - bits
    if bits & (bits + 1) == 0 and sym.Range(0, bits).within(kind.range):
        # a & (2**k - 1) = a mod 2**k, in two's complement too
        return sym.mod(a, sym.constant(bits + 1))
    if low & (low - 1) == 0:
        # a & -(2**k) = 2**k * (a // 2**k)
        return sym.mul(sym.constant(low), sym.floordiv(a, sym.constant(low)))
    return None


def _or(kind: IntType, args: Sequence[sym.Expr]) -> sym.Expr | None:
    return sym.disjunction(*args) if kind.is_bool else _of_constants(kind, args, int.__or__)


def _xor(kind: IntType, args: Sequence[sym.Expr]) -> sym.Expr | None:
    return sym.comparison("!=", *args) if kind.is_bool else _of_constants(kind, args, int.__xor__)


def _of_constants(kind: IntType, args: Sequence[sym.Expr], meaning: Callable[[int, int], int]) -> sym.Expr | None:
    a, b = map(sym.constant_of, args)
    return None if a is None or b is None else _fitted(kind, sym.constant(meaning(a, b)))


def _not(kind: IntType, args: Sequence[sym.Expr]) -> sym.Expr:
    if kind.is_bool:
        return sym.negation(*args)
    # ~a = -1 - a, modulo 2**bits
    return sym.sub(sym.constant(kind.range.hi + kind.range.lo), *args)


def _shift_left(kind: IntType, args: Sequence[sym.Expr]) -> sym.Expr | None:
    a, factor = args[0], _power(kind, args[1])
    # a << k = a * 2**k
    return None if factor is None else _fitted(kind, sym.mul(a, factor))


def _shift_right_arithmetic(kind: IntType, args: Sequence[sym.Expr]) -> sym.Expr | None:
    a, factor = args[0], _power(kind, args[1])
    if factor is None or not sym.range_of(a).within(sym.type_range(kind.bits, True)):
        return None
    # a >> k = a // 2**k, rounded down for negative a too
    return sym.floordiv(a, factor)


def _shift_right_logical(kind: IntType, args: Sequence[sym.Expr]) -> sym.Expr | None:
    a, factor = args[0], _power(kind, args[1])
    return None if factor is None or sym.range_of(a).lo < 0 else sym.floordiv(a, factor)


def _power(kind: IntType, amount: sym.Expr) -> sym.Expr | None:
    """`2**amount` for a constant amount below the width."""
    k = sym.constant_of(amount)
    return None if kind.is_bool or k is None or not 0 <= k < kind.bits else sym.constant(1 << k)


def _compare_rule(op: ir.Operation) -> Rule | None:
    operand = int_type(op.operands[0].type)
    if operand is None:
        return None
    if "compare_type" in op.attributes:
        how = stablehlo.ComparisonTypeAttr(op.attributes["compare_type"]).value
        if how != ("SIGNED" if operand.signed else "UNSIGNED"):
            return None
    direction = stablehlo.ComparisonDirectionAttr(op.attributes["comparison_direction"]).value
    relation = cast(sym.Relation, _RELATIONS[direction])
    return lambda _, args: sym.comparison(relation, *args)


_RULES: dict[str, Rule] = {
    "stablehlo.abs": _abs,
    "stablehlo.add": _add,
    "stablehlo.and": _and,
    "stablehlo.clamp": _clamp,
    "stablehlo.convert": _convert,
    "stablehlo.divide": _divide,
    "stablehlo.maximum": _maximum,
    "stablehlo.minimum": _minimum,
    "stablehlo.multiply": _multiply,
    "stablehlo.negate": _negate,
    "stablehlo.not": _not,
    "stablehlo.or": _or,
    "stablehlo.remainder": _remainder,
    "stablehlo.select": _select,
    "stablehlo.shift_left": _shift_left,
    "stablehlo.shift_right_arithmetic": _shift_right_arithmetic,
    "stablehlo.shift_right_logical": _shift_right_logical,
    "stablehlo.sign": _sign,
    "stablehlo.subtract": _subtract,
    "stablehlo.xor": _xor,
}
