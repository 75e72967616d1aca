"""Whether two steps touch a place in common, against trying all steps, loops, tables and numbers of steps."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.accesses import ITERATION, TABLE
from mosaic_grid.dataflow.memory import Span
from mosaic_grid.dataflow.scalars import BOUND, grid_index
from mosaic_grid.grid import I32_MAX
from mosaic_grid.legality.meetings import Answer, Apart, Arena, Meeting, Undecided
from mosaic_grid.legality.parts import Part, hull

MOST = 4
TURNS = 3
TABLE_SIZE, TABLE_VALUES = 3, (0, 5)
TABLES = {f"{TABLE}2": "t"}
LOOP = sym.parameter(f"{ITERATION}1", sym.Range(0, TURNS - 1))
SECRET = sym.parameter("?7", sym.Range(0, 2))

RELATIONS: tuple[sym.Relation, ...] = ("<", "==", ">=")

Step = tuple[int, ...]
Values = Mapping[str, int]


@dataclasses.dataclass(frozen=True)
class World:
    """How many steps there are, and what the table holds."""

    bounds: tuple[int, ...]
    table: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Sample:
    """A grid, None for a dynamic bound, and two parts of an array."""

    bounds: tuple[int | None, ...]
    one: Part
    other: Part

    @property
    def arena(self) -> Arena:
        """The grid."""
        return Arena(self.bounds, {axis: MOST for axis, bound in enumerate(self.bounds) if bound is None}, TABLES)

    def worlds(self) -> Iterator[World]:
        """All that may be."""
        used = {leaf.name for part in (self.one, self.other) for expr in exprs_of(part) for leaf in sym.leaves_of(expr)}
        tables = itertools.product(TABLE_VALUES, repeat=TABLE_SIZE) if f"{TABLE}2" in used else [(0,) * TABLE_SIZE]
        sizes = [range(1, MOST + 1) if bound is None else (bound,) for bound in self.bounds]
        return (World(bounds, table) for bounds, table in itertools.product(itertools.product(*sizes), list(tables)))


def exprs_of(part: Part) -> list[sym.Expr]:
    """All expressions of a part."""
    return [*part.guards, *(expr for span in part.box or () for expr in (span.start, span.size))]


def value(expr: sym.Expr, step: Step, world: World, own: Values) -> int:
    """An expression at a step, where the table holds 9 behind its end."""
    known: dict[sym.Expr, int] = {}
    for leaf in sym.leaves_of(expr):
        if isinstance(leaf, sym.Load):
            place = value(leaf.index[0], step, world, own)
            known[leaf] = world.table[place] if place < TABLE_SIZE else 5
        elif leaf.name in own:
            known[leaf] = own[leaf.name]
        else:
            known[leaf] = (world.bounds if leaf.name[0] == BOUND else step)[int(leaf.name[1:])]
    return sym.value_of(expr, known)


def touched(part: Part, step: Step, world: World) -> set[tuple[int, ...]]:
    """The elements that a step touches, in any turn of its loop, if that is within the array where it has to be."""
    found: set[tuple[int, ...]] = set()
    used = {leaf for expr in exprs_of(part) for leaf in sym.leaves_of(expr)}
    ranges = (range(count if leaf in used else 1) for leaf, count in ((LOOP, TURNS), (SECRET, 3)))
    for turn, secret in itertools.product(*ranges):
        own = {f"{ITERATION}1": turn, "?7": secret}
        if not all(value(guard, step, world, own) for guard in part.guards):
            continue
        spans = [tuple(value(e, step, world, own) for e in (span.start, span.size)) for span in part.box or ()]
        if part.inside and any(a < 0 or a + n > size for (a, n), size in zip(spans, part.shape, strict=True)):
            continue
        found.update(itertools.product(*(range(a, a + n) for a, n in spans)))
    return found


def is_fault(part: Part, step: Step, world: World) -> bool:
    """Whether a step touches what isn't there, where that is a fault."""
    places = touched(dataclasses.replace(part, inside=False), step, world)
    return part.inside and any(not 0 <= i < size for at in places for i, size in zip(at, part.shape, strict=True))


def meetings(sample: Sample, axes: tuple[int, ...], world: World) -> set[tuple[Step, Step]]:
    """All pairs of steps that differ in one of `axes` and share an element."""
    steps = list(itertools.product(*map(range, world.bounds)))
    ones, others = ({step: touched(part, step, world) for step in steps} for part in (sample.one, sample.other))
    return {
        (p, q)
        for p, q in itertools.product(steps, steps)
        if any(p[axis] != q[axis] for axis in axes) and ones[p] & others[q]
    }


