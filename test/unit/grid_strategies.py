"""Random kernels for `test_cpu_grid.py`: grids, index maps, windows and launches that stay inside of their arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import get_args

from grid_kernels import Dim, GridKernel, Rule, Semantics, Term, Window
from hypothesis import strategies as st

TABLE_VALUES = 3
"""Tables hold numbers below it."""

BLOCKS: tuple[tuple[int, ...], ...] = ((6,), (2, 3), (3, 2), (1, 6), (6, 1), (2, 1, 3), (1, 3, 2), (1, 6, 1))
SEMANTICS: tuple[Semantics, ...] = ("arbitrary", "arbitrary", "parallel", "core_parallel")
RULES: tuple[Rule, ...] = get_args(Rule)


@st.composite
def kernels(draw: st.DrawFn, *, disjoint: bool = False) -> GridKernel:
    """A kernel with up to three dimensions, and a few inputs and outputs.

    With `disjoint` the number of cores is static, and none writes a block that another uses: they may take turns.
    """
    grid = tuple(draw(st.lists(dims(static_cores=disjoint), max_size=3)))
    cores = [axis for axis, dim in enumerate(grid) if dim.semantics == "core_parallel"] if disjoint else []
    inputs = draw(st.lists(windows(grid, []), max_size=2))
    outputs: list[Window] = []
    aliases: list[tuple[int, int]] = []
    for window in draw(st.lists(windows(grid, cores), min_size=1, max_size=2)):
        result = dataclasses.replace(window, revisit_any=draw(st.booleans()))
        if draw(st.integers(0, 2)) == 0:
            same = dataclasses.replace(window, terms=window.terms if cores else draw(index_map(grid, window.block, [])))
            given = _sized(same, grid, window.array)
            aliases.append((len(outputs), len(inputs)))
            inputs.append(given)
            result = dataclasses.replace(result, array=given.array)
        outputs.append(result)
    skipped = draw(st.none() | st.tuples(st.integers(1, 3), st.integers(0, 2)))
    tables = tuple(max(1, dim.bound) for dim in grid)
    dirty = draw(st.integers(0, 3)) == 0
    return GridKernel(grid, tuple(inputs), tuple(outputs), tables, tuple(aliases), skipped, dirty)


@st.composite
def dims(draw: st.DrawFn, *, static_cores: bool) -> Dim:
    """A dimension; few have no step."""
    semantics = draw(st.sampled_from(SEMANTICS))
    bound = draw(st.integers(1, 4) | st.integers(1, 4) | st.integers(0, 1))
    return Dim(bound, semantics, draw(st.booleans()) and not (static_cores and semantics == "core_parallel"))


@st.composite
def windows(draw: st.DrawFn, grid: Sequence[Dim], cores: Sequence[int]) -> Window:
    """A window with an array around it: its last block may be cut, or it may stick out of it where that is allowed.

    Its index has those along `cores` as components.
    """
    shapes = [shape for shape in BLOCKS if len(shape) >= len(cores)]
    block = draw(st.sampled_from(shapes))
    squeezed = tuple(axis for axis, size in enumerate(block) if size == 1 and draw(st.booleans()))
    window = Window(block, draw(index_map(grid, block, cores)), (0,) * len(block), squeezed)
    if cores or draw(st.integers(0, 3)) > 0:
        whole = _sized(window, grid, window.array).array
        cut = [draw(st.integers(0, size - 1)) for size in block]
        return dataclasses.replace(window, array=tuple(n - k for n, k in zip(whole, cut, strict=True)))
    padding = tuple((draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in block)
    return _sized(dataclasses.replace(window, padding=padding), grid, window.array)


@st.composite
def index_map(draw: st.DrawFn, grid: Sequence[Dim], block: Sequence[int], cores: Sequence[int]) -> tuple[Term, ...]:
    """A component for each dimension of the block, among them the indices along `cores`."""
    fixed = [Term("index", axis) for axis in cores]
    return tuple(draw(st.permutations([*fixed, *(draw(terms(grid)) for _ in block[len(cores) :])])))


def terms(grid: Sequence[Dim]) -> st.SearchStrategy[Term]:
    """A component of an index map."""
    if not grid:
        return st.builds(Term, st.just("constant"), number=st.integers(0, 2))
    axes = st.integers(0, len(grid) - 1)
    chosen = st.builds(Term, st.sampled_from(RULES), axes, axes, st.integers(1, 3)).map(
        lambda term: dataclasses.replace(term, number=term.axis) if term.rule == "table" else term
    )
    return st.builds(Term, st.just("index"), axes) | chosen


def bounds_of(draw: st.DrawFn, kernel: GridKernel) -> list[int]:
    """The bounds of a launch: dynamic ones are anything up to their most, or negative."""
    return [draw(st.integers(-1, dim.bound)) if dim.dynamic else dim.bound for dim in kernel.grid]


def _sized(window: Window, grid: Sequence[Dim], least: Sequence[int]) -> Window:
    """The window with an array of at least that shape that has a part of every block."""
    sizes = []
    for axis, (block, term) in enumerate(zip(window.block, window.terms, strict=True)):
        if window.padding is None:
            size = (_most(term, grid) + 1) * block
        else:
            size = max(1, _most(term, grid) + block - sum(window.padding[axis]))
        sizes.append(max(size, least[axis]))
    return dataclasses.replace(window, array=tuple(sizes))


def _most(term: Term, grid: Sequence[Dim]) -> int:
    """The greatest value of a component."""
    last = [max(1, dim.bound) - 1 for dim in grid] or [0]
    match term.rule:
        case "constant":
            return term.number
        case "index" | "back":
            return last[term.axis]
        case "sum":
            return last[term.axis] + 2 * last[term.other] + term.number
        case "quotient":
            return last[term.axis] // term.number
        case "rest":
            return min(term.number - 1, last[term.axis])
        case "table":
            return TABLE_VALUES - 1
