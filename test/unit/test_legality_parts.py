"""The parts of the legality analysis against brute force: boxes, collisions, and the table of operations."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import given, settings
from jaxlib.mosaic.python import tpu

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.collisions import Apart, Blocks, Collision, Undecided, collide
from mosaic_grid.dataflow.effects import EFFECTS, Effect
from mosaic_grid.dataflow.memory import Box, Span, covered, disjoint
from mosaic_grid.dataflow.scalars import grid_index

SHAPE = (5, 4)


def box(rows: tuple[int, int], columns: tuple[int, int]) -> Box:
    """A box of constant spans, each a start and a size."""
    return tuple(Span(sym.constant(start), sym.constant(size)) for start, size in (rows, columns))


def elements(of: Box) -> set[tuple[int, ...]]:
    """The elements of a box of constant spans."""
    ends = [(sym.constant_of(span.start) or 0, sym.constant_of(span.size) or 0) for span in of]
    return set(itertools.product(*(range(start, start + size) for start, size in ends)))


def spans(size: int) -> st.SearchStrategy[tuple[int, int]]:
    """Starts and sizes within a dimension."""
    starts = st.integers(0, size - 1)
    return starts.flatmap(lambda start: st.tuples(st.just(start), st.integers(1, size - start)))


BOXES = st.builds(box, spans(SHAPE[0]), spans(SHAPE[1]))


@given(BOXES, st.lists(BOXES, max_size=5))
def test_covered_is_set_inclusion(wanted: Box, writes: list[Box]) -> None:
    """Boxes cover another exactly when their elements do."""
    there = set().union(*(elements(write) for write in writes))
    assert covered(wanted, writes, SHAPE) == (elements(wanted) <= there)


@given(BOXES, BOXES)
def test_disjoint_is_empty_intersection(a: Box, b: Box) -> None:
    """Constant boxes are told apart exactly."""
    assert disjoint(a, b) == (not elements(a) & elements(b))


def test_unknown_place_is_covered_by_the_whole_only() -> None:
    """A read of nobody knows what needs everything written; a read at an unknown index is within its full dimension."""
    half, full = box((0, 5), (0, 2)), box((0, 5), (0, 4))
    assert not covered(None, [half], SHAPE)
    assert covered(None, [full], SHAPE)
    row = Span(sym.parameter("?1", sym.type_range(32, True)), sym.constant(1))
    assert covered((row, Span(sym.constant(0), sym.constant(2))), [half], SHAPE)
    assert not covered((row, Span(sym.constant(0), sym.constant(4))), [half], SHAPE)


BOUNDS = (3, 4)
INDICES = tuple(grid_index(axis, bound) for axis, bound in enumerate(BOUNDS))


def leaf(draw: st.DrawFn) -> sym.Expr:
    """A grid index or a small constant."""
    return draw(st.sampled_from([*INDICES, *INDICES, sym.constant(1)]))


@st.composite
def expressions(draw: st.DrawFn) -> sym.Expr:
    """Quasi-affine expressions of two grid indices."""
    i, j = leaf(draw), leaf(draw)
    k = sym.constant(draw(st.integers(1, 3)))
    forms = {
        "sum": sym.add(i, sym.mul(j, k)),
        "difference": sym.sub(i, j),
        "quotient": sym.floordiv(sym.add(i, j), k),
        "towards zero": sym.truncdiv(sym.sub(i, j), k),
        "remainder": sym.mod(sym.sub(i, j), k),
        "signed remainder": sym.truncrem(sym.sub(i, j), k),
        "least": sym.minimum(i, k),
        "greatest": sym.maximum(i, j, k),
        "absolute": sym.absolute(sym.sub(i, j)),
        "machine sum": sym.wrap(sym.add(sym.mul(i, sym.constant(3)), j), 3, draw(st.booleans())),
        "cast": sym.wrap(sym.sub(i, sym.mul(j, k)), 2, draw(st.booleans()), cast=True),
        "choice": sym.select(sym.comparison("<", i, k), j, i),
        "choice of both": sym.select(
            sym.disjunction(sym.comparison("==", i, k), sym.negation(sym.comparison("!=", j, k))), j, k
        ),
    }
    return forms[draw(st.sampled_from(sorted(forms)))]


def window(indices: tuple[sym.Expr, ...], sizes: tuple[int, ...], in_elements: bool) -> Blocks:
    """A window whose index map is given."""
    strides = (1,) * len(sizes) if in_elements else sizes
    return Blocks(indices, strides, sizes, (0,) * len(sizes))


def touched(blocks: Blocks, step: tuple[int, ...]) -> set[tuple[int, ...]]:
    """The elements a window shows at a step."""
    at = dict(zip(INDICES, step, strict=True))
    starts = [sym.value_of(index, at) * stride for index, stride in zip(blocks.indices, blocks.strides, strict=True)]
    return set(itertools.product(*(range(s, s + n) for s, n in zip(starts, blocks.sizes, strict=True))))


@given(st.data(), st.integers(1, 2), st.booleans(), st.booleans(), st.sampled_from([(0,), (1,), (0, 1)]))
def test_collisions_are_those_of_brute_force(
    data: st.DataObject, rank: int, alias: bool, in_elements: bool, axes: tuple[int, ...]
) -> None:
    """isl's answer and its witness agree with trying all pairs of steps."""
    sizes = tuple(data.draw(st.integers(1, 3)) for _ in range(rank))
    one = window(tuple(data.draw(expressions()) for _ in range(rank)), sizes, in_elements)
    other = one
    if alias:
        other = window(tuple(data.draw(expressions()) for _ in range(rank)), sizes, data.draw(st.booleans()))
    steps = list(itertools.product(*(range(bound) for bound in BOUNDS)))
    hits = {
        (p, q)
        for p, q in itertools.product(steps, steps)
        if any(p[a] != q[a] for a in axes) and touched(one, p) & touched(other, q)
    }
    match collide(BOUNDS, one, other, axes):
        case Apart():
            assert not hits
        case Collision(first, second, block):
            assert (first, second) in hits
            at = dict(zip(INDICES, first, strict=True))
            assert block == tuple(sym.value_of(index, at) for index in one.indices)
        case Undecided(reason):
            raise AssertionError(reason)


