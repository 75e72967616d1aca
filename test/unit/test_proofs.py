"""Proofs about the grids that people write: what is said, and that a question ends."""

from __future__ import annotations

import islpy as isl
import pytest

from mosaic_grid import symbolic as sym
from mosaic_grid.symbolic import proofs
from mosaic_grid.symbolic.contracts import contracts_of
from mosaic_grid.symbolic.proofs import Grid, Window
from mosaic_grid.symbolic.proofs.affine import least

I32 = sym.type_range(32, True)
N = sym.parameter("n", I32)
M = sym.parameter("m", I32)
D0, D1 = (sym.parameter(f"d{axis}", sym.Range(0, 2**31 - 2)) for axis in range(2))
c = sym.constant
BLOCKS = sym.minimum(c(5), sym.ceildiv(N, c(128)))


def window(*index: sym.Expr, array: tuple[int, ...] = (640, 512), block: tuple[int, ...] = (128, 128)) -> Window:
    """A window of an ordinary block spec."""
    return Window(index, block, tuple(map(c, array)))


def grid(*contracts: str, bounds: tuple[sym.Expr, ...] = (BLOCKS, c(4))) -> Grid:
    """A grid whose first dimension is parallel."""
    return Grid(bounds, ("parallel", "arbitrary", "arbitrary")[: len(bounds)], contracts_of(contracts))


def told(verdict: sym.Verdict) -> str:
    """The answer as a person reads it."""
    match verdict:
        case sym.Proved():
            return "proved"
        case sym.Refuted(witness):
            return str(witness)
        case sym.Unknown(reason):
            return f"unknown: {reason}"


def lengths(*index: sym.Expr) -> sym.Expr:
    """An element of the prefetch operand `lengths`."""
    return sym.load("lengths", index, I32)


def test_the_bound_reads_as_it_was_written() -> None:
    """A bound over an input prints without parentheses too many."""
    assert str(BLOCKS) == "min(5, ceildiv(n, 128))"


def test_races() -> None:
    """Proved, or the two steps and the block, with the least input that gives them."""
    assert told(proofs.no_race(grid(), window(D0, D1))) == "proved"
    shared = proofs.no_race(grid(), window(sym.floordiv(D0, c(2)), D1))
    assert told(shared) == "n = 129, first step (0, 0), second step (1, 0), block (0, 0)"
    assert told(proofs.no_race(grid("n <= 128"), window(sym.floordiv(D0, c(2)), D1))) == "proved"
    # the same block, in a dimension whose steps run in order
    assert told(proofs.no_race(grid(), window(D0, c(0)))) == "proved"


def test_race_through_an_alias() -> None:
    """A step reads the block that another one writes."""
    written, read = window(D0, D1), window(sym.maximum(sym.sub(D0, c(1)), c(0)), D1)
    verdict = proofs.no_race(grid(), written, read)
    assert told(verdict) == "n = 129, first step (0, 0), second step (1, 0), block (0, 0)"
    assert told(proofs.no_race(grid(), written, written)) == "proved"


def test_revisits() -> None:
    """Consecutive visits are fine, later ones are shown with the step that left the block."""
    assert told(proofs.revisits_follow(grid(), window(D0, c(0)))) == "proved"
    back = proofs.revisits_follow(grid(), window(c(0), D1))
    assert told(back) == "n = 129, first step (0, 0), left step (0, 3), again step (1, 0), block (0, 0)"
    assert told(proofs.revisits_follow(grid("n <= 128"), window(c(0), D1))) == "proved"


def test_coverage() -> None:
    """Every block has a step, under a contract, or one is named that has none."""
    assert told(proofs.covered(grid(), window(D0, D1))) == "n = 1, block (1, 0)"
    assert told(proofs.covered(grid("n > 512"), window(D0, D1))) == "proved"
    assert (
        told(proofs.covered(grid("n > 512"), window(D0, sym.mul(c(2), D1), array=(640, 1024))))
        == "n = 513, block (0, 1)"
    )


def test_windows_in_their_arrays() -> None:
    """A partial last block is inside, one that starts behind the end is not, nor one before the beginning."""
    assert told(proofs.meets_array(grid(), window(D0, D1, array=(513, 500)))) == "proved"
    outside = proofs.meets_array(grid(), window(D0, D1, array=(512, 512)))
    assert told(outside) == "n = 513, only step (4, 0), block (4, 0)"
    before = proofs.meets_array(grid(), window(sym.sub(D0, c(1)), D1))
    assert told(before) == "n = 1, only step (0, 0), block (-1, 0)"
    halo = Window((D0,), (10,), (c(40),), strides=(8,), offsets=(-1,))
    assert told(proofs.meets_array(grid(bounds=(c(6),)), halo)) == "proved"
    assert told(proofs.meets_array(grid(bounds=(c(7),)), halo)) == "only step (6), block (6)"


def test_what_is_read_at_run_time_is_no_witness() -> None:
    """A table may hold anything: no race and no absence of one is claimed, unless a contract or the form settles it."""
    by_table = window(lengths(D0), D1)
    reason = "unknown: it depends on lengths[d0], which is read at run time"
    assert told(proofs.no_race(grid("n > 512"), by_table)) == reason
    assert told(proofs.covered(grid("n > 512"), by_table)) == reason
    assert told(proofs.meets_array(grid(), by_table)) == reason
    assert told(proofs.meets_array(grid("0 <= lengths[*] < 5"), by_table)) == "proved"
    # whatever the entry is, it is the same
    same = window(lengths(D1), D1)
    assert (
        told(proofs.no_race(grid(), same)) == "n = 129, first step (0, 0), second step (1, 0), block (lengths[d1], 0)"
    )
    # and another dimension may tell the steps apart
    assert told(proofs.no_race(grid(), window(lengths(D0), D0))) == "proved"


