"""Which bounds `specialize-grid` is asked for: how its options are read, and what variants they make."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosaic_grid.errors import UserError
from mosaic_grid.grid import Dimension, Semantics
from mosaic_grid.pass_options import parse_options, pass_to_text
from mosaic_grid.passes.specialize_grid import SpecializeGrid
from mosaic_grid.pipeline_syntax import place_in
from mosaic_grid.variants.plan import Possible, Steps, Variant, buckets, covers, exact
from mosaic_grid.variants.wishes import Ladder, Wish, parse_ladder, parse_wishes, wishes_of


def test_values_are_read() -> None:
    """A key holds until the next one, a range is all of its values, and what is said twice counts once."""
    elements = ["8", "16", "0=8", "9..11", "9", "gmm*:n=1024", "0=7"]
    assert parse_wishes(elements) == (
        Wish((8, 16)),
        Wish((8, 9, 10, 11, 7), "0"),
        Wish((1024,), "n", "gmm*"),
    )


@pytest.mark.parametrize("element", ["", "x", "8,9", "=8", ":8", "a:b:c=8", "1..2..3", "n=", "3.5", "5..4"])
def test_what_is_no_value_is_refused(element: str) -> None:
    """Anything else than a number or a range with a key is an error that says what is expected."""
    with pytest.raises(ValueError, match="value"):
        parse_wishes([element])


def test_options_survive_a_round_trip() -> None:
    """The text of a pass with keys in its values gives an equal pass."""
    options = SpecializeGrid(values=("0=8", "16", "gmm:n=1..4", "@a b"), ladder="multiples-of:8", bucket="round-up")
    text = pass_to_text(options).removeprefix("specialize-grid{").removesuffix("}")
    assert parse_options(SpecializeGrid, text, lambda offset: place_in(text, offset)) == options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("values=4..1", "the range '4..1' has to have 1 to 1024 values"),
        ("values=1..2000", "the range '1..2000' has to have 1 to 1024 values"),
        ("values=2147483648", "a bound can't be 2147483648: bounds have 32 bits"),
        ("ladder=multiples-of:0", "option 'ladder' expects pow2, auto or multiples-of:NUMBER, got 'multiples-of:0'"),
        ("budget=0", "option 'budget' expects an integer from 1 to 64, got 0"),
        ("min-gain=101", "option 'min-gain' expects a percentage from 0 to 100, got 101"),
        ("code-budget=100", "option 'code-budget' expects a positive integer, and keep=profitable"),
        ("keep=profitable compile-budget=0", "option 'compile-budget' expects a positive integer, and keep=profitable"),
        ("target=v5x", "option 'target': unknown target 'v5x'; did you mean 'v5p'?"),
    ],
)
def test_bad_options_are_refused(options: str, message: str) -> None:
    """What an option can't be is said when the pipeline is read."""
    with pytest.raises(UserError) as caught:
        parse_options(SpecializeGrid, options, lambda offset: place_in(options, offset))
    assert caught.value.message == f"pass 'specialize-grid': {message}"


def test_a_file_holds_values(tmp_path: Path) -> None:
    """Lines of a file are read as the option is, each by itself, and add to what the option says."""
    (tmp_path / "values").write_text("# seen\nn=8,9\n3  # of any bound\n\nk:0=1..2 5\n")
    assert wishes_of(["n=7", f"@{tmp_path / 'values'}"]) == (
        Wish((7, 8, 9), "n"),
        Wish((3,)),
        Wish((1, 2, 5), "0", "k"),
    )


def test_a_bad_file_is_told_with_its_line(tmp_path: Path) -> None:
    """What can't be read in a file is an error at its line."""
    (tmp_path / "values").write_text("n=8\nn=many\n")
    with pytest.raises(UserError) as caught:
        wishes_of([f"@{tmp_path / 'values'}"])
    assert caught.value.place is not None
    assert caught.value.place.line == 2


