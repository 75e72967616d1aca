"""Which variants `keep=profitable` keeps: by measured schedules, and by what folds away where there is no compiler."""

from __future__ import annotations

from collections.abc import Iterable

import dynamic_programs
import pytest
from jaxlib.mlir import ir
from specialize_checks import specialized

from mosaic_grid.context import create_context
from mosaic_grid.libtpu import libtpu_available
from mosaic_grid.passes.specialize_grid import SpecializeGrid
from mosaic_grid.program import Launch, Program
from mosaic_grid.targets import Target, parse_target
from mosaic_grid.unpack import unpack
from mosaic_grid.variants import profit
from mosaic_grid.variants.measure import Measured, cost_ratio, measure
from mosaic_grid.variants.plan import Plan, Steps, Variant
from mosaic_grid.variants.profit import Judge
from mosaic_grid.variants.verdict import Thresholds, judged_by_schedule

CONTEXT = create_context()
ORIGINAL = Measured(100, 1, 1000, 2.0)


@pytest.mark.parametrize(
    ("variant", "kept", "words"),
    [
        (Measured(98, 1, 1000, 2.0), True, "2.0% better"),
        (Measured(99, 1, 1000, 2.0), False, "1.0% better, it takes 2%"),
        (Measured(110, 2, 1000, 2.0), True, "45.0% better"),
        (Measured(110, 1, 1000, 2.0), False, "10.0% worse, it takes 2%"),
        (Measured(None, 1, 1000, 2.0), False, "the compiler doesn't say what it gains"),
        (Measured(None, None, None, 2.0, "too large"), False, "it doesn't compile: too large"),
    ],
)
def test_a_variant_is_kept_for_its_schedule(variant: Measured, kept: bool, words: str) -> None:
    """What counts is the schedule divided by the cores; what isn't known is no gain."""
    (verdict,) = judged_by_schedule([(ORIGINAL, variant)], Thresholds(2))
    assert (verdict.kept, verdict.reason) == (kept, words)


def test_no_gain_is_not_kept_where_it_is_a_loss() -> None:
    """A least gain of nothing keeps what is as good, and nothing that is worse."""
    variants = [Measured(100, 1, 1, 1.0), Measured(101, 1, 1, 1.0)]
    same, worse = judged_by_schedule([(ORIGINAL, variant) for variant in variants], Thresholds(0))
    assert same.kept
    assert not worse.kept


@pytest.mark.parametrize(
    ("original", "variant", "ratio"),
    [
        # steps count, and not what is done once around them
        (Measured(100, 1, 0, 0.0, step=80), Measured(100, 1, 0, 0.0, step=60), 0.75),
        (Measured(100, 1, 0, 0.0, step=80), Measured(150, 2, 0, 0.0, step=100), 0.625),
        # a grid of one step sets no loop up, which the other does
        (Measured(100, 1, 0, 0.0, step=80), Measured(50, 1, 0, 0.0, step=50), 0.5),
        (Measured(50, 1, 0, 0.0, step=50), Measured(100, 1, 0, 0.0, step=80), 2.0),
        # what is known of both is compared
        (Measured(100, 1, 0, 0.0), Measured(50, 1, 0, 0.0, step=40), 0.5),
        (Measured(100, 1, 0, 0.0, step=80), Measured(None, 1, 0, 0.0), None),
    ],
)
def test_what_is_compared(original: Measured, variant: Measured, ratio: float | None) -> None:
    """Steps are, for each core, where both kernels have a loop over them; else whole schedules."""
    assert cost_ratio(variant, original) == ratio


def test_budgets_go_to_the_best() -> None:
    """The variants that gain most come first, and one that doesn't fit leaves room for a smaller one."""
    variants = [
        (ORIGINAL, variant)
        for variant in (Measured(90, 1, 600, 1.0), Measured(50, 1, 700, 1.0), Measured(95, 1, 200, 1.0))
    ]
    verdicts = judged_by_schedule(variants, Thresholds(2, code_bytes=1000))
    assert [verdict.kept for verdict in verdicts] == [False, True, True]
    assert verdicts[0].reason == "with it there are 1300 bytes of code, beyond the budget"
    verdicts = judged_by_schedule(variants, Thresholds(2, seconds=2))
    assert [verdict.kept for verdict in verdicts] == [True, True, False]
    (unknown,) = judged_by_schedule([(ORIGINAL, Measured(50, 1, None, 1.0))], Thresholds(2, code_bytes=1000))
    assert not unknown.kept


