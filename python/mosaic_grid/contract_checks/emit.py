"""A contract as StableHLO, in integers that hold every part of it: what is computed is what it says."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid import symbolic as sym
from mosaic_grid.contract_checks.plan import Check
from mosaic_grid.cpu import build
from mosaic_grid.dataflow.tensors import Shape
from mosaic_grid.ir_types import Value
from mosaic_grid.symbolic.nodes import Absolute, Compare, Extremum, Junction, Linear, Not, Product, Select
from mosaic_grid.symbolic.quotients import FloorDiv, Mod, TruncDiv, TruncRem

_DIRECTIONS = {"==": "EQ", "!=": "NE", "<": "LT", "<=": "LE", ">": "GT", ">=": "GE"}


def kept(check: Check, arguments: Mapping[str, Value]) -> Value:
    """A predicate at the insertion point: whether the arguments, by name, keep the contract."""
    truth = _Emitter(arguments, check.shape, check.bits).truth(check.contract.condition)
    axes = range(len(check.shape))
    return build.reduce(truth, axes, build.true(), hlo.and_) if check.shape else truth


class _Emitter:
    def __init__(self, arguments: Mapping[str, Value], shape: Shape, bits: int) -> None:
        self._arguments = arguments
        self._shape = shape
        self._bits = bits
        self._element = ir.IntegerType.get_signless(bits)

    def truth(self, expr: sym.Expr) -> Value:
        """A truth value as a predicate."""
        truth: Value
        match expr:
            case Compare(relation, a, b):
                truth = build.compare(self.value(a), self.value(b), _DIRECTIONS[relation])
            case Not(a):
                truth = hlo.not_(self.truth(a))
            case Junction(every, operands):
                truth = functools.reduce(hlo.and_ if every else hlo.or_, map(self.truth, operands))
            case sym.Const(value):
                truth = build.constant(value, self._shape, build.i1_type())
            case _:
                truth = build.compare(self.value(expr), self._constant(0), "NE")
        return truth

    def value(self, expr: sym.Expr) -> Value:
        """An integer."""
        value: Value
        match expr:
            case sym.Const(number):
                value = self._constant(number)
            case sym.Total(body=body, shape=shape):
                each = _Emitter(self._arguments, shape, self._bits).value(body)
                value = self._everywhere(
                    build.reduce(each, range(len(shape)), build.constant(0, (), self._element), hlo.add)
                )
            case sym.Param(name):
                value = self._everywhere(self._arguments[name])
            case sym.Load(name, ()):
                value = build.convert(self._arguments[name], self._element)
            case sym.Load(name, index):
                place = [place.range.lo for place in index]
                value = self._everywhere(build.slice_(self._arguments[name], place, [1] * len(place)))
            case Linear(terms, constant):
                parts = [hlo.multiply(self.value(atom), self._constant(factor)) for atom, factor in terms]
                value = functools.reduce(hlo.add, parts, self._constant(constant))
            case Product(a, b):
                value = hlo.multiply(self.value(a), self.value(b))
            case Extremum(greatest, operands):
                value = functools.reduce(hlo.maximum if greatest else hlo.minimum, map(self.value, operands))
            case Absolute(a):
                value = hlo.abs(self.value(a))
            case Select(condition, then, other):
                value = build.select(self.truth(condition), self.value(then), self.value(other))
            case FloorDiv(a, b) | Mod(a, b) | TruncDiv(a, b) | TruncRem(a, b):
                value = self._division(type(expr), self.value(a), self.value(b))
            case _:
                value = build.convert(self.truth(expr), self._element)
        return value

    def _division(self, kind: type[sym.Expr], a: Value, b: Value) -> Value:
        """StableHLO rounds towards zero; down is one less where a remainder differs in sign from the divisor."""
        result: Value = hlo.divide(a, b) if kind in (FloorDiv, TruncDiv) else hlo.remainder(a, b)
        if kind in (TruncDiv, TruncRem):
            return result
        remainder, zero = hlo.remainder(a, b), self._constant(0)
        differs = hlo.xor(build.compare(remainder, zero, "LT"), build.compare(b, zero, "LT"))
        down = hlo.and_(build.compare(remainder, zero, "NE"), differs)
        lower: Value = hlo.subtract(result, self._constant(1)) if kind is FloorDiv else hlo.add(result, b)
        return build.select(down, lower, result)

    def _constant(self, value: int) -> Value:
        return build.constant(value, self._shape, self._element)

    def _everywhere(self, scalar: Value) -> Value:
        return build.splat(build.convert(build.reshape(scalar, ()), self._element), self._shape)