@pytest.mark.parametrize(
    ("text", "least", "most", "rungs"),
    [
        ("pow2", 1, 20, [1, 2, 4, 8, 16]),
        ("pow2", 3, 8, [4, 8]),
        ("auto", 5, 7, []),
        ("multiples-of:6", 1, 20, [6, 12, 18]),
        ("multiples-of:6", 7, 18, [12, 18]),
        ("multiples-of:6", -5, 5, []),
    ],
)
def test_rungs(text: str, least: int, most: int, rungs: list[int]) -> None:
    """A ladder's rungs are those that lie within the range."""
    ladder = parse_ladder(text)
    assert ladder is not None
    assert ladder.rungs(least, most) == rungs


@pytest.mark.parametrize("text", ["pow", "multiples-of:", "multiples-of:0", "multiples-of:-2", "8"])
def test_what_is_no_ladder_is_refused(text: str) -> None:
    """Anything else is an error; nothing is no ladder."""
    assert parse_ladder("") is None
    assert parse_ladder("auto") == Ladder(automatic=True)
    with pytest.raises(ValueError, match="expects pow2, auto or multiples-of:NUMBER"):
        parse_ladder(text)


@st.composite
def ranges(draw: st.DrawFn) -> Possible:
    """A range of bounds and what divides them."""
    low = draw(st.integers(-4, 20))
    return Possible(low, low + draw(st.integers(0, 20)), draw(st.integers(1, 4)))


@given(ranges())
def test_a_range_knows_its_values(possible: Possible) -> None:
    """Number, order and end of the possible values are those that counting them gives."""
    values = [n for n in range(-50, 50) if n in possible]
    assert list(possible.all()) == values
    assert len(possible) == len(values)
    assert not values or possible.highest == values[-1]


@given(ranges(), st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_buckets_cover_all_up_to_their_ends(possible: Possible, ends: list[int]) -> None:
    """Each possible bound of at least 1 up to the last end is in one bucket, whose end is the least above it.

    Other bounds are in none, unless it is a bucket of one bound. A bucket of one is not guarded.
    """
    made = buckets(0, ends, possible)
    for n in range(-10, 50):
        holding = [steps.bound for steps in made if steps.low <= n <= steps.bound]
        if n in possible and 1 <= n <= max(ends):
            assert holding == [min(end for end in ends if end >= n)]
        elif n < 1 or n > max(ends):
            assert not holding
    for steps in made:
        held = [n for n in range(steps.low, steps.bound + 1) if n in possible]
        assert steps.guarded == (steps.low != steps.bound)
        assert steps.guarded or held in ([steps.bound], [])


@given(ranges(), ranges(), st.data())
def test_completeness_is_what_counting_says(one: Possible, two: Possible, data: st.DataObject) -> None:
    """Variants are called complete exactly where each possible pair of bounds is one of a variant."""
    possible = {0: one, 2: two}
    choices: list[tuple[Steps, ...]] = []
    for axis, each in possible.items():
        values = [n for n in each.all() if n >= 1]
        chosen = sorted(data.draw(st.sets(st.sampled_from(values), min_size=1))) if values else []
        choices.append(buckets(axis, chosen, each) if data.draw(st.booleans()) else exact(axis, chosen))
    variants = [Variant(steps) for steps in itertools.product(*choices)]
    missing = [
        (n, m)
        for n, m in itertools.product(one.all(), two.all())
        if not any(a.low <= n <= a.bound and b.low <= m <= b.bound for a, b in itertools.product(*choices))
    ]
    assert covers(variants, possible) == (bool(variants) and not missing)


def test_a_guard_keeps_what_lies_inside_on_one_core() -> None:
    """From the guarded dimension on all dimensions are arbitrary; those around it stay as they are."""
    grid = [Dimension(bound, Semantics.PARALLEL) for bound in (2, None, 4, None)]
    guarded = Variant((Steps(1, 5, 8),)).grid(grid)
    assert [(d.bound, d.is_parallel) for d in guarded] == [(2, True), (8, False), (4, False), (None, False)]
    static = Variant((Steps(1, 8, 8),), frozenset({1})).grid(grid)
    assert [(d.bound, d.is_parallel) for d in static] == [(2, True), (8, False), (4, True), (None, True)]
    assert Variant((Steps(1, 5, 8),)).text(grid) == "(2, 5..8, 4, ?)"
