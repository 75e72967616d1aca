"""What a `GridKernel` computes, by hand: core by core, step by step, element by element."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from grid_kernels import ELEMENTS, GridKernel, Term, Window

from mosaic_grid.cpu.arrays import Array

POISON = -(2**31)
"""What an i32 holds that nobody wrote."""

Point: TypeAlias = tuple[int, ...]
Elements: TypeAlias = dict[Point, int]


@dataclasses.dataclass
class Held:
    """A core's buffer of a window, and the index of the block that is in it."""

    window: Window
    array: Elements
    values: list[int]
    place: Point | None = None

    def bring_in(self) -> None:
        """Reads the block from the array; there is poison around it."""
        self.values = [self.array.get(point, POISON) for point in self._points()]

    def flush(self) -> None:
        """Writes the block to the array."""
        if self.place is not None:
            self.array.update(zip(self._points(), self.values, strict=True))

    def _points(self) -> list[Point]:
        """Where in the array the block's elements lie."""
        assert self.place is not None
        window = self.window
        sizes = window.block if window.padding is None else (1,) * len(window.block)
        starts = [index * size - low for index, size, low in zip(self.place, sizes, window.low, strict=True)]
        ranges = (range(start, start + size) for start, size in zip(starts, window.block, strict=True))
        return list(itertools.product(*ranges))


def run(kernel: GridKernel, bounds: Sequence[int], tables: Sequence[Array], inputs: Sequence[Array]) -> list[Array]:
    """The outputs of a launch; `bounds` are those of all dimensions."""
    arrays = [dict(np.ndenumerate(array.astype(object))) for array in inputs]
    taken = dict(kernel.aliases)
    outputs = [arrays[taken[k]] if k in taken else {} for k in range(len(kernel.outputs))]
    windows = list(zip(kernel.windows, [*arrays, *outputs], strict=True))
    cores = [range(n) if dim.semantics == "core_parallel" else [-1] for n, dim in zip(bounds, kernel.grid, strict=True)]
    for core in itertools.product(*cores):
        held = [Held(window, array, [POISON] * ELEMENTS) for window, array in windows]
        counter = POISON
        axes = [range(n) if fixed < 0 else [fixed] for n, fixed in zip(bounds, core, strict=True)]
        for point in itertools.product(*axes):
            counter += 1
            places = [tuple(_value(term, point, bounds, tables) for term in w.terms) for w in kernel.windows]
            _move(kernel, held, places)
            _step(kernel, held, point, counter)
        for each in held[len(inputs) :]:
            each.flush()
    return [_cut(array, window.array) for array, window in zip(outputs, kernel.outputs, strict=True)]


def _move(kernel: GridKernel, held: Sequence[Held], places: Sequence[Point]) -> None:
    """Brings each window to its block of this step: outputs go out before anything comes in."""
    count = len(kernel.inputs)
    moved = [(each, place) for each, place in zip(held, places, strict=True) if each.place != place]
    outputs = [pair for pair in moved if any(pair[0] is each for each in held[count:])]
    for each, place in outputs:
        each.flush()
        each.place, each.values = place, [POISON] * ELEMENTS
    for each, place in moved:
        each.place = place
        if each.window.revisit_any or not any(each is output for output, _ in outputs):
            each.bring_in()


def _step(kernel: GridKernel, held: Sequence[Held], point: Point, counter: int) -> None:
    """One run of the body."""
    count = len(kernel.inputs)
    if kernel.dirty:
        for each in held[:count]:
            each.values = [_wrapped(value + 1) for value in each.values]
    if kernel.skipped is not None and sum(point) % kernel.skipped[0] == kernel.skipped[1]:
        return
    code = counter + sum(index * (10 + 7**axis) for axis, index in enumerate(point))
    for k in range(ELEMENTS):
        total = code + sum(each.values[k] for each in held[:count])
        for each in held[count:]:
            each.values[k] = _wrapped(3 * each.values[k] + total)


def _value(term: Term, point: Point, bounds: Sequence[int], tables: Sequence[Array]) -> int:
    """A component of an index map at a step."""
    match term.rule:
        case "constant":
            return term.number
        case "index":
            return point[term.axis]
        case "sum":
            return point[term.axis] + 2 * point[term.other] + term.number
        case "quotient":
            return point[term.axis] // term.number
        case "rest":
            return point[term.axis] % term.number
        case "back":
            return bounds[term.axis] - 1 - point[term.axis]
        case "table":
            return int(tables[term.number][point[term.axis]])


def _wrapped(number: int) -> int:
    """The number in 32 bits."""
    return (number + 2**31) % 2**32 - 2**31


def _cut(array: Elements, shape: Sequence[int]) -> Array:
    """The elements inside of the shape."""
    whole = np.full(shape, POISON, np.int64)
    for point in np.ndindex(*shape):
        whole[point] = array.get(point, POISON)
    return whole.astype(np.int32)
