"""Whether counting dimensions together pays: rough costs of a step, and the shares that are weighed against them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jaxlib.mlir import ir

from mosaic_grid.context import create_context
from mosaic_grid.grid import Dimension, Semantics
from mosaic_grid.partition import cost
from mosaic_grid.partition.cost import DIVISION_BUNDLES, division_overhead_percent, linearizing_pays, step_bundles
from mosaic_grid.partition.plan import BoundFacts
from mosaic_grid.partition.split import Split
from mosaic_grid.program import Kernel

CONTEXT = create_context()


def kernel_of(ops: str, arguments: str) -> Kernel:
    """A kernel without a grid."""
    text = f"module {{ func.func @k({arguments}) {{ %c0 = arith.constant 0 : index\n {ops}\n return }} }}"
    return Kernel(ir.Module.parse(text, CONTEXT).operation)


def kernel_of_bundles(bundles: int) -> Kernel:
    """A kernel that loads so many vector registers of 8 by 128 elements."""
    shape = f"{8 * bundles}x128xf32"
    memory = f"memref<{shape}, #tpu.memory_space<vmem>>"
    return kernel_of(f"%v = vector.load %x[%c0, %c0] : {memory}, vector<{shape}>", f"%x: {memory}")


def split_of(cores: int, dimensions: int) -> Split:
    """A split of so many dynamic parallel dimensions, counted together."""
    grid = (Dimension(None, Semantics.PARALLEL),) * dimensions
    return Split(grid, cores, tuple(range(dimensions)), (), even=False)


def pinned(*bounds: int) -> Mapping[int, BoundFacts]:
    """Facts of which only one value of each bound is true."""
    return {axis: BoundFacts(bound, bound) for axis, bound in enumerate(bounds)}


@pytest.mark.parametrize(
    ("shape", "bundles"), [("8x128xf32", 1), ("1x1xf32", 1), ("8x129xf32", 2), ("16x256xf32", 4), ("3x8x128xf32", 3)]
)
def test_vectors_are_counted_by_registers(shape: str, bundles: int) -> None:
    """An op costs a bundle for each register of its result; a started one is a whole one."""
    memory = f"memref<{shape}, #tpu.memory_space<vmem>>"
    zeros = ", ".join(["%c0"] * shape.count("x"))
    kernel = kernel_of(f"%v = vector.load %x[{zeros}] : {memory}, vector<{shape}>", f"%x: {memory}")
    assert step_bundles(kernel) == bundles


def test_scalars_are_free_and_regions_count() -> None:
    """Scalar ops cost nothing here, and what stands in a region counts once."""
    memory = "memref<8x128xf32, #tpu.memory_space<vmem>>"
    load = f"vector.load %x[%c0, %c0] : {memory}, vector<8x128xf32>"
    kernel = kernel_of(f"%c = arith.cmpi eq, %c0, %c0 : index\n scf.if %c {{ %v = {load} }}", f"%x: {memory}")
    assert step_bundles(kernel) == 1


@pytest.mark.parametrize(
    ("m", "k", "n", "bundles"), [(128, 128, 128, 16), (256, 128, 128, 32), (128, 256, 256, 64), (8, 128, 128, 1)]
)
def test_matmuls_are_counted_by_passes(m: int, k: int, n: int, bundles: int) -> None:
    """A matmul costs a bundle for 8 rows, in every tile of 128 by 128 of the right operand."""
    types = [f"vector<{a}x{b}xf32>" for a, b in ((m, k), (k, n), (m, n))]
    numbers = "dimension_numbers = #tpu.dot_dimension_numbers<[1], [0], [0], [1], [0, 0, 1, 1], [], []>"
    hints = "transpose_lhs_hint = false, transpose_rhs_hint = false"
    kernel = kernel_of(
        f"%r = tpu.matmul %a, %b, %c {{{numbers}, {hints}}} : {types[0]}, {types[1]}, {types[2]} -> {types[2]}",
        f"%a: {types[0]}, %b: {types[1]}, %c: {types[2]}",
    )
    assert step_bundles(kernel) == bundles


@pytest.mark.parametrize(
    ("bundles", "dimensions", "percent"), [(60, 2, 100), (60, 3, 200), (600, 2, 10), (601, 2, 10), (6000, 2, 1)]
)
def test_division_overhead(bundles: int, dimensions: int, percent: int) -> None:
    """A step pays a division for each dimension but the first; the percentage is rounded up."""
    kernel = kernel_of_bundles(bundles)
    assert division_overhead_percent(kernel, split_of(2, dimensions)) == percent


def test_an_empty_step_is_no_division_by_zero() -> None:
    """A kernel that does nothing has a step of one bundle, of which divisions are many times the cost."""
    kernel = kernel_of("", "")
    assert division_overhead_percent(kernel, split_of(2, 2)) == 100 * DIVISION_BUNDLES


@pytest.mark.parametrize(
    ("cores", "bounds", "bundles", "pays"),
    [
        (2, (3, 3), 400, True),  # 5 steps of 115 % against 6
        (2, (3, 3), 200, False),  # 5 steps of 130 %
        (2, (2, 2), 10**5, False),  # two each, one way or the other
        (2, (4, 3), 10**5, False),  # an even dimension leaves nothing to gain
        (2, (1, 5), 10**5, False),  # 3 either way
        (4, (3, 3), 100, True),  # neither has a step for every core: 3 steps of 160 % against 9 on one core
        (4, (3, 3), 25, False),  # 3 steps of 340 %
        (4, (1, 3), 10**5, True),  # one step each for three of four cores, against 3 on one
    ],
)
def test_linearizing_pays(cores: int, bounds: tuple[int, ...], bundles: int, pays: bool) -> None:
    """It pays where the largest share shrinks by more than the divisions add to it."""
    kernel = kernel_of_bundles(bundles)
    assert linearizing_pays(kernel, split_of(cores, len(bounds)), pinned(*bounds)) == pays


def test_some_bounds_are_enough() -> None:
    """With nothing known of the bounds it pays as soon as there are bounds for which it does."""
    kernel = kernel_of_bundles(10**4)
    assert linearizing_pays(kernel, split_of(2, 2), {})
    assert not linearizing_pays(kernel, split_of(2, 2), {0: BoundFacts(0, 0), 1: BoundFacts(1, 9)})


@given(st.sampled_from([2, 4]), st.lists(st.integers(1, 9), min_size=2, max_size=3), st.sampled_from([50, 400, 5000]))
def test_linearizing_pays_by_brute_force(cores: int, bounds: list[int], bundles: int) -> None:
    """The same as dealing out every step and comparing the longest shares."""
    kernel = kernel_of_bundles(bundles)
    split = split_of(cores, len(bounds))
    steps = list(itertools.product(*map(range, bounds)))
    joint = max(len(steps[core::cores]) for core in range(cores))
    single = [
        max(sum(step[axis] % cores == core for step in steps) for core in range(cores))
        for axis, bound in enumerate(bounds)
        if bound >= cores
    ]
    percent = math.ceil(100 * (len(bounds) - 1) * DIVISION_BUNDLES / bundles)
    expected = joint * (100 + percent) < 100 * min(single, default=len(steps))
    assert linearizing_pays(kernel, split, pinned(*bounds)) == expected


def test_many_dimensions_are_judged_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many dimensions there are, the number of combinations that are tried is bounded."""
    tried = 0
    real = cost._largest_joint

    def counted(bounds: tuple[int, ...], cores: int) -> int:
        nonlocal tried
        tried += 1
        return real(bounds, cores)

    monkeypatch.setattr(cost, "_largest_joint", counted)
    assert not cost.linearizing_pays(kernel_of_bundles(1), split_of(8, 9), {})
    assert 0 < tried <= cost.TRIED
