"""Copies whose sizes are only known at run time, against NumPy."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from cpu_in_place import whole_tensors_made
from cpu_memory_programs import program, scalars
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.build import Index
from mosaic_grid.cpu.memory import Memory
from mosaic_grid.cpu.roots import Root
from mosaic_grid.cpu.views import View
from mosaic_grid.ir_types import Value


@dataclasses.dataclass(frozen=True)
class Copy:
    """A copy between parts of two arrays; `dynamic` are the dimensions whose extent is known at run time only."""

    source: tuple[int, ...]
    target: tuple[int, ...]
    bounds: tuple[int, ...]
    dynamic: tuple[bool, ...]

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.source)

    def view(self, root: Root, offsets: Sequence[Index], extents: Sequence[Index]) -> View:
        """The part of one of the arrays."""
        sizes = [
            whole if dynamic else bound
            for whole, bound, dynamic in zip(root.shape, self.bounds, self.dynamic, strict=True)
        ]
        limits = [
            extent if dynamic else size for extent, size, dynamic in zip(extents, sizes, self.dynamic, strict=True)
        ]
        return View(root).slice(offsets, sizes, limits)

    def body(self, memory: Memory, roots: Sequence[Root], indices: Sequence[Index]) -> list[Value]:
        """A program of the copy: its indices are where it is from, where to, and how large."""
        parts = [indices[k * self.rank : (k + 1) * self.rank] for k in range(3)]
        memory.copy(self.view(roots[0], parts[0], parts[2]), self.view(roots[1], parts[1], parts[2]))
        return []


@st.composite
def copies(draw: st.DrawFn) -> Copy:
    """Copies of up to 7 elements in each of up to three dimensions."""
    rank = draw(st.integers(1, 3))
    source, target = (tuple(draw(st.integers(1, 7)) for _ in range(rank)) for _ in range(2))
    bounds = tuple(draw(st.integers(1, min(pair))) for pair in zip(source, target, strict=True))
    return Copy(source, target, bounds, tuple(draw(st.booleans()) for _ in range(rank)))


def test_as_much_is_copied_as_the_extents_say_and_there_is() -> None:
    """Near the end of either array, beyond it, with extents of 0 or too much: what both have is copied, no more."""

    @settings(max_examples=25, deadline=None)
    @given(copies(), st.data())
    def check(copy: Copy, data: Any) -> None:
        run = program([(copy.source, "i32"), (copy.target, "i32")], 3 * copy.rank, copy.body)
        for _ in range(8):
            starts, ends, extents = [], [], []
            for n, m, bound, dynamic in zip(copy.source, copy.target, copy.bounds, copy.dynamic, strict=True):
                starts.append(data.draw(st.integers(0, n if dynamic else n - bound)))
                ends.append(data.draw(st.integers(0, m if dynamic else m - bound)))
                extents.append(data.draw(st.integers(-1, 9)) if dynamic else bound)
            source = np.arange(np.prod(copy.source), dtype=np.int32).reshape(copy.source) + 1
            target = -np.arange(np.prod(copy.target), dtype=np.int32).reshape(copy.target)
            counts = [
                max(0, min(extent, n - at, m - to))
                for extent, n, m, at, to in zip(extents, copy.source, copy.target, starts, ends, strict=True)
            ]
            expected = target.copy()
            into = tuple(slice(to, to + count) for to, count in zip(ends, counts, strict=True))
            expected[into] = source[tuple(slice(at, at + count) for at, count in zip(starts, counts, strict=True))]
            kept, after = run(source, target, *scalars(*starts, *ends, *extents))
            np.testing.assert_array_equal(after, expected)
            np.testing.assert_array_equal(kept, source)

    check()


def test_an_array_seen_in_another_shape_is_copied_from_at_any_place() -> None:
    """Pages of a reshaped array, from a place that is no page's start, land in a buffer with room for few of them."""

    def body(memory: Memory, roots: Sequence[Root], indices: Sequence[Index]) -> list[Value]:
        start, count = indices
        pages = View(roots[0]).reshape((24, 2, 2)).slice([start, 0, 0], [24, 2, 2], [count, 2, 2])
        slot = View(roots[1]).slice([1, 0, 0, 0], [1, 5, 2, 2], [1, count, 2, 2]).squeeze([0])
        memory.copy(pages, slot)
        return []

    run = program([((6, 4, 2, 2), "i32"), ((2, 5, 2, 2), "i32")], 2, body)
    source = np.arange(96, dtype=np.int32).reshape(6, 4, 2, 2)
    for start in (0, 3, 17, 21, 23):
        for count in (0, 1, 4, 5):
            expected = np.full((2, 5, 2, 2), -1, np.int32)
            n = min(count, 24 - start)
            expected[1, :n] = source.reshape(24, 2, 2)[start : start + n]
            _, after = run(source, np.full((2, 5, 2, 2), -1, np.int32), *scalars(start, count))
            np.testing.assert_array_equal(after, expected)