@st.composite
def starts(draw: st.DrawFn, bounds: tuple[int | None, ...], leaves: tuple[sym.Expr, ...]) -> sym.Expr:
    """Affine and almost affine functions of the grid indices, and of what else there is."""
    indices = [grid_index(axis, bound) for axis, bound in enumerate(bounds)]
    atoms = [*indices, *indices, *leaves]
    terms = [sym.mul(draw(st.sampled_from(atoms)), sym.constant(draw(st.integers(-2, 4)))) for _ in range(2)]
    total = sym.add(*terms, sym.constant(draw(st.integers(-1, 4))))
    divisor = sym.constant(draw(st.integers(2, 3)))
    forms = [total, total, total, sym.floordiv(total, divisor), sym.mod(total, divisor), sym.wrap(total, 3, False)]
    return draw(st.sampled_from([*forms, sym.maximum(total, sym.constant(0))]))


@st.composite
def parts(draw: st.DrawFn, bounds: tuple[int | None, ...], rank: int, leaves: tuple[sym.Expr, ...]) -> Part:
    """A box of a small array, under at most one condition."""
    shape = tuple(draw(st.integers(4, 14)) for _ in range(rank))
    spans = tuple(
        Span(draw(starts(bounds, leaves)), sym.constant(draw(st.integers(1, min(4, size))))) for size in shape
    )
    relation: sym.Relation = draw(st.sampled_from(RELATIONS))
    guard = sym.comparison(relation, draw(starts(bounds, leaves)), sym.constant(draw(st.integers(0, 4))))
    return Part(spans, shape, (guard,) if draw(st.booleans()) else (), draw(st.booleans()))


@st.composite
def samples(draw: st.DrawFn, leaves: tuple[sym.Expr, ...]) -> Sample:
    """Two parts that may be the same, on one array."""
    bounds = tuple(draw(st.lists(st.sampled_from((None, 1, 2, 3)), min_size=1, max_size=2)))
    rank = draw(st.integers(1, 2))
    one = draw(parts(bounds, rank, leaves))
    other = one if draw(st.booleans()) else dataclasses.replace(draw(parts(bounds, rank, leaves)), shape=one.shape)
    return Sample(bounds, one, other)


def asked(sample: Sample) -> Iterator[tuple[tuple[int, ...], Answer]]:
    """The answer for each dimension, and for all of them."""
    every = tuple(range(len(sample.bounds)))
    for axes in {every, *((axis,) for axis in every)}:
        yield axes, sample.arena.meet(sample.one, sample.other, axes)


def check_exact(sample: Sample) -> None:
    """Asks of a sample without tables, whose answers have to be exact."""
    for axes, answer in asked(sample):
        found = set().union(*(meetings(sample, axes, world) for world in sample.worlds()))
        match answer:
            case Apart():
                assert not found
            case Meeting(first, second):
                assert (first, second) in found
            case Undecided(reason):
                raise AssertionError(reason)


def check_with_tables(sample: Sample) -> None:
    """Asks of a sample whose answers may be up to a table."""
    for axes, answer in asked(sample):
        by_world = {world: meetings(sample, axes, world) for world in sample.worlds()}
        match answer:
            case Apart():
                assert not any(by_world.values())
            case Meeting(first, second):
                sizes = {world.bounds for world in by_world}
                of_size = [[found for world, found in by_world.items() if world.bounds == size] for size in sizes]
                assert any(all((first, second) in found for found in each) for each in of_size)
            case Undecided(_, Meeting(first, second, values)):
                check_possible(by_world, (first, second), dict(values))


def check_possible(by_world: Mapping[World, set[tuple[Step, Step]]], steps: tuple[Step, Step], held: Values) -> None:
    """Two steps meet with a table like this; numbers that aren't among those tried say nothing."""
    assert set(held) <= {f"t[{place}]" for place in range(MOST)}
    if set(held.values()) <= set(TABLE_VALUES) and f"t[{TABLE_SIZE}]" not in held:
        fitting = [
            found
            for world, found in by_world.items()
            if all(world.table[int(name[2:-1])] == number for name, number in held.items())
        ]
        assert any(steps in found for found in fitting)


TABLE_ENTRY = sym.load(f"{TABLE}2", (grid_index(0, None),), sym.Range(0, 5))


@settings(max_examples=40)
@given(samples((LOOP,)))
def test_meetings_are_those_of_brute_force(sample: Sample) -> None:
    """With nothing but indices and loops, two steps that meet are found exactly where there are some."""
    check_exact(sample)


@settings(max_examples=40)
@given(samples((LOOP, TABLE_ENTRY, SECRET)))
def test_what_tables_decide(sample: Sample) -> None:
    """Apart is so whatever a table holds; a meeting needs no table; a possible one comes with what the table holds."""
    check_with_tables(sample)


@pytest.mark.full
@settings(max_examples=300)
@given(samples((LOOP,)), samples((LOOP, TABLE_ENTRY, SECRET)))
def test_many_meetings(plain: Sample, with_tables: Sample) -> None:
    """The same with many more."""
    check_exact(plain)
    check_with_tables(with_tables)