def test_budgets_are_of_the_whole_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the variants of one kernel take isn't there for another's, and equal launches are counted once."""
    texts = [dynamic_programs.programs()[name][0] for name in ("matmul", "scale_in_place")]
    measured = {2: Measured(90, 1, 600, 1.0), 4: Measured(50, 1, 700, 1.0)}

    def measure(_: Launch, variants: Iterable[Variant | None], target: Target) -> list[Measured]:
        return [ORIGINAL if each is None else measured[each.steps[0].bound] for each in variants]

    monkeypatch.setattr(profit, "libtpu_available", lambda: True)
    monkeypatch.setattr(profit, "measure", measure)
    with CONTEXT, ir.Location.unknown():
        modules = [ir.Operation.parse(text).operation for text in texts]
        for module in modules:
            unpack(module)
        one, two = (launch for module in modules for launch in Program(module).launches)
        small, large = (Variant((Steps(0, bound, bound),)) for bound in (2, 4))
        plans = [Plan(one, (small,), False), Plan(one, (small, large), False), Plan(two, (small,), True)]
        judge = Judge(parse_target("v5p"), Thresholds(2, code_bytes=1300))
        kept = judge.profitable(plans)
        assert [plan.variants for plan in kept] == [(small,), (small, large), ()]
        assert [plan.complete for plan in kept] == [False, False, False]
        assert len(judge.remarks) == 2


@pytest.mark.parametrize(
    ("target", "kept"), [("v5p", {"kernel_d0_2_d2_1", "kernel_d0_2_d2_3"}), ("v5e", {"kernel_d0_2_d2_1"})]
)
def test_without_a_compiler_folds_decide(target: str, kept: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A variant is kept that gains a core, or in which a branch is decided: both guards of a sum of one step are."""
    monkeypatch.setattr(profit, "libtpu_available", lambda: False)
    text, _ = dynamic_programs.programs()["matmul"]
    with CONTEXT, ir.Location.unknown():
        program = specialized(text, SpecializeGrid(values=("0=2", "2=1", "3"), keep="profitable"), target)
        assert set(program.grids) - {"kernel"} == kept
        (remark,) = program.diagnostics
        assert remark.name == "variants-kept"
        assert len(remark.notes) == 2
    # what they cost isn't known then, and that is said
    with CONTEXT, ir.Location.unknown():
        options = SpecializeGrid(values=("2=1",), keep="profitable", code_budget=1)
        (remark,) = specialized(text, options, target).diagnostics
        assert remark.notes[-1].message.startswith("no budget is kept to")
    # and a launch that keeps none stays as it was
    with CONTEXT, ir.Location.unknown():
        program = specialized(text, SpecializeGrid(values=("2=3",), keep="profitable"), target)
        assert str(program.after) == str(program.before)


@pytest.mark.libtpu
@pytest.mark.skipif(not libtpu_available(), reason="there is no libtpu")
def test_the_compiler_measures() -> None:
    """Each variant is compiled by itself: the static one runs on both cores, and one that can't be is told why."""
    text, _ = dynamic_programs.programs()["scale_in_place"]
    with CONTEXT, ir.Location.unknown():
        module = ir.Operation.parse(text).operation
        unpack(module)
        before = str(module)
        (launch,) = Program(module).launches
        variants = [None, Variant((Steps(0, 4, 4),)), Variant((Steps(0, 2**29, 2**29),))]
        original, static, huge = measure(launch, variants, parse_target("v5p"))
        assert str(module) == before
    assert (original.cores, static.cores) == (1, 2)
    assert original.bundles
    assert static.bundles
    assert static.bundles < 1.5 * original.bundles
    assert original.step
    assert static.step
    assert original.step < original.bundles
    assert static.step < static.bundles
    assert static.code_bytes
    assert not static.error
    assert huge.error or huge.bundles
