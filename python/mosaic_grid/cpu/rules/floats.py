"""`arith` on floats. Narrow ones are computed in f32 and rounded after each operation, see `wide.py`."""

from __future__ import annotations

from collections.abc import Callable

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.lowering import Lowering, Rule
from mosaic_grid.cpu.wide import widen, widened
from mosaic_grid.ir_types import Value


def rounded(compute: Callable[..., Value]) -> Rule:
    """A rule for an operation on floats of one type, whose result is rounded to that type."""
    return lambda low, op: widened(compute, *low.operands(op))


def is_nan(value: Value) -> Value:
    """Whether each element is no number."""
    return build.compare(value, value, "NE")


def ignoring_nan(compute: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """`compute`, except that of a number and a NaN the number is taken."""

    def result(left: Value, right: Value) -> Value:
        return build.select(is_nan(left), right, build.select(is_nan(right), left, compute(left, right)))

    return result


def _cmpf(low: Lowering, op: ir.Operation) -> Value:
    left, right = (widen(value) for value in low.operands(op))
    return _PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value](left, right)


def _ordered(direction: str) -> Callable[[Value, Value], Value]:
    """A comparison that doesn't hold where one side is NaN."""
    return lambda left, right: build.compare(left, right, direction)


def _unless(direction: str) -> Callable[[Value, Value], Value]:
    """The opposite of a comparison, which holds where one side is NaN."""
    return lambda left, right: hlo.not_(build.compare(left, right, direction))


def _is_unordered(left: Value, right: Value) -> Value:
    return hlo.or_(is_nan(left), is_nan(right))


def _always(answer: bool) -> Callable[[Value, Value], Value]:
    return lambda left, right: build.constant(answer, build.shape_of(left), build.i1_type())


_not_equal = _ordered("NE")  # the one comparison of StableHLO that NaN fulfils

_PREDICATES: tuple[Callable[[Value, Value], Value], ...] = (
    _always(False),
    _ordered("EQ"),
    _ordered("GT"),
    _ordered("GE"),
    _ordered("LT"),
    _ordered("LE"),
    _not_equal,
    lambda left, right: hlo.not_(_is_unordered(left, right)),
    lambda left, right: hlo.or_(_is_unordered(left, right), build.compare(left, right, "EQ")),
    _unless("LE"),
    _unless("LT"),
    _unless("GE"),
    _unless("GT"),
    _not_equal,
    _is_unordered,
    _always(True),
)
"""The predicates of `arith.cmpf` in the order of their numbers: false, oeq, ogt, oge, olt, ole, one, ord, ueq, ugt,
uge, ult, ule, une, uno, true.

`one` is taken for `une`, against MLIR's definition. JAX writes `x != y` as `one`, and tells NaN by `x != x`; libtpu
compiles it to `vcmp.ne`, which holds for NaN. So do JAX's interpreters.
"""

RULES: dict[str, Rule] = {
    "arith.addf": rounded(hlo.add),
    "arith.subf": rounded(hlo.subtract),
    "arith.mulf": rounded(hlo.multiply),
    "arith.divf": rounded(hlo.divide),
    "arith.remf": rounded(hlo.remainder),
    "arith.negf": rounded(hlo.negate),
    "arith.maximumf": rounded(hlo.maximum),
    "arith.minimumf": rounded(hlo.minimum),
    "arith.maxnumf": rounded(ignoring_nan(hlo.maximum)),
    "arith.minnumf": rounded(ignoring_nan(hlo.minimum)),
    "arith.maximumnumf": rounded(ignoring_nan(hlo.maximum)),
    "arith.minimumnumf": rounded(ignoring_nan(hlo.minimum)),
    "arith.cmpf": _cmpf,
}