@given(st.data())
def test_hull_covers_its_parts(data: st.DataObject) -> None:
    """What any of the parts touches is touched by one of those that stand for them."""
    bounds: tuple[int | None, ...] = (3, 2)
    rank = data.draw(st.integers(1, 2))
    first = data.draw(parts(bounds, rank, (LOOP,)))
    assert first.box is not None
    shifted = [
        dataclasses.replace(
            first,
            box=tuple(Span(sym.add(s.start, sym.constant(data.draw(st.integers(0, 6)))), s.size) for s in first.box),
            guards=data.draw(st.sampled_from([first.guards, ()])),
        )
        for _ in range(data.draw(st.integers(0, 3)))
    ]
    some = [first, *shifted]
    found = hull(some)
    assert len(found) <= len(some)
    world = World((3, 2), (0,) * TABLE_SIZE)
    for step in itertools.product(range(3), range(2)):
        # a step that is out of bounds isn't run
        if not any(is_fault(part, step, world) for part in some):
            together = set().union(*(touched(part, step, world) for part in found))
            assert all(touched(part, step, world) <= together for part in some)


def test_parts_side_by_side_are_one() -> None:
    """What an unrolled loop touches is compared at once."""
    row = sym.mul(grid_index(0, 4), sym.constant(8))
    some = [Part((Span(sym.add(row, sym.constant(k)), sym.constant(2)),), (32,)) for k in (0, 2, 4, 6)]
    assert hull(some) == [Part((Span(row, sym.constant(8)),), (32,))]


@given(st.data())
def test_no_step_is_out_of_bounds(data: st.DataObject) -> None:
    """A dynamic grid has as many steps as there are without one that is out of bounds, no more and no fewer."""
    bounds: tuple[int | None, ...] = (None, data.draw(st.sampled_from((1, 2, 3))))
    part = dataclasses.replace(data.draw(parts(bounds, 1, (LOOP,))), inside=True)
    arena = Arena(bounds, {0: MOST}, TABLES)

    def fits(steps: int) -> bool:
        world = World((steps, bounds[1] or 1), (0,) * TABLE_SIZE)
        return not any(is_fault(part, step, world) for step in itertools.product(*map(range, world.bounds)))

    expected = max((steps for steps in range(1, MOST + 1) if fits(steps)), default=MOST)
    assert arena.within([part]).most[0] == expected


@pytest.mark.parametrize(("stride", "most"), [(128, 8), (1 << 30, 1), (0, I32_MAX), (-128, 1)])
def test_most_steps_with_machine_integers(stride: int, most: int) -> None:
    """A product that would wrap around to where it began has left the array long before."""
    start = sym.wrap(sym.mul(grid_index(0, None), sym.constant(stride)), 32, True)
    part = Part((Span(start, sym.constant(128)),), (1024,))
    arena = Arena((None,), {}, {}).within([part])
    assert arena.most.get(0, I32_MAX) == most
    assert isinstance(arena.meet(part, part, (0,)), Apart) == (stride != 0)


def test_unknown_part_is_not_apart() -> None:
    """Of an access that can't be followed nothing is proved."""
    part = Part(None, (8,))
    assert isinstance(Arena((2,), {}, {}).meet(part, part, (0,)), Undecided)


def test_numbers_of_a_step_are_its_own() -> None:
    """The same operation may read another number at another step; a prefetch operand holds the same for both."""
    own = sym.load(f"{TABLE}5", (sym.constant(0),), sym.Range(0, 100))
    shared = sym.load(f"{TABLE}2", (sym.constant(0),), sym.Range(0, 100))
    index = sym.mul(grid_index(0, 4), sym.constant(8))
    answers = [
        Arena((4,), {}, TABLES).meet(part, part, (0,))
        for base in (own, SECRET, shared)
        for part in [Part((Span(sym.add(base, sym.mul(base, sym.constant(7)), index), sym.constant(8)),), (999,))]
    ]
    assert [type(answer) for answer in answers] == [Undecided, Undecided, Apart]


def test_each_content_of_a_table_is_told_once() -> None:
    """Steps that read one element of a table by way of another have it once among the contents with which they meet."""
    small = sym.Range(0, 3)
    by_way = sym.load(f"{TABLE}2", (sym.load(f"{TABLE}3", (grid_index(0, 4),), small),), small)
    part = Part((Span(sym.mul(by_way, sym.constant(8)), sym.constant(8)),), (32,), ())
    answer = Arena((4,), {}, TABLES | {f"{TABLE}3": "u"}).meet(part, part, (0,))
    assert isinstance(answer, Undecided)
    assert answer.meeting is not None
    assert "t[0]" in dict(answer.meeting.values)
    assert len(set(answer.meeting.values)) == len(answer.meeting.values)
