"""Expressions over named unknowns as isl's piecewise quasi-affine functions and sets, exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import islpy as isl

from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.facts import leaves_of
from mosaic_grid.symbolic.nodes import (
    Absolute,
    Compare,
    Const,
    Extremum,
    Junction,
    Linear,
    Not,
    Param,
    Relation,
    Select,
    Truth,
    Wrap,
)
from mosaic_grid.symbolic.proofs.effort import UndecidedError
from mosaic_grid.symbolic.quotients import FloorDiv, Mod, TruncDiv, TruncRem
from mosaic_grid.symbolic.ranges import Range, type_range


class NotAffineError(ValueError):
    """An expression that isn't quasi-affine."""


class Space:
    """The unknowns are the dimensions of sets: of `domain`, those of their values that are possible where it is asked.

    `prior` are those that are possible at all, which is what it takes to say of all values of what is hidden.
    A wrap-around that can't happen in the domain costs nothing; one that can is taken apart exactly.
    """

    def __init__(self, context: isl.Context, unknowns: Iterable[Param]) -> None:
        self.context = context
        params = list(dict.fromkeys(unknowns))
        self.places = {name: place for place, name in enumerate(dict.fromkeys(p.name for p in params))}
        space = isl.Space.set_alloc(context, 0, len(self.places))
        self._local = isl.LocalSpace.from_space(space)
        self._functions: dict[Expr, isl.PwAff] = {}
        self.domain = isl.Set.universe(space)
        for p in params:
            self._possible(p)
        self.prior = self.domain

    def _possible(self, p: Param) -> None:
        """Leaves what the parameter's range and divisor allow."""
        place = self.places[p.name]
        self.domain = self.domain.lower_bound_val(isl.dim_type.set, place, self._value(p.range.lo))
        self.domain = self.domain.upper_bound_val(isl.dim_type.set, place, self._value(p.range.hi))
        if p.divisor > 1:
            rest = self.function(p).mod_val(self._value(p.divisor))
            self.domain = self.domain.intersect(rest.eq_set(self._constant(0)))

    def assume(self, facts: Iterable[Expr], truths: Iterable[Expr] = ()) -> None:
        """Leaves in the domain what makes these truth values 1; the first ones hold at all."""
        for truth in facts:
            self.domain = self.domain.intersect(self.where(truth))
        self.prior = self.domain
        for truth in truths:
            self.domain = self.domain.intersect(self.where(truth))

    def among(self, points: isl.Set, truth: Expr) -> isl.Set:
        """The points at which a truth value is 1."""
        every = truth.operands if isinstance(truth, Junction) and truth.every else (truth,)
        # what has few pieces first: it leaves fewer to meet those that have many
        for part in sorted(map(self.where, every), key=lambda part: int(part.n_basic_set())):
            points = points.intersect(part)
        return points

    def where(self, truth: Expr) -> isl.Set:
        """Where a truth value is 1, not confined to the domain."""
        match truth:
            case Const(value):
                everything = isl.Set.universe(self.domain.get_space())
                return everything if value else everything.complement()
            case Compare(relation, a, b):
                return self._related(relation, a, b)
            case Not(a):
                return self.where(a).complement()
            case Junction(every, operands):
                total, *others = [self.where(a) for a in operands]
                for other in others:
                    total = total.intersect(other) if every else total.union(other)
                return total
        return self.function(truth).non_zero_set()

    def _related(self, relation: Relation, a: Expr, b: Expr) -> isl.Set:
        left, right = self.function(a), self.function(b)
        tests: dict[Relation, Callable[[isl.PwAff], isl.Set]] = {
            **{"==": left.eq_set, "!=": left.ne_set, "<": left.lt_set},
            **{"<=": left.le_set, ">": left.gt_set, ">=": left.ge_set},
        }
        return tests[relation](right)

    def function(self, expr: Expr) -> isl.PwAff:
        """The function, defined for all integers; raises `NotAffineError`."""
        known = self._functions.get(expr)
        if known is None:
            known = self._functions[expr] = self._function(expr)
        return known

    def _function(self, expr: Expr) -> isl.PwAff:
        match expr:
            case Const(value):
                return self._constant(value)
            case Param(name):
                return isl.PwAff.from_aff(isl.Aff.var_on_domain(self._local, isl.dim_type.set, self.places[name]))
            case Linear(terms, constant):
                total = self._constant(constant)
                for atom, coefficient in terms:
                    total = total.add(self.function(atom).scale_val(self._value(coefficient)))
                return total
            case FloorDiv(a, Const(k)) if k > 0:
                return self.function(a).scale_down_val(self._value(k)).floor()
            case TruncDiv(a, Const(k)) if k > 0:
                return self.function(a).tdiv_q(self._constant(k))
            case Mod(a, Const(k)) if k > 0:
                return self.function(a).mod_val(self._value(k))
            case TruncRem(a, Const(k)) if k > 0:
                return self.function(a).tdiv_r(self._constant(k))
            case Extremum(greatest, operands):
                total, *others = [self.function(a) for a in operands]
                for other in others:
                    total = total.max(other) if greatest else total.min(other)
                return total
            case Absolute(a):
                signed = self.function(a)
                return signed.max(signed.neg())
            case Select(condition, then, other):
                chosen = self.where(condition)
                held = self.function(then).intersect_domain(chosen)
                return held.union_add(self.function(other).intersect_domain(chosen.complement()))
            case Truth():
                holds = self.where(expr)
                held = self._constant(1).intersect_domain(holds)
                return held.union_add(self._constant(0).intersect_domain(holds.complement()))
            case Wrap(inner, bits, signed):
                return self._wrapped(self.function(inner), bits, signed)
        raise NotAffineError(str(expr))

    def _wrapped(self, a: isl.PwAff, bits: int, signed: bool) -> isl.PwAff:
        limits = type_range(bits, signed)
        lowest = self._constant(limits.lo)
        leaves = a.lt_set(lowest).union(a.gt_set(self._constant(limits.hi)))
        if leaves.intersect(self.domain).is_empty():
            return a
        return a.sub(lowest).mod_val(self._value(1 << bits)).add(lowest)

    def extremes(self, expr: Expr, among: isl.Set) -> Range | None:
        """The least and the greatest value for some of the unknowns' values, None for none of them."""
        if among.is_empty():
            return None
        # not the function's own min_val, which fails where a divisor has made a fraction of it that is whole
        values = isl.Map.from_pw_aff(self.function(expr)).intersect_domain(among).range()
        return Range(least(values, 0), -least(values.neg(), 0))

    def _value(self, value: int) -> isl.Val:
        return isl.Val.read_from_str(self.context, str(value))

    def _constant(self, value: int) -> isl.PwAff:
        return isl.PwAff.from_aff(isl.Aff.zero_on_domain(self._local).set_constant_val(self._value(value)))


