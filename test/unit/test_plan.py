"""Plans of partition-cores: which dimensions are shared, and what is proved of a split before anything is changed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosaic_grid.grid import Dimension, Semantics
from mosaic_grid.partition.plan import BoundFacts, Nothing, Strategy, make_option, runs_to_share

WORDS = {
    "p": Semantics.PARALLEL,
    "a": Semantics.ARBITRARY,
    "c": Semantics.CORE_PARALLEL,
    "s": Semantics.SUBCORE_PARALLEL,
}


def grid(text: str) -> tuple[Dimension, ...]:
    """`p? a3`: a parallel dimension with a dynamic bound, around an arbitrary one of 3 steps."""
    words = [(word[0], word[1:]) for word in text.split()]
    return tuple(Dimension(None if bound == "?" else int(bound), WORDS[letter]) for letter, bound in words)


@pytest.mark.parametrize(
    ("text", "strategy", "runs"),
    [
        ("p?", "auto", [(0,)]),
        ("a? p? a3", "auto", [(1,)]),
        ("p? p?", "auto", [(0,), (1,), (0, 1)]),
        ("p? p?", "split", [(0,), (1,)]),
        ("p? p?", "linearize", [(0, 1)]),
        ("p? p? p?", "auto", [(0,), (1,), (2,), (0, 1, 2)]),
        # an arbitrary dimension of more than one step keeps its neighbours apart; one step is no obstacle
        ("p? a3 p?", "auto", [(0,), (2,)]),
        ("p? a3 p?", "linearize", [(0,), (2,)]),
        ("p? a? p?", "linearize", [(0,), (2,)]),
        ("p? p1 p?", "linearize", [(0, 1, 2)]),
        ("p? a1 p? a2 p?", "auto", [(0,), (2,), (4,), (0, 1, 2)]),
        # one step of a static parallel dimension is nothing the compiler could share
        ("p1 p?", "auto", [(1,)]),
        ("p? s4", "auto", [(0,)]),
        ("c?", "auto", [(0,)]),
        ("c? p?", "auto", [(0,)]),
        ("c8 a2", "auto", [(0,)]),
        ("c8 p?", "split", [(0,)]),
        # a core_parallel dimension of more steps than cores is refused by the compiler, whatever else is static
        ("c8 p4", "auto", [(0,)]),
    ],
)
def test_runs_to_share(text: str, strategy: Strategy, runs: list[tuple[int, ...]]) -> None:
    """What could be shared between two cores, the single dimensions before those counted together."""
    assert runs_to_share(grid(text), 2, strategy) == tuple(runs)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no dimension is parallel"),
        ("a? a8", "no dimension is parallel"),
        ("p1 a?", "no dimension is parallel"),
        ("p0", "no dimension is parallel"),
        ("p2 p?", "the compiler shares dimension 0 by itself"),
        ("p? p8", "the compiler shares dimension 1 by itself"),
        ("c2 p?", "the compiler shares dimension 0 by itself"),
        ("c? c?", "several core_parallel dimensions"),
        ("c2 c8", "several core_parallel dimensions"),
    ],
)
def test_nothing_to_share(text: str, reason: str) -> None:
    """Why a grid is left alone."""
    nothing = runs_to_share(grid(text), 2, "auto")
    assert isinstance(nothing, Nothing)
    assert reason in nothing.reason


def test_cores_decide_what_is_too_many() -> None:
    """Four steps of a core_parallel dimension are too many for two cores and not for four."""
    assert runs_to_share(grid("c4"), 2, "auto") == ((0,),)
    assert isinstance(runs_to_share(grid("c4"), 4, "auto"), Nothing)


@pytest.mark.parametrize(
    ("text", "axes", "facts", "even", "guarded"),
    [
        ("p?", (0,), {}, False, True),
        ("p?", (0,), {0: BoundFacts(2, 9)}, False, False),
        ("p?", (0,), {0: BoundFacts(1, 9)}, False, True),
        # a multiple of the cores is zero or enough, but may be negative, which is no number of steps
        ("p?", (0,), {0: BoundFacts(0, 64, 4)}, True, False),
        ("p?", (0,), {0: BoundFacts(-4, 64, 4)}, True, True),
        ("p?", (0,), {0: BoundFacts(2, 2**31 - 1)}, False, True),
        ("p?", (0,), {0: BoundFacts(2, 2**31 - 3)}, False, False),
        # the fused dimension of 8 multiplies the steps that have to fit 32 bits
        ("p? a8", (0,), {0: BoundFacts(2, 2**28 - 3)}, False, False),
        ("p? a8", (0,), {0: BoundFacts(2, 2**28 - 2)}, False, True),
        # together: each has a step, and there are two of some
        ("p? p?", (0, 1), {0: BoundFacts(1, 9), 1: BoundFacts(2, 9)}, False, False),
        ("p? p?", (0, 1), {0: BoundFacts(0, 9), 1: BoundFacts(2, 9)}, False, True),
        ("p? p?", (0, 1), {0: BoundFacts(1, 9, 1), 1: BoundFacts(2, 8, 2)}, True, False),
        ("p? p?", (0, 1), {0: BoundFacts(2, 2**16), 1: BoundFacts(2, 2**16)}, False, True),
        ("c8", (0,), {}, True, False),
        ("c9", (0,), {}, False, False),
    ],
)
def test_make_option(text: str, axes: tuple[int, ...], facts: dict[int, BoundFacts], even: bool, guarded: bool) -> None:
    """What is proved of a split of two cores decides whether its launch has to look."""
    option = make_option(grid(text), axes, 2, facts)
    assert (option.split.even, option.guarded) == (even, guarded)


def facts_of(values: Sequence[int]) -> BoundFacts:
    """All that can be known of a bound which is one of these."""
    return BoundFacts(min(values), max(values), math.gcd(*values))


@given(
    st.integers(2, 8),
    st.lists(st.lists(st.integers(-3, 40), min_size=1, max_size=4), min_size=1, max_size=3),
    st.sampled_from(["", " a2", " a8", " a3", " a4 a?"]),
)
def test_proofs_hold(cores: int, values: list[list[int]], inner: str) -> None:
    """What a split claims holds for all bounds: even ones leave no rest, unguarded ones have a step for every core."""
    dimensions = grid("p? " * len(values) + inner)
    facts = {axis: facts_of(some) for axis, some in enumerate(values)}
    option = make_option(dimensions, tuple(range(len(values))), cores, facts)
    for bounds in itertools.product(*values):
        steps = math.prod(bounds)
        if option.split.even:
            assert steps % cores == 0
        if not option.guarded:
            assert min(bounds) >= 0
            assert steps >= cores or (option.split.even and steps == 0)
            assert steps <= option.split.step_limit


@given(st.integers(2, 8), st.lists(st.integers(1, 40), min_size=1, max_size=3))
def test_static_bounds_are_known(cores: int, bounds: list[int]) -> None:
    """Of a static bound everything is known: it is even where it is a multiple, and guarded where it is too small."""
    dimensions = grid(" ".join(f"p{bound}" for bound in bounds))
    option = make_option(dimensions, tuple(range(len(bounds))), cores, {})
    steps = math.prod(bounds)
    assert option.split.static_steps == steps
    assert option.split.even == (steps % cores == 0)
    assert option.guarded == (steps < cores)
