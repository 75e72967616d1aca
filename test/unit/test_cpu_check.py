"""Watched kernels on random grids: they compute the same, and what is noted of blocks is what happens by hand."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import grid_reference
import numpy as np
import pytest
from grid_kernels import ELEMENTS, GridKernel
from grid_reference import POISON, Held, Point
from grid_strategies import TABLE_VALUES, bounds_of, kernels
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxlib.mlir import ir

from mosaic_grid.context import create_context, unknown_location
from mosaic_grid.cpu.arrays import Array
from mosaic_grid.cpu.convert import lower_recorded
from mosaic_grid.cpu.execute import compile_program
from mosaic_grid.cpu.faults import Fault, What
from mosaic_grid.cpu.options import Options
from mosaic_grid.runner.recorded import Recorded

CONTEXT = create_context()


def compiled(kernel: GridKernel, options: Options) -> Recorded:
    """The kernel's program, watched."""
    with CONTEXT, unknown_location():
        module = ir.Module.parse(kernel.text()).operation
        recording = lower_recorded(module, options, everything=True)
        return Recorded(compile_program(module), recording)


def steps(kernel: GridKernel, bounds: Sequence[int]) -> Iterator[tuple[bool, Point]]:
    """Every step, core by core, and whether it is the first of its core."""
    cores = [range(n) if dim.semantics == "core_parallel" else [-1] for n, dim in zip(bounds, kernel.grid, strict=True)]
    for core in itertools.product(*cores):
        axes = [range(n) if fixed < 0 else [fixed] for n, fixed in zip(bounds, core, strict=True)]
        for number, point in enumerate(itertools.product(*axes)):
            yield number == 0, point


def unwritten(kernel: GridKernel, bounds: Sequence[int], tables: Sequence[Array]) -> list[int]:
    """How many elements of each output nobody has written in the end, by hand: 1 stands for what was written."""
    inputs = [dict.fromkeys(np.ndindex(*window.array), 1) for window in kernel.inputs]
    taken = dict(kernel.aliases)
    outputs = [inputs[taken[k]] if k in taken else {} for k in range(len(kernel.outputs))]
    windows = list(zip(kernel.windows, [*inputs, *outputs], strict=True))
    held: list[Held] = []
    for first, point in steps(kernel, bounds):
        if first:
            flush(held[len(inputs) :])
            held = [Held(window, array, [POISON] * ELEMENTS) for window, array in windows]
        grid_reference._move(kernel, held, places(kernel, point, bounds, tables))
        if kernel.skipped is None or sum(point) % kernel.skipped[0] != kernel.skipped[1]:
            for each in held[len(inputs) :]:
                each.values = [1] * ELEMENTS
    flush(held[len(inputs) :])
    return [
        sum(array.get(point, POISON) == POISON for point in np.ndindex(*window.array))
        for window, array in zip(kernel.outputs, outputs, strict=True)
    ]


def flush(held: Sequence[Held]) -> None:
    """Writes the blocks of outputs back, after a core's last step."""
    for each in held:
        each.flush()


def places(kernel: GridKernel, point: Point, bounds: Sequence[int], tables: Sequence[Array]) -> list[Point]:
    """The block index of each window at a step."""
    return [tuple(grid_reference._value(term, point, bounds, tables) for term in w.terms) for w in kernel.windows]


def is_raced(kernel: GridKernel, bounds: Sequence[int], tables: Sequence[Array]) -> bool:
    """Whether steps that differ in a shared dimension use the same element of an array, one of them for an output."""
    taken = dict(kernel.aliases)
    arrays = [*range(len(kernel.inputs)), *(taken.get(k, -1 - k) for k in range(len(kernel.outputs)))]
    users: dict[tuple[int, Point], set[tuple[Point, bool]]] = {}
    for _, point in steps(kernel, bounds):
        core = tuple(i for i, dim in zip(point, kernel.grid, strict=True) if dim.semantics != "arbitrary")
        indices = places(kernel, point, bounds, tables)
        for number, (window, array, place) in enumerate(zip(kernel.windows, arrays, indices, strict=True)):
            for element in Held(window, {}, [], place)._points():
                users.setdefault((array, element), set()).add((core, number >= len(kernel.inputs)))
    return any(len({core for core, _ in each}) > 1 and any(writes for _, writes in each) for each in users.values())


def check(kernel: GridKernel, program: Recorded, bounds: Sequence[int], seed: int) -> None:
    """Runs the kernel with these bounds, of all dimensions, and by hand."""
    dice = np.random.default_rng(seed)
    tables = [dice.integers(0, TABLE_VALUES, length, np.int32) for length in kernel.tables]
    inputs = [dice.integers(-100, 100, window.array, np.int32) for window in kernel.inputs]
    given = [np.asarray(n, np.int32) for n, dim in zip(bounds, kernel.grid, strict=True) if dim.dynamic]
    observed = program.observe([*given, *tables, *inputs])
    faults = [fault for _, fault in observed.faults]
    assert not [fault for fault in faults if fault.site.what in (What.WINDOW, What.OUTSIDE)]
    assert any(fault.site.what is What.RACE for fault in faults) == is_raced(kernel, bounds, tables)
    assert left(kernel, faults) == unwritten(kernel, bounds, tables)
    if all(dim.semantics != "parallel" for dim in kernel.grid):  # scratch is kept then
        expected = grid_reference.run(kernel, bounds, tables, inputs)
        for one, other in zip(observed.results, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def left(kernel: GridKernel, faults: Sequence[Fault]) -> list[int]:
    """How many elements of each output nobody has written in the end, by the record."""
    taken = dict(kernel.aliases)
    names = [f"input {taken[k]}" if k in taken else f"output {k}" for k in range(len(kernel.outputs))]
    found = {fault.site.root.name: fault.details[0] for fault in faults if fault.site.what is What.OUTPUT}
    return [found.get(name, 0) for name in names]


@settings(max_examples=30)
@given(data=st.data(), seed=st.none() | st.integers(0, 2**32))
def test_random_kernels(data: st.DataObject, seed: int | None) -> None:
    """Results, races between cores and what stays unwritten are those of a run by hand, in each order of cores."""
    kernel = data.draw(kernels(disjoint=seed is not None))
    program = compiled(kernel, Options(interleave=seed))
    check(kernel, program, [dim.bound for dim in kernel.grid], 0)
    if any(dim.dynamic for dim in kernel.grid):
        check(kernel, program, data.draw(st.composite(bounds_of)(kernel)), 1)


@pytest.mark.full
@settings(max_examples=300)
@given(data=st.data())
def test_many_random_kernels(data: st.DataObject) -> None:
    """The same with many more."""
    kernel = data.draw(kernels())
    check(kernel, compiled(kernel, Options()), [dim.bound for dim in kernel.grid], 0)
