"""Expressions as they are at named points of a grid, with a fresh unknown for each thing that isn't quasi-affine.

A load is an unknown function of its index, a product of two unknowns one of its factors: equal arguments give equal
values, and that is all that is known, besides ranges and contracts.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator

from mosaic_grid.symbolic.arith import parameter
from mosaic_grid.symbolic.choice import comparison, conjunction, disjunction, negation
from mosaic_grid.symbolic.contracts import Contract
from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.facts import leaves_of
from mosaic_grid.symbolic.nodes import Const, Load, Param, Product, Total
from mosaic_grid.symbolic.proofs.sums import Place, Sums
from mosaic_grid.symbolic.quotients import Division
from mosaic_grid.symbolic.ranges import type_range
from mosaic_grid.symbolic.substitute import substitute
from mosaic_grid.symbolic.totals import totals_of

EVERYWHERE = ""
"""The point of what is the same at every step."""


@dataclasses.dataclass(frozen=True)
class Application:
    """The value `param` of an unknown `function` for `args`; `written` is what the program has there."""

    param: Param
    function: tuple[object, ...]
    args: tuple[Expr, ...]
    written: Expr


class Instances:
    """The instances of expressions over grid indices of these names; `facts` says what holds of their unknowns."""

    def __init__(self, indices: Iterable[str], contracts: Iterable[Contract]) -> None:
        self._indices = frozenset(indices)
        self._contracts = [contract.condition for contract in contracts]
        self._everywhere = [c for c in self._contracts if not _tables_of(c)]
        self._of_elements = [c for c in self._contracts if _tables_of(c)]
        self.applications: dict[str, Application] = {}
        self.places: set[str] = set()
        self._named: dict[tuple[str, tuple[Expr, ...]], Param] = {}
        self._totals = {whole.name: whole for contract in self._contracts for whole in totals_of(contract)}

    def at(self, expr: Expr, point: str) -> Expr:
        """The expression at the point."""

        def renamed(part: Expr) -> Expr | None:
            match part:
                case Total(name):
                    known = self._totals.setdefault(name, part)
                    if part.range.within(known.range):
                        self._totals[name] = part
                case Param(name, values, divisor) if name in self._indices and point:
                    return parameter(f"{point}.{name}", values, divisor=divisor)
                case Load(name, index):
                    return self._applied(part, (Load, name, len(index)), index, point)
                case Product() | Division() if not (isinstance(part, Division) and isinstance(part.b, Const)):
                    return self._applied(part, (type(part),), part.args, point)
            return None

        return substitute(expr, renamed)

    def _applied(self, part: Expr, function: tuple[object, ...], args: tuple[Expr, ...], point: str) -> Expr:
        placed = tuple(self.at(arg, point) for arg in args)
        name = f"{part.name if isinstance(part, Load) else type(part).__name__}[{', '.join(map(str, placed))}]"
        if not placed:
            # an element at a place of which nothing is known but that it is this step's
            name += f"@{point}"
            place = Param(f"place of {name}", type_range(32, True))
            self.places.add(place.name)
            placed = (place,)
        param = Param(name, part.range, max(part.divisor, 1))
        self.applications.setdefault(name, Application(param, function, placed, part))
        if isinstance(part, Load):
            self._named.setdefault((part.name, placed), param)
        return param

    def facts(self) -> list[Expr]:
        """The contracts, and that functions are functions."""
        truths = [self.at(contract, EVERYWHERE) for contract in self._everywhere]
        truths += self._element_facts()
        if self._totals:
            asked = dict(self._totals)
            truths += [self.at(fact, EVERYWHERE) for fact in self._sums().facts(self._placed)]
            # the sums that only these facts speak of aren't asked about
            self._totals = asked
        truths += self._equal_for_equal()
        return [truth for truth in truths if truth != Const(1)]

    def hidden_by_sums(self, arrays: Iterable[str]) -> frozenset[str]:
        """Names of sums, of arrays and of inputs of which not every value need occur: see `Sums.hidden`."""
        return self._sums().hidden(arrays) if self._totals else frozenset()

    def _sums(self) -> Sums:
        reads: dict[str, list[Place]] = {}
        for name, place in self._named:
            reads.setdefault(name, []).append(place)
        return Sums(self._totals.values(), self._contracts, reads)

    def _element_facts(self) -> Iterator[Expr]:
        """What the contracts say of the elements that are read: each at the place of each read."""
        done: set[tuple[int, tuple[Expr, ...]]] = set()
        # a contract that relates two arrays brings in an element of the other one
        waiting = list(self.applications.values())
        while waiting:
            read = waiting.pop()
            for number, contract in enumerate(self._of_elements):
                if read.function[1:2] == () or read.function[1] not in _tables_of(contract):
                    continue
                if (number, read.args) not in done:
                    done.add((number, read.args))
                    before = set(self.applications)
                    yield self._placed(contract, read.args)
                    waiting += [a for name, a in self.applications.items() if name not in before]

    def _placed(self, contract: Expr, place: tuple[Expr, ...]) -> Expr:
        """The contract about all elements for those at a place."""

        def element(part: Expr) -> Expr | None:
            if not isinstance(part, Load):
                return None
            if part.index:
                return self.at(part, EVERYWHERE)
            return self._named.get((part.name, place)) or self.at(Load(part.name, place, part.values), EVERYWHERE)

        return substitute(contract, element)

    def _equal_for_equal(self) -> Iterator[Expr]:
        groups: dict[tuple[object, ...], list[Application]] = {}
        for application in self.applications.values():
            groups.setdefault(application.function, []).append(application)
        for group in groups.values():
            for one, other in itertools.combinations(group, 2):
                same = conjunction(*(comparison("==", a, b) for a, b in zip(one.args, other.args, strict=True)))
                yield disjunction(negation(same), comparison("==", one.param, other.param))


def _tables_of(contract: Expr) -> set[str]:
    """The arrays of whose every element the contract speaks."""
    return {leaf.name for leaf in leaves_of(contract) if isinstance(leaf, Load) and not leaf.index}
