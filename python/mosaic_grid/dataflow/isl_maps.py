"""Expressions over grid indices as isl's piecewise quasi-affine functions, where they are such."""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.scalars import GRID_INDEX
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


class NotAffineError(ValueError):
    """An expression that isn't quasi-affine in the grid indices."""


class Functions:
    """Makes functions over the steps of a grid of these bounds; a dynamic bound is a parameter `n0`, `n1`, ..."""

    def __init__(self, context: isl.Context, bounds: Sequence[int | None]) -> None:
        names = [f"n{axis}" for axis, bound in enumerate(bounds) if bound is None]
        indices = [f"{GRID_INDEX}{axis}" for axis in range(len(bounds))]
        limits = " and ".join(
            f"0 <= {index} < {f'n{axis}' if bound is None else bound}"
            for axis, (index, bound) in enumerate(zip(indices, bounds, strict=True))
        )
        self.steps = isl.Set.read_from_str(context, f"[{', '.join(names)}] -> {{ [{', '.join(indices)}] : {limits} }}")
        self.wraps = False
        self._space = isl.LocalSpace.from_space(self.steps.get_space())
        self._axes = {index: axis for axis, index in enumerate(indices)}

    def of(self, expr: Expr) -> isl.PwAff:
        """The function; raises `NotAffineError`. `wraps` tells whether any was taken not to wrap though it may."""
        match expr:
            case Const(value):
                return self._constant(value)
            case Param(name):
                if name not in self._axes:
                    raise NotAffineError(str(expr))
                return isl.PwAff.from_aff(isl.Aff.var_on_domain(self._space, isl.dim_type.set, self._axes[name]))
            case Linear(terms, constant):
                total = self._constant(constant)
                for atom, coefficient in terms:
                    total = total.add(self.of(atom).mul(self._constant(coefficient)))
                return total
            case FloorDiv(a, Const(k)) if k > 0:
                return self.of(a).div(self._constant(k)).floor()
            case TruncDiv(a, Const(k)) if k > 0:
                return self.of(a).tdiv_q(self._constant(k))
            case Mod(a, Const(k)) if k > 0:
                return self.of(a).mod_val(k)
            case TruncRem(a, Const(k)) if k > 0:
                return self.of(a).tdiv_r(self._constant(k))
            case Extremum(greatest, operands):
                return self._fold([self.of(a) for a in operands], greatest)
            case Absolute(a):
                signed = self.of(a)
                return signed.max(signed.neg())
            case Select(condition, then, other):
                return self.of(condition).cond(self.of(then), self.of(other))
            case Compare(relation, a, b):
                return self._indicator(relation, self.of(a), self.of(b))
            case Not(a):
                return self._constant(1).sub(self.of(a))
            case Junction(every, operands):
                return self._fold([self.of(a) for a in operands], not every)
            case Wrap(inner):
                unwrapped = self.of(inner)
                self.wraps = True
                return unwrapped
            case Product() | _:
                raise NotAffineError(str(expr))

    def _constant(self, value: int) -> isl.PwAff:
        aff = isl.Aff.zero_on_domain(self._space).set_constant_val(isl.Val.int_from_si(self.steps.get_ctx(), value))
        return isl.PwAff.from_aff(aff)

    def _fold(self, parts: list[isl.PwAff], greatest: bool) -> isl.PwAff:
        total = parts[0]
        for part in parts[1:]:
            total = total.max(part) if greatest else total.min(part)
        return total

    def _indicator(self, relation: sym.Relation, a: isl.PwAff, b: isl.PwAff) -> isl.PwAff:
        tests = {"==": a.eq_set, "!=": a.ne_set, "<": a.lt_set, "<=": a.le_set, ">": a.gt_set, ">=": a.ge_set}
        holds = tests[relation](b)
        universe = isl.Set.universe(self.steps.get_space())
        one, zero = self._constant(1), self._constant(0)
        return one.intersect_domain(holds).union_add(zero.intersect_domain(universe.subtract(holds)))