DYNAMIC = tuple(grid_index(axis, None) for axis in range(2))
STEPS = tuple(sym.parameter(f"num_programs({axis})", sym.Range(1, 2**31 - 1)) for axis in range(2))


@st.composite
def dynamic_maps(draw: st.DrawFn) -> sym.Expr:
    """Sums of an i32 that wrap in enormous grids, some of them counted from the end, some cut to few bits."""
    i, j = (draw(st.sampled_from([index, sym.sub(n, index)])) for index, n in zip(DYNAMIC, STEPS, strict=True))
    a, b, c = (sym.constant(draw(st.integers(low, 3))) for low in (0, -1, -2))
    total = sym.wrap(sym.add(sym.mul(i, a), sym.mul(j, b), c), 32, True)
    kept = sym.comparison("<", sym.wrap(sym.mul(j, sym.constant(3)), 32, True), sym.constant(draw(st.integers(0, 9))))
    forms = (total, sym.mod(total, sym.constant(4)), sym.wrap(total, 3, True, cast=True), sym.select(kept, total, j))
    return draw(st.sampled_from(forms))


@settings(max_examples=40)
@given(st.lists(dynamic_maps(), min_size=1, max_size=2), st.sampled_from([(0,), (1,), (0, 1)]))
def test_collisions_of_dynamic_dimensions(maps: list[sym.Expr], axes: tuple[int, ...]) -> None:
    """A witness holds when it is evaluated; without one, no small grid has any."""
    blocks = window(tuple(maps), (1,) * len(maps), False)

    def at(step: tuple[int, ...], bounds: tuple[int, ...]) -> tuple[int, ...]:
        point = dict(zip((*DYNAMIC, *STEPS), (*step, *bounds), strict=True))
        return tuple(sym.value_of(index, point) for index in maps)

    def hits(bounds: tuple[int, ...]) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
        steps = list(itertools.product(*map(range, bounds)))
        apart = [(p, q) for p, q in itertools.product(steps, steps) if any(p[a] != q[a] for a in axes)]
        return {(p, q) for p, q in apart if at(p, bounds) == at(q, bounds)}

    match collide((None, None), blocks, blocks, axes):
        case Apart():
            assert not any(hits(bounds) for bounds in itertools.product(range(1, 5), range(1, 5)))
        case Collision(first, second, block):
            assert any(first[axis] != second[axis] for axis in axes)
            # the bounds of the witness aren't told: some above its steps
            least = [max(pair) + 1 for pair in zip(first, second, strict=True)]
            larger = itertools.product(*(range(n, n + 64) for n in least))
            assert any(at(first, bounds) == at(second, bounds) == block for bounds in larger)
        case Undecided(reason):
            assert reason == "takes too long to analyse"


def test_effort_is_bounded() -> None:
    """A map that is too hard is undecided rather than a hang."""
    n = (None,) * 4
    i, j, k, m = (grid_index(axis, None) for axis in range(4))
    twisted = sym.constant(0)
    for prime in (3, 5, 7, 11, 13, 17, 19, 23):
        twisted = sym.add(
            twisted,
            sym.maximum(
                sym.mod(sym.add(i, sym.mul(j, sym.constant(prime))), sym.constant(prime + 2)),
                sym.mod(sym.add(k, sym.mul(m, sym.constant(prime))), sym.constant(prime + 4)),
            ),
        )
    answer = collide(n, window((twisted,), (1,), False), window((twisted,), (1,), False), (0,))
    assert isinstance(answer, Undecided)
    assert answer.reason == "takes too long to analyse"


def test_every_operation_of_the_dialect_is_classified() -> None:
    """A new jaxlib that brings a new operation must be looked at, not guessed about."""
    assert tpu.__file__ is not None
    source = (Path(tpu.__file__).parent / "_tpu_ops_gen.py").read_text()
    names = set(re.findall(r'OPERATION_NAME = "(tpu\.\w+)"', source))
    assert len(names) > 50
    assert names - set(EFFECTS) == set()


def test_table_lists_no_operation_twice() -> None:
    """An operation has one effect, and none is listed as unknown."""
    assert Effect.UNKNOWN not in EFFECTS.values()
    assert len(EFFECTS) == len({name.strip() for name in EFFECTS})