def unknowns_of(exprs: Iterable[Expr]) -> dict[Param, None]:
    """The parameters in the expressions, in order."""
    return dict.fromkeys(leaf for expr in exprs for leaf in leaves_of(expr) if isinstance(leaf, Param))


def least(points: isl.Set, place: int) -> int:
    """The least value of a coordinate in a set that isn't empty and is bounded below there.

    Piece by piece: for a set with an empty piece isl's own `dim_min_val` takes 0 to be a value. What isl finds is
    checked by questions it answers otherwise; `UndecidedError` if they differ.
    """
    pieces = (piece for piece in points.get_basic_sets() if not piece.is_empty())
    values = [isl.Set.from_basic_set(piece).dim_min_val(place) for piece in pieces]
    found = min(int(value.to_python()) for value in values)
    value, less = (isl.Val.read_from_str(points.get_ctx(), str(number)) for number in (found, found - 1))
    lower = points.upper_bound_val(isl.dim_type.set, place, less)
    if points.fix_val(isl.dim_type.set, place, value).is_empty() or not lower.is_empty():
        raise UndecidedError("isl contradicts itself about the least value of an unknown")
    return found


def without(points: isl.Set, places: Iterable[int]) -> isl.Set:
    """The points without these coordinates."""
    for place in sorted(places, reverse=True):
        points = points.project_out(isl.dim_type.set, place, 1)
    return points
