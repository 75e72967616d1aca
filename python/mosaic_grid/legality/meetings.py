"""Whether two steps of a grid that differ in a dimension touch a place of an array in common.

A step touches parts of the array: boxes, each under conditions. Numbers that a step reads or counts are its own; what a
prefetch operand holds at a place is the same for all. No access is out of bounds: what nobody looks at while the kernel
runs would be a fault, so both steps are within the array, and a dynamic grid has no step that would not be.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

import islpy as isl

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.accesses import ITERATION, TABLE
from mosaic_grid.dataflow.memory import Box
from mosaic_grid.dataflow.scalars import BOUND, GRID_INDEX
from mosaic_grid.grid import I32_MAX
from mosaic_grid.legality.parts import Part
from mosaic_grid.symbolic import proofs
from mosaic_grid.symbolic.problem import Grid
from mosaic_grid.symbolic.proofs.affine import NotAffineError, Space, least, unknowns_of
from mosaic_grid.symbolic.proofs.decide import without

EFFORT = 60_000
"""How many of isl's operations one question may take."""

_OWN = "?"
_ROLES = ("first", "second")
_NAMED = tuple(f"{role}." for role in _ROLES)


@dataclasses.dataclass(frozen=True)
class Apart:
    """No two such steps share an element."""


@dataclasses.dataclass(frozen=True)
class Meeting:
    """Steps `first` and `second` share an element of the array: in any case, or if tables hold `values`."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    values: tuple[tuple[str, int], ...] = ()


@dataclasses.dataclass(frozen=True)
class Undecided:
    """Neither is known, and why; `meeting` is one for some contents of tables, None where that isn't known either."""

    reason: str
    meeting: Meeting | None = None


Answer = Apart | Meeting | Undecided


@dataclasses.dataclass(frozen=True)
class Arena:
    """A grid of `bounds`, None for a dynamic one that has as many steps as `most` says at most.

    `tables` are the names of prefetch operands by those of loads from them. What isn't decided is explained by steps
    that meet for some contents of them, if `explains`. isl may take `effort` operations for a question.
    """

    bounds: tuple[int | None, ...]
    most: Mapping[int, int]
    tables: Mapping[str, str]
    explains: bool = True
    effort: int = EFFORT

    def meet(self, one: Part, other: Part, axes: Sequence[int], same: Sequence[int] = ()) -> Answer:
        """Whether `one` at a step and `other` at a step that differs from it in one of `axes` share an element.

        In the dimensions `same` the two steps are equal.
        """
        if one.box is None or other.box is None or len(one.box) != len(other.box):
            return Undecided("which part of it can't be told")
        places = [_Placed(self, role) for role in _ROLES]
        known = list(_shared(places, one, other))
        known += [sym.comparison("==", *(place.index(axis) for place in places)) for axis in same]
        if any(truth == sym.constant(0) for truth in known):
            return Apart()
        relation: sym.Relation = "<" if one == other else "!="
        apart = [sym.comparison(relation, *(place.index(axis) for place in places)) for axis in axes]
        bad = [sym.conjunction(truth, *known) for truth in apart]
        return self._answer(bad)

    def _answer(self, bad: Sequence[sym.Expr]) -> Answer:
        leaves = {leaf for truth in bad for leaf in sym.leaves_of(truth)}
        names = {leaf.name for leaf in leaves if isinstance(leaf, sym.Param)}
        own = {name for name in names if name.removeprefix(_NAMED[0]).removeprefix(_NAMED[1])[:1] == _OWN}
        grid = Grid(
            tuple(self.bound(axis) for axis in range(len(self.bounds))) * 2,
            opaque=frozenset(own),
            indices=tuple(f"{role}{GRID_INDEX}{axis}" for role in _NAMED for axis in range(len(self.bounds))),
        )
        match proofs.never(grid, bad, most=self.effort):
            case sym.Proved():
                return Apart()
            case sym.Refuted(witness):
                return self._meeting(witness)
            case sym.Unknown(reason):
                reason = reason.replace(_NAMED[0], "").replace(_NAMED[1], "")
        loads = {leaf for leaf in leaves if isinstance(leaf, sym.Load)}
        if not self.explains or own or not loads or not {leaf.name for leaf in loads} <= set(self.tables.values()):
            return Undecided(reason)
        grid = dataclasses.replace(grid, arrays=frozenset(leaf.name for leaf in loads))
        match proofs.never(grid, bad, most=self.effort):
            case sym.Refuted(witness):
                return Undecided(reason, self._meeting(witness))
        return Undecided(reason)

    def _meeting(self, witness: sym.Witness) -> Meeting:
        (_, point), *_ = witness.points
        rank = len(self.bounds)
        tables = tuple(self.tables.values())
        values = tuple(each for each in witness.values if each[0].startswith(tables))
        return Meeting(point[:rank], point[rank:], values)

    def bound(self, axis: int) -> sym.Expr:
        """The number of steps of a dimension; there is one."""
        known = self.bounds[axis]
        if known is not None:
            return sym.constant(max(known, 1))
        return sym.parameter(f"{BOUND}{axis}", sym.Range(1, max(1, self.most.get(axis, I32_MAX))))

    def within(self, parts: Iterable[Part]) -> Arena:
        """The grid with no more steps in dynamic dimensions than there can be if none is out of bounds."""
        dynamic = [axis for axis, bound in enumerate(self.bounds) if bound is None]
        if not dynamic:
            return self
        placed = _Placed(self, "")
        beyond = list(dict.fromkeys(truth for part in dict.fromkeys(parts) for truth in placed.beyond(part)))
        if not beyond:
            return self
        context = isl.Context()
        try:
            with proofs.limited(context, EFFORT):
                most = _most(context, placed, [self.bound(axis) for axis in dynamic], beyond)
        except proofs.UndecidedError:
            return self
        return dataclasses.replace(self, most={**self.most, **dict(zip(dynamic, most, strict=True))}) if most else self


