"""What to share, decided before anything is changed: a frozen plan, or the reason why there is none."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal

from mosaic_grid.grid import I32_MAX, Dimension, Semantics
from mosaic_grid.partition.split import Split, fusable

Strategy = Literal["auto", "split", "linearize"]


@dataclasses.dataclass(frozen=True)
class BoundFacts:
    """What is known of a bound: low <= bound <= high, and it is a multiple of `divisor`."""

    low: int
    high: int
    divisor: int = 1


@dataclasses.dataclass(frozen=True)
class Option:
    """A split that may be used; `guarded` where the launch has to establish at run time that it may."""

    split: Split
    guarded: bool


@dataclasses.dataclass(frozen=True)
class Nothing:
    """There is nothing to share, or the compiler does it by itself."""

    reason: str


def runs_to_share(grid: Sequence[Dimension], cores: int, strategy: Strategy) -> tuple[tuple[int, ...], ...] | Nothing:
    """The runs of adjacent dimensions that could be shared, the most promising first.

    libtpu shares a static parallel dimension of at least two steps by itself (established on every kernel it was tried
    on), so such a kernel is left alone; only `core_parallel` with more steps than cores is refused there.
    """
    own = [axis for axis, dimension in enumerate(grid) if _shared_by_compiler(dimension, cores)]
    core_parallel = [axis for axis, dimension in enumerate(grid) if dimension.semantics is Semantics.CORE_PARALLEL]
    wanted = [axis for axis in core_parallel if _exceeds(grid[axis], cores)]
    if len(core_parallel) > 1:
        return Nothing("it has several core_parallel dimensions, which no compiler takes")
    if wanted:
        return (tuple(wanted),)
    if own:
        return Nothing(f"the compiler shares dimension {own[0]} by itself")
    dynamic = [axis for axis, dimension in enumerate(grid) if dimension.bound is None and dimension.is_parallel]
    if not dynamic:
        return Nothing("no dimension is parallel with more than one step")
    single = [(axis,) for axis in dynamic]
    joint = [tuple(run) for run in _adjacent(dynamic, grid) if len(run) > 1]
    match strategy:
        case "split":
            return tuple(single)
        case "linearize":
            return tuple(joint or single)
        case "auto":
            return (*single, *joint)


def make_option(
    grid: Sequence[Dimension], axes: tuple[int, ...], cores: int, facts: Mapping[int, BoundFacts]
) -> Option:
    """The split of `axes`, with what the facts about their bounds prove of it. Static bounds need no facts."""
    known = [_facts_of(grid[axis], facts.get(axis)) for axis in axes]
    low, high, divisor = 1, 1, 1
    for fact in known:
        # bounds are at least 0 wherever a step runs at all, so products of the ends are the ends of the product
        low, high, divisor = low * max(fact.low, 0), high * max(fact.high, 0), divisor * fact.divisor
    even = divisor % cores == 0
    split = Split(tuple(grid), cores, axes, fusable(grid, axes), even)
    # an even split has no core without a step but where there is none at all
    enough = low >= cores or (even and all(fact.low >= 0 for fact in known))
    proved = enough and high <= split.step_limit
    return Option(split, guarded=not proved)


def _facts_of(dimension: Dimension, facts: BoundFacts | None) -> BoundFacts:
    if dimension.bound is not None:
        return BoundFacts(dimension.bound, dimension.bound, max(dimension.bound, 1))
    return facts or BoundFacts(-I32_MAX - 1, I32_MAX)


def _exceeds(dimension: Dimension, cores: int) -> bool:
    """Whether a `core_parallel` dimension has, or may have, more steps than there are cores: no compiler takes that."""
    return dimension.bound is None or dimension.bound > cores


def _shared_by_compiler(dimension: Dimension, cores: int) -> bool:
    if dimension.bound is None or dimension.bound < 2:
        return False
    if dimension.semantics is Semantics.CORE_PARALLEL:
        return dimension.bound <= cores
    return dimension.semantics is Semantics.PARALLEL


def _adjacent(axes: Sequence[int], grid: Sequence[Dimension]) -> list[list[int]]:
    """Maximal runs of adjacent axes; static parallel dimensions of one step may stand between."""
    runs: list[list[int]] = []
    for axis in axes:
        between = range(runs[-1][-1] + 1, axis) if runs else ()
        if runs and all(grid[b].bound == 1 for b in between):
            runs[-1] += [*between, axis]
        else:
            runs.append([axis])
    return runs
