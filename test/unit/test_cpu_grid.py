"""`lower-to-cpu` runs any grid with any windows as it is run by hand: step by step, element by element."""

from __future__ import annotations

from collections.abc import Sequence

import grid_reference
import numpy as np
import pytest
from cpu_programs import compiled as compiled_program
from grid_kernels import Dim, GridKernel, Term, Window
from grid_strategies import TABLE_VALUES, bounds_of, kernels
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxlib.mlir import ir

from mosaic_grid.context import create_context, unknown_location
from mosaic_grid.cpu.execute import Executable
from mosaic_grid.cpu.options import Options

CONTEXT = create_context()


def compiled(kernel: GridKernel, options: Options | None = None) -> Executable:
    """The kernel's program for the CPU."""
    with CONTEXT, unknown_location():
        return compiled_program(ir.Module.parse(kernel.text()).operation, options)


def check(kernel: GridKernel, executable: Executable, bounds: Sequence[int], seed: int = 0) -> None:
    """Runs the kernel with these bounds, of all dimensions, and by hand."""
    dice = np.random.default_rng(seed)
    tables = [dice.integers(0, TABLE_VALUES, length, np.int32) for length in kernel.tables]
    inputs = [dice.integers(-100, 100, window.array, np.int32) for window in kernel.inputs]
    given = [np.asarray(n, np.int32) for n, dim in zip(bounds, kernel.grid, strict=True) if dim.dynamic]
    found = executable(*given, *tables, *inputs)
    expected = grid_reference.run(kernel, bounds, tables, inputs)
    for k, (one, other) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_array_equal(one, other, err_msg=f"output {k}, bounds {list(bounds)}", strict=True)


def check_launches(data: st.DataObject, kernel: GridKernel, options: Options | None = None) -> None:
    """Runs the kernel with all its steps, and with some other bounds if it has dynamic ones."""
    executable = compiled(kernel, options)
    check(kernel, executable, [dim.bound for dim in kernel.grid])
    if any(dim.dynamic for dim in kernel.grid):
        for seed in range(1, 4):
            check(kernel, executable, data.draw(st.composite(bounds_of)(kernel)), seed)


@settings(max_examples=40)
@given(data=st.data())
def test_random_kernels(data: st.DataObject) -> None:
    """Grids, index maps, cut and padded blocks, aliases, accumulation and scratch give what they give by hand."""
    check_launches(data, data.draw(kernels()))


@settings(max_examples=15)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_cores_that_take_turns(data: st.DataObject, seed: int) -> None:
    """Where no core writes what another uses, every order in which they take turns gives the same."""
    check_launches(data, data.draw(kernels(disjoint=True)), Options(interleave=seed))


@pytest.mark.full
@settings(max_examples=500)
@given(data=st.data())
def test_many_random_kernels(data: st.DataObject) -> None:
    """The same with many more."""
    check_launches(data, data.draw(kernels()))


# What random kernels seldom are.

AT, NEXT, BACK = Term("index", 0), Term("index", 1), Term("back", 0)
DYNAMIC = Dim(3, dynamic=True)


def row(*terms: Term, array: tuple[int, ...], pad: tuple[int, int] | None = None) -> Window:
    """A window of six elements in the last dimension."""
    padding = None if pad is None else (*[(0, 0)] * (len(terms) - 1), pad)
    return Window((*[1] * (len(terms) - 1), 6), terms, array, padding=padding)


def overwritten(given: Window, *results: Window) -> GridKernel:
    """A kernel of three steps whose results all take the place of its input."""
    return GridKernel((Dim(3),), (given,), results, aliases=tuple((k, 0) for k in range(len(results))))


SPECIAL: dict[str, tuple[GridKernel, Sequence[Sequence[int]]]] = {
    "innermost dimension of one step": (
        GridKernel((Dim(3), DYNAMIC), (), (row(NEXT, array=(18,)),)),
        [(3, 3), (3, 1), (3, 0)],
    ),
    "two innermost dimensions of one step": (
        GridKernel((Dim(2), DYNAMIC, DYNAMIC), (), (row(NEXT, Term("index", 2), array=(3, 18)),)),
        [(2, 3, 2), (2, 3, 1), (2, 1, 3), (2, 1, 1)],
    ),
    "static dimension around one of one step": (
        GridKernel((DYNAMIC, Dim(2), DYNAMIC), (), (row(NEXT, Term("index", 2), array=(2, 18)),)),
        [(3, 2, 3), (3, 2, 1), (1, 2, 1)],
    ),
    "padding of the input only": (overwritten(row(AT, array=(18,), pad=(2, 1)), row(AT, array=(18,))), [(3,)]),
    "padding of the output only": (overwritten(row(AT, array=(18,)), row(AT, array=(18,), pad=(2, 1))), [(3,)]),
    "different padding": (overwritten(row(AT, array=(12,), pad=(2, 0)), row(AT, array=(12,), pad=(1, 3))), [(3,)]),
    "two results, one array": (overwritten(row(AT, array=(18,)), row(AT, array=(18,)), row(BACK, array=(18,))), [(3,)]),
    "nothing but cores": (
        GridKernel(
            (Dim(3, "core_parallel"), Dim(2, "core_parallel", dynamic=True)), (), (row(AT, NEXT, array=(3, 12)),)
        ),
        [(3, 2), (3, 1), (3, 0), (3, -1)],
    ),
}  # fmt: skip
"""Blocks that stay unexpectedly, arrays of several windows, grids of cores; each with the bounds of its launches."""


@pytest.mark.parametrize("name", SPECIAL)
def test_special_kernels(name: str) -> None:
    """They, too, give what they give by hand."""
    kernel, launches = SPECIAL[name]
    executable = compiled(kernel)
    for bounds in launches:
        check(kernel, executable, bounds)