def _most(context: isl.Context, placed: _Placed, bounds: Sequence[sym.Expr], beyond: Sequence[sym.Expr]) -> list[int]:
    """The most that each of the bounds can be where no truth value is 1 at any step; none if that can't be."""
    indices = [placed.index(axis) for axis in range(len(placed.arena.bounds))]
    space = Space(context, unknowns_of([*bounds, *indices, *beyond]))
    space.assume([], [placed.in_grid(axis) for axis in range(len(indices))])
    names = [bound.text for bound in bounds if bound.text in space.places]
    if len(names) < len(bounds):
        return []
    hidden = [place for name, place in space.places.items() if name not in names]
    allowed = without(space.domain, hidden)
    for truth in beyond:
        with contextlib.suppress(NotAffineError):
            allowed = allowed.subtract(without(space.among(space.domain, truth), hidden))
    if allowed.is_empty():
        return []
    order = sorted(names, key=lambda name: space.places[name])
    return [-least(allowed.neg(), order.index(name)) for name in names]


@dataclasses.dataclass(frozen=True)
class _Placed:
    """What expressions of a step are at one of the two steps."""

    arena: Arena
    role: str

    def index(self, axis: int) -> sym.Expr:
        """A grid index of the step."""
        values = sym.Range(0, sym.range_of(self.arena.bound(axis)).hi - 1)
        return sym.parameter(f"{self.role}{'.' if self.role else ''}{GRID_INDEX}{axis}", values)

    def in_grid(self, axis: int) -> sym.Expr:
        """That the index is one of the grid."""
        return sym.comparison("<", self.index(axis), self.arena.bound(axis))

    def at(self, expr: sym.Expr) -> sym.Expr:
        """The expression at the step."""
        return sym.substitute(expr, self._renamed)

    def _renamed(self, part: sym.Expr) -> sym.Expr | None:
        match part:
            case sym.Param(name) if name[:1] == GRID_INDEX and name[1:].isdigit():
                return self.index(int(name[1:]))
            case sym.Param(name) if name[:1] == BOUND and name[1:].isdigit():
                return self.arena.bound(int(name[1:]))
            case sym.Param(name) if name.startswith("num_programs("):
                return self.arena.bound(int(name.removeprefix("num_programs(").removesuffix(")")))
            case sym.Param(name, values, divisor) if name.startswith((_OWN, ITERATION)):
                return sym.parameter(f"{self.role}.{name}", values, divisor=divisor)
            case sym.Load(name, index, values) if name.startswith(TABLE):
                return sym.load(self.arena.tables.get(name, f"{self.role}.{name}"), map(self.at, index), values)
        return None

    def spans(self, box: Box) -> Iterator[tuple[sym.Expr, sym.Expr]]:
        """The first element of the box in each dimension, and the one behind the last."""
        for span in box:
            start = self.at(span.start)
            yield start, sym.add(start, self.at(span.size))

    def beyond(self, part: Part) -> Iterator[sym.Expr]:
        """The ways in which a part is out of bounds, as truth values: those in which all that they speak of occurs."""
        guards = [self.at(guard) for guard in part.guards]
        for (start, end), size in zip(self.spans(part.box or ()), part.shape, strict=False):
            for truth in (
                sym.comparison("<", start, sym.constant(0)),
                sym.comparison(">", end, sym.constant(size)),
            ):
                out = sym.conjunction(truth, *guards)
                if part.inside and sym.constant_of(out) != 0 and all(map(_occurs, sym.leaves_of(out))):
                    yield out


def _occurs(leaf: sym.Param | sym.Load) -> bool:
    """Whether each value of an unknown is taken at some step: a grid index, a bound, or an iteration."""
    name = leaf.name.removeprefix(".")
    known = name[:1] in (GRID_INDEX, BOUND) and name[1:].isdigit()
    return isinstance(leaf, sym.Param) and (known or name.startswith(ITERATION))


def _shared(places: Sequence[_Placed], one: Part, other: Part) -> Iterator[sym.Expr]:
    """What holds where both are touched, and share an element."""
    (first, second), parts = places, (one, other)
    assert one.box is not None
    assert other.box is not None  # asked of parts that are known
    for (start, end), (other_start, other_end) in zip(first.spans(one.box), second.spans(other.box), strict=True):
        yield sym.comparison("<", start, other_end)
        yield sym.comparison("<", other_start, end)
    for place, part in zip(places, parts, strict=True):
        yield from (place.at(guard) for guard in part.guards)
        for (start, end), size in zip(place.spans(part.box or ()), part.shape, strict=True):
            if part.inside:
                yield sym.comparison("<=", sym.constant(0), start)
                yield sym.comparison("<=", end, sym.constant(size))