def test_what_an_extent_of_packed_elements_becomes() -> None:
    """A dynamic dimension that is packed or unpacked by a bit cast keeps its end."""

    def body(memory: Memory, roots: Sequence[Root], indices: Sequence[Index]) -> list[Value]:
        view = View(roots[0]).slice([2, 0], [8, 3], [indices[0], 3])
        pairs = view.bitcast(build.i32_type(), (4, 3))
        memory.copy(pairs, View(roots[1]).slice([0, 0], [4, 3], [pairs.extents[0], 3]))
        return [build.as_value(pairs.extents[0])]

    run = program([((10, 3), "i16"), ((4, 3), "i32")], 1, body)
    source = np.arange(30, dtype=np.int16).reshape(10, 3)
    packed = (source[2::2].astype(np.uint16).astype(np.int32)) + (source[3::2].astype(np.int32) << 16)
    extent, _, after = run(source, np.zeros((4, 3), np.int32), *scalars(6))
    assert extent == 3
    np.testing.assert_array_equal(after, np.concatenate([packed[:3], np.zeros((1, 3), np.int32)]))


@pytest.mark.parametrize("fenced", [True, False])
def test_copies_in_a_loop_are_in_place(fenced: bool) -> None:
    """Neither array is copied as a whole in a loop that copies between them and writes both, reshaped or not.

    Without the fence one is, so that this would be noticed.
    """

    def body(memory: Memory, roots: Sequence[Root], indices: Sequence[Index]) -> list[Value]:
        if not fenced:
            memory.rewritten = set()

        ones = build.constant(1, (8, 32), ir.F32Type.get())

        def step(index: Value) -> None:
            rows = hlo.multiply(index, build.i32(3))
            source = View(roots[0]).reshape((8192, 16)).slice([index, 0], [8192, 16], [rows, 16])
            target = View(roots[1]).reshape((4096, 16)).slice([0, 0], [512, 16], [rows, 16])
            memory.copy(source, target)
            memory.write(View(roots[0]).slice([index, 0], [8, 32]), ones)
            memory.copy(View(roots[1]).slice([5, 0], [8, 32]), View(roots[0]).slice([index, 0], [8, 32]))
            memory.copy(View(roots[0]).slice([5, 0], [64, 32]), View(roots[0]).slice([rows, 0], [64, 32]))
            sides = [View(roots[0]).slice([index, 0], [4096, 32], [rows, index])]
            sides.append(View(roots[1]).slice([0, 0], [512, 32], [rows, index]))
            memory.copy(*sides)

        memory.for_each(build.as_value(indices[0]), step, roots)
        return []

    run = program([((4096, 32), "f32"), ((2048, 32), "f32")], 1, body)
    assert bool(whole_tensors_made(run, 2048 * 32)) == (not fenced)
