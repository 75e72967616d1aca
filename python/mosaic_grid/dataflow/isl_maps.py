"""Expressions over grid indices as isl's piecewise quasi-affine functions, where they are such."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import islpy as isl

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.scalars import BOUND, GRID_INDEX
from mosaic_grid.grid import I32_MAX
from mosaic_grid.symbolic.nodes import (
    Absolute,
    Compare,
    Const,
    Expr,
    Extremum,
    Junction,
    Linear,
    Not,
    Param,
    Product,
    Select,
    Wrap,
)
from mosaic_grid.symbolic.quotients import FloorDiv, Mod, TruncDiv, TruncRem
from mosaic_grid.symbolic.ranges import type_range


class NotAffineError(ValueError):
    """An expression that isn't quasi-affine in the grid indices."""


class Functions:
    """Makes functions over the steps of a grid of these bounds; a dynamic bound is a parameter `n0`, `n1`, ...

    A sum or a cast that may leave its type of 32 bits or more does so only in grids of absurd sizes, and takes a window
    out of its array long before. Such a function is defined only where none does, and `unless` says so; an `exact` one
    is defined everywhere. `most` says of dynamic dimensions how many steps they have at most, where that is known.
    """

    def __init__(
        self,
        context: isl.Context,
        bounds: Sequence[int | None],
        exact: bool = False,
        most: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        names = tuple(f"{BOUND}{axis}" for axis, bound in enumerate(bounds) if bound is None)
        indices = [f"{GRID_INDEX}{axis}" for axis in range(len(bounds))]
        limits = [
            f"0 <= {index} < {f'{BOUND}{axis}' if bound is None else bound}"
            for axis, (index, bound) in enumerate(zip(indices, bounds, strict=True))
        ]
        limits += [f"{name} <= {most.get(int(name.removeprefix(BOUND)), I32_MAX)}" for name in names]
        steps = f"[{', '.join(names)}] -> {{ [{', '.join(indices)}] : {' and '.join(limits)} }}"
        self.steps = isl.Set.read_from_str(context, steps)
        self.unless: set[str] = set()
        self._exact = exact
        self._space = isl.LocalSpace.from_space(self.steps.get_space())
        self.places = {index: (isl.dim_type.set, axis) for axis, index in enumerate(indices)}
        for position, name in enumerate(names):
            axis = name.removeprefix(BOUND)
            # as the body and as an index map call it
            self.places[name] = self.places[f"num_programs({axis})"] = (isl.dim_type.param, position)

    def of(self, expr: Expr) -> isl.PwAff:
        """The function; raises `NotAffineError`."""
        known = set(self.unless)
        try:
            return self._of(expr)
        except NotAffineError:
            self.unless = known
            raise

    def is_affine(self, expr: Expr) -> bool:
        """Whether `expr` has a function."""
        known = set(self.unless)
        try:
            self._of(expr)
        except NotAffineError:
            return False
        finally:
            self.unless = known
        return True

    def _of(self, expr: Expr) -> isl.PwAff:
        match expr:
            case Const(value):
                return self._constant(value)
            case Param(name):
                if name not in self.places:
                    raise NotAffineError(str(expr))
                return isl.PwAff.from_aff(isl.Aff.var_on_domain(self._space, *self.places[name]))
            case Linear(terms, constant):
                total = self._constant(constant)
                for atom, coefficient in terms:
                    total = total.add(self._of(atom).mul(self._constant(coefficient)))
                return total
            case FloorDiv(a, Const(k)) if k > 0:
                return self._of(a).div(self._constant(k)).floor()
            case TruncDiv(a, Const(k)) if k > 0:
                return self._of(a).tdiv_q(self._constant(k))
            case Mod(a, Const(k)) if k > 0:
                return self._of(a).mod_val(self._value(k))
            case TruncRem(a, Const(k)) if k > 0:
                return self._of(a).tdiv_r(self._constant(k))
            case Extremum(greatest, operands):
                return self._fold([self._of(a) for a in operands], greatest)
            case Absolute(a):
                signed = self._of(a)
                return signed.max(signed.neg())
            case Select(condition, then, other):
                return self._of(condition).cond(self._of(then), self._of(other))
            case Compare(relation, a, b):
                return self._indicator(relation, self._of(a), self._of(b))
            case Not(a):
                return self._constant(1).sub(self._of(a))
            case Junction(every, operands):
                return self._fold([self._of(a) for a in operands], not every)
            case Wrap(inner, bits, signed, cast):
                return self._wrapped(self._of(inner), bits, signed, cast)
            case Product() | _:
                raise NotAffineError(str(expr))

    def _wrapped(self, a: isl.PwAff, bits: int, signed: bool, cast: bool) -> isl.PwAff:
        lowest = self._constant(type_range(bits, signed).lo)
        if self._exact or bits < 32:
            return a.sub(lowest).mod_val(self._value(1 << bits)).add(lowest)
        self.unless.add("cast in its index map loses bits" if cast else "sum in its index map wraps around")
        highest = self._constant(type_range(bits, signed).hi)
        return a.intersect_domain(a.ge_set(lowest).intersect(a.le_set(highest)))

    def _value(self, value: int) -> isl.Val:
        return isl.Val.read_from_str(self.steps.get_ctx(), str(value))

    def _constant(self, value: int) -> isl.PwAff:
        return isl.PwAff.from_aff(isl.Aff.zero_on_domain(self._space).set_constant_val(self._value(value)))

    def _fold(self, parts: list[isl.PwAff], greatest: bool) -> isl.PwAff:
        total = parts[0]
        for part in parts[1:]:
            total = total.max(part) if greatest else total.min(part)
        return total

    def _indicator(self, relation: sym.Relation, a: isl.PwAff, b: isl.PwAff) -> isl.PwAff:
        tests = {"==": a.eq_set, "!=": a.ne_set, "<": a.lt_set, "<=": a.le_set, ">": a.gt_set, ">=": a.ge_set}
        holds = tests[relation](b)
        defined = a.domain().intersect(b.domain())
        one, zero = self._constant(1), self._constant(0)
        return one.intersect_domain(holds).union_add(zero.intersect_domain(defined.subtract(holds)))