def test_contracts_relate_tables() -> None:
    """A contract over two arrays holds place by place."""
    starts = sym.load("starts", (D0,), I32)
    both = grid("0 <= starts[*]", "starts[*] < lengths[*]", "lengths[*] <= 5")
    assert told(proofs.meets_array(both, window(starts, D1))) == "proved"
    assert "unknown" in told(proofs.meets_array(grid("starts[*] < lengths[*]"), window(starts, D1)))


def test_products_are_unknown_functions() -> None:
    """Equal factors give equal products; more is known of a range only."""
    assert told(proofs.no_race(grid(), window(sym.add(D0, sym.mul(N, M)), D1))) == "proved"
    square = proofs.no_race(grid(), window(sym.mul(D0, N), D1))
    assert told(square) == "unknown: it depends on d0*n, which is not linear"


def test_an_opaque_bound_is_no_input() -> None:
    """It is never said that a computed value is one that would be bad, but what holds for all of them is."""
    opaque = frozenset({"n"})
    loop = Grid((N, c(4)), ("parallel", "arbitrary"), contracts_of(["n >= 3"]), opaque)
    assert told(proofs.no_race(loop, window(c(0), D1))) == "first step (0, 0), second step (1, 0), block (0, 0)"
    late = window(sym.floordiv(sym.maximum(D0, c(5)), c(8)), D1)
    early = window(sym.maximum(D0, c(5)), D1)
    assert isinstance(proofs.no_race(loop, late), sym.Refuted)
    assert isinstance(proofs.no_race(loop, early), sym.Refuted)
    assert isinstance(proofs.no_race(loop, window(sym.maximum(sym.sub(D0, c(4)), sym.neg(D0)), D1)), sym.Unknown)


def test_a_bound_has_a_name_in_index_maps() -> None:
    """`at_steps` says that what the kernel calls `n0` is the bound."""
    called = sym.parameter("n0", sym.Range(1, 2**31 - 1))
    backwards = window(sym.sub(sym.sub(called, c(1)), D0), D1)
    bare = Grid((BLOCKS, c(4)), ("parallel", "arbitrary"))
    known = Grid(bare.bounds, bare.semantics, at_steps=(sym.comparison("==", called, BLOCKS),))
    assert told(proofs.meets_array(known, backwards)) == "proved"
    assert isinstance(proofs.meets_array(bare, backwards), sym.Refuted)


def test_wrap_around_is_not_assumed_away() -> None:
    """An i32 sum that wraps has the value it wraps to, unless a contract excludes that."""
    far = sym.wrap(sym.add(N, c(1)), 32, True)
    assert proofs.extent(sym.sub(far, N)) == sym.Range(1 - 2**32, 1)
    assert proofs.extent(sym.sub(far, N), contracts_of(["n <= 1000"])) == sym.Range(1, 1)


def test_a_question_that_is_too_long_ends() -> None:
    """Out of operations is an answer, for every question, and other questions are answered after it."""
    hard = window(sym.mod(sym.mul(D0, c(7)), c(13)), sym.floordiv(sym.add(sym.mul(D1, c(5)), N), c(3)))
    too_complex = sym.Unknown("too complex")
    for question in (proofs.no_race, proofs.revisits_follow, proofs.covered, proofs.meets_array):
        assert question(grid("mod(n, 3) == 1"), hard, most=50) == too_complex
    assert proofs.extent(BLOCKS, most=5) == too_complex
    assert proofs.extent(BLOCKS) == sym.Range(-(2**24), 5)


def test_a_context_is_usable_after_its_limit() -> None:
    """The limit holds inside, is told from other failures, and is gone afterwards."""
    context = isl.Context()
    points = isl.Set.read_from_str(context, "[n] -> { [i, j] : 0 <= i < n and 0 <= j <= i and (i + 3j) mod 7 = 2 }")
    with pytest.raises(proofs.TooComplexError), proofs.limited(context, 10):
        points.project_out(isl.dim_type.set, 0, 1).subtract(points.project_out(isl.dim_type.set, 1, 1)).is_empty()
    assert not points.project_out(isl.dim_type.set, 0, 1).is_empty()
    with pytest.raises(proofs.UndecidedError, match="isl fails"), proofs.limited(context):
        points.intersect(isl.Set.read_from_str(context, "{ [i] : i = 0 }"))


def test_a_window_has_one_rank() -> None:
    """Parts of different lengths are the caller's mistake."""
    with pytest.raises(ValueError, match="a window of one rank"):
        Window((D0, D1), (128,), (c(640),))


def test_the_least_value_of_a_set_with_an_empty_piece() -> None:
    """isl's `dim_min_val` says 0 here, and for a bound of n its least value would be no bound."""
    context = isl.Context()
    points = isl.Set.read_from_str(context, "{ [i] : 2 <= i <= 3 }")
    with_nothing = points.union(isl.Set.read_from_str(context, "{ [i] : exists a : i = 2a and i = 2a + 1 }"))
    assert least(with_nothing, 0) == 2
    even = sym.parameter("m", sym.Range(-2, 4), divisor=2)
    twice = sym.maximum(even, sym.mul(c(2), even))
    assert proofs.extent(twice, contracts_of(["m >= 1"], {"m": even.range})) == sym.Range(4, 8)
