"""What is known of sums over all elements of arrays: what holds of each element, added up.

From `a*x + b*y + c <= 0` at every place follows `a*sum(x) + b*sum(y) + count*c <= 0`, and the same of the places that
are left when some, of which more is known, are taken out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from mosaic_grid.symbolic.arith import add, constant, linear_parts, load, mul, neg, sub
from mosaic_grid.symbolic.choice import comparison, conjunction, disjunction, negation
from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.facts import leaves_of
from mosaic_grid.symbolic.nodes import Absolute, Compare, Const, Extremum, Junction, Load, Param, Select, Total
from mosaic_grid.symbolic.quotients import FloorDiv
from mosaic_grid.symbolic.ranges import Range
from mosaic_grid.symbolic.substitute import substitute
from mosaic_grid.symbolic.totals import inputs_of, total, totals_of

# how many elements of one array are taken out of its sum, and how many sums a question may come to speak of
_TAKEN_OUT, _MOST = 3, 24

Place = tuple[Expr, ...]
Placed = Callable[[Expr, Place], Expr]
"""A formula of the elements at a place, by the unknowns that they are there."""


class Sums:
    """The sums that are `asked` about where `contracts` hold, and elements are read at the places `reads` of arrays."""

    def __init__(self, asked: Iterable[Total], contracts: Sequence[Expr], reads: Mapping[str, Sequence[Place]]) -> None:
        self._asked = {whole.name: whole for whole in asked}
        self._contracts = contracts
        self._reads = reads
        self._known = dict(self._asked)
        self._inequalities = [d for contract in contracts for d in _inequalities(contract) if _arrays_in(d)]
        self._elements = _elements(self._inequalities)
        waiting = list(self._known.values())
        while waiting:
            whole = waiting.pop()
            self._inequalities += [*self._of_range(whole.body), *_of_operation(whole.body)]
            for inequality in _of_operation(whole.body):
                others = [each for each in totals_of(total(inequality, whole.shape)) if each.name not in self._known]
                if len(self._known) + len(others) <= _MOST:
                    self._known.update((other.name, other) for other in others)
                    waiting += others

    def _of_range(self, body: Expr) -> tuple[Expr, Expr]:
        def narrowed(part: Expr) -> Expr | None:
            if not isinstance(part, Load) or part.index or part.name not in self._elements:
                return None
            known = self._elements[part.name]
            lo, hi = max(part.values.lo, known.lo), min(part.values.hi, known.hi)
            return load(part.name, (), Range(lo, hi)) if lo <= hi else None

        values = substitute(body, narrowed).range
        return sub(body, constant(values.hi)), sub(constant(values.lo), body)

    def facts(self, placed: Placed) -> Iterator[Expr]:
        """What holds of the sums."""
        shapes = {name: whole.shape for whole in self._known.values() for name in _arrays_in(whole.body)}
        for inequality in dict.fromkeys(self._inequalities):
            arrays = sorted(_arrays_in(inequality))
            shape = shapes.get(arrays[0]) if arrays else None
            if shape is None or any(shapes.get(name) != shape for name in arrays):
                continue
            whole = total(inequality, shape)
            if any(each.name not in self._known for each in totals_of(whole)):
                continue
            yield comparison("<=", whole, constant(0))
            for some in _sets_of(self._reads.get(arrays[0], ()), shape) if len(arrays) == 1 else ():
                left = sub(whole, add(constant(0), *(placed(inequality, place) for place in some)))
                yield disjunction(negation(_apart(some, shape)), comparison("<=", left, constant(0)))

    def hidden(self, arrays: Iterable[str]) -> frozenset[str]:
        """The names of sums, and of what contracts relate to them, whose values may not all occur together.

        `arrays` are those that are inputs, with any contents that the contracts allow. What is between two bounds at
        every place has a sum of any number between the bounds' sums.
        """
        hidden = set(self._known).difference(self._asked)
        inputs = set(arrays)
        for name in {name for whole in self._asked.values() for name in _arrays_in(whole.body)}:
            about = [whole for whole in self._asked.values() if name in _arrays_in(whole.body)]
            mine = [c for c in self._contracts if name in {leaf.name for leaf in inputs_of(c)}]
            free = name in inputs and len(about) == 1 and len(self._reads.get(name, ())) <= _TAKEN_OUT
            if free and _is_dense(about[0].body) and all(_is_between(c, name, about[0].body) for c in mine):
                continue
            hidden.update(whole.name for whole in about)
            hidden.update(leaf.name for c in mine for leaf in (*inputs_of(c), *totals_of(c)))
            hidden.add(name)
        return frozenset(hidden)


def _arrays_in(expr: Expr) -> set[str]:
    """The arrays of whose elements at a place it speaks."""
    return {leaf.name for leaf in leaves_of(expr) if isinstance(leaf, Load) and not leaf.index}


def _inequalities(contract: Expr) -> Iterator[Expr]:
    """What is at most 0 wherever a contract is kept."""
    for part in _conjuncts(contract):
        match part:
            case Compare("<=", a, b):
                yield sub(a, b)
            case Compare("<", a, b):
                yield add(sub(a, b), constant(1))
            case Compare(">=", a, b):
                yield sub(b, a)
            case Compare(">", a, b):
                yield add(sub(b, a), constant(1))
            case Compare("==", a, b):
                yield from (sub(a, b), sub(b, a))


def _conjuncts(truth: Expr) -> Iterator[Expr]:
    if isinstance(truth, Junction) and truth.every:
        for part in truth.operands:
            yield from _conjuncts(part)
    else:
        yield truth


def _elements(inequalities: Iterable[Expr]) -> dict[str, Range]:
    """The elements of arrays by the inequalities that bound one by a number."""
    known: dict[str, Range] = {}
    for inequality in inequalities:
        terms, offset = linear_parts(inequality)
        match terms:
            case ((Load(name, (), values), (1 | -1) as factor),):
                old = known.get(name, values)
                lo, hi = (old.lo, min(old.hi, -offset)) if factor == 1 else (max(old.lo, offset), old.hi)
                if lo <= hi:
                    known[name] = Range(lo, hi)
    return known


def _of_operation(body: Expr) -> Iterator[Expr]:
    """What is at most 0 of an operation and its operands, whatever these are."""
    match body:
        case FloorDiv(a, Const(k)) if k > 0:
            # k*(a // k) <= a <= k*(a // k) + k - 1
            yield sub(mul(constant(k), body), a)
            yield sub(a, add(mul(constant(k), body), constant(k - 1)))
        case Extremum(greatest, operands):
            yield from (sub(a, body) if greatest else sub(body, a) for a in operands)
            if len(operands) == 2:
                # max(a, b) + min(a, b) = a + b, and the other one is at least its least value
                a, b = operands
                least, most = min(a.range.lo, b.range.lo), max(a.range.hi, b.range.hi)
                both = add(a, b)
                yield sub(body, sub(both, constant(least))) if greatest else sub(sub(both, constant(most)), body)
        case Absolute(a):
            yield from (sub(a, body), sub(neg(a), body))
        case Select(_, then, other):
            apart = sub(then, other).range
            low, high = (other, then) if apart.lo >= 0 else (then, other)
            if apart.lo >= 0 or apart.hi <= 0:
                yield from (sub(low, body), sub(body, high))


def _sets_of(places: Sequence[Place], shape: tuple[int, ...]) -> Iterator[tuple[Place, ...]]:
    """Elements that are taken out together."""
    of_rank = [place for place in places if len(place) == len(shape)]
    yield from ((place,) for place in places)
    if len(places) <= _TAKEN_OUT:
        for count in range(2, min(len(of_rank), math.prod(shape)) + 1):
            yield from itertools.combinations(of_rank, count)


def _apart(places: Sequence[Place], shape: tuple[int, ...]) -> Expr:
    """Whether these are different elements of an array; of one there is nothing to ask."""
    if len(places) < 2:
        return constant(1)
    inside = [
        conjunction(comparison("<=", constant(0), i), comparison("<", i, constant(size)))
        for place in places
        for i, size in zip(place, shape, strict=True)
    ]
    unequal = [
        disjunction(*(comparison("!=", i, j) for i, j in zip(one, other, strict=True)))
        for one, other in itertools.combinations(places, 2)
    ]
    return conjunction(*inside, *unequal)


def _is_dense(body: Expr) -> bool:
    """Whether a formula of an element takes every number between two of its values: an element, or a quotient of it."""
    if isinstance(body, FloorDiv) and isinstance(body.b, Const) and body.b.value > 0:
        terms, _ = linear_parts(body.a)
        return len(terms) == 1 and abs(terms[0][1]) == 1 and _is_element(terms[0][0])
    return _is_element(body)


def _is_element(expr: Expr) -> bool:
    return isinstance(expr, Load) and not expr.index


def _is_between(contract: Expr, array: str, summed: Expr) -> bool:
    """Whether a contract only bounds what is summed up, by what is the same at every place of the array."""
    if array not in _arrays_in(contract):
        return True
    for part in _conjuncts(contract):
        if not isinstance(part, Compare) or part.relation == "!=":
            return False
        for atom, factor in linear_parts(sub(part.a, part.b))[0]:
            bounds = _is_element(atom) and abs(factor) == 1 and isinstance(atom, Load) and atom.name == array
            if not bounds and not (type(atom) is Param and _is_element(summed)):
                return False
    return True
