"""Views of memory: what slices, squeezes, reshapes and bit casts lead to, against the same done to numbered bytes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pytest
from cpu_harness import context
from cpu_memory_programs import program, scalars
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxlib.mlir import ir

from mosaic_grid.cpu.build import Index
from mosaic_grid.cpu.execute import Executable
from mosaic_grid.cpu.memory import Memory
from mosaic_grid.cpu.normal import normalised
from mosaic_grid.cpu.roots import Kind, Root
from mosaic_grid.cpu.steps import Bitcast, Reshape, Slice
from mosaic_grid.cpu.views import View
from mosaic_grid.ir_types import Value

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


@dataclasses.dataclass(frozen=True)
class Cut:
    """A slice; `runtime` are the dimensions whose offset is only known at run time."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    runtime: frozenset[int]


@dataclasses.dataclass(frozen=True)
class Squeeze:
    """The dimensions `axes`, of size 1, go."""

    axes: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Shape:
    """A reshape."""

    shape: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Cast:
    """A bit cast to a width of `width` bytes, packed along `axis`."""

    width: int
    axis: int


Move: TypeAlias = Cut | Squeeze | Shape | Cast


@dataclasses.dataclass(frozen=True)
class Chain:
    """A root, whose elements have `width` bytes, and what is done to it."""

    root: tuple[int, ...]
    width: int
    moves: tuple[Move, ...]

    @property
    def offsets(self) -> list[int]:
        """The offsets that are given at run time."""
        return [m.offsets[axis] for m in self.moves if isinstance(m, Cut) for axis in sorted(m.runtime)]

    def numbered(self) -> Numbers:
        """Which bytes of the root each element of the view has; the last dimension counts an element's bytes."""
        numbers = np.arange(math.prod(self.root) * self.width).reshape(*self.root, self.width)
        for move in self.moves:
            numbers = moved(numbers, move)
        return numbers

    def view(self, root: Root, offsets: Sequence[Index]) -> View:
        """The view, with these run-time offsets."""
        given_ = iter(offsets)
        view = View(root)
        for move in self.moves:
            match move:
                case Cut():
                    places = [next(given_) if axis in move.runtime else at for axis, at in enumerate(move.offsets)]
                    view = view.slice(places, move.sizes)
                case Squeeze():
                    view = view.squeeze(move.axes)
                case Shape():
                    view = view.reshape(move.shape)
                case Cast():
                    view = view.bitcast(integer(move.width), casted(view.shape, width(view.element), move))
        return view


def moved(numbers: Numbers, move: Move) -> Numbers:
    """What a step does to an array of numbered bytes."""
    *shape, size = numbers.shape
    match move:
        case Cut():
            ranges = [slice(at, at + n) for at, n in zip(move.offsets, move.sizes, strict=True)]
            return numbers[tuple(ranges)]
        case Squeeze():
            return numbers.squeeze(move.axes) if move.axes else numbers
        case Shape():
            return numbers.reshape(*move.shape, size)
        case Cast():
            new = casted(tuple(shape), size, move)
            axis = move.axis
            if move.width >= size:  # neighbours become one element, the first of them its low bytes
                split = numbers.reshape(*shape[:axis], new[axis], move.width // size, *shape[axis + 1 :], size)
                return np.moveaxis(split, axis + 1, -2).reshape(*new, move.width)
            split = numbers.reshape(*shape, size // move.width, move.width)
            return np.moveaxis(split, -2, axis + 1).reshape(*new, move.width)


def casted(shape: tuple[int, ...], size: int, move: Cast) -> tuple[int, ...]:
    """The shape after a bit cast of elements of `size` bytes."""
    return (*shape[: move.axis], shape[move.axis] * size // move.width, *shape[move.axis + 1 :])


def integer(size: int) -> ir.Type:
    """The integer type of so many bytes."""
    return ir.IntegerType.get_signless(8 * size)


def width(element: ir.Type) -> int:
    """The bytes of an element."""
    return int(ir.IntegerType(element).width) // 8


@st.composite
def factorings(draw: st.DrawFn, count: int) -> tuple[int, ...]:
    """A shape of `count` elements."""
    shape = []
    while count > 1:
        factor = draw(st.sampled_from([k for k in range(2, count + 1) if count % k == 0]))
        shape.append(factor)
        count //= factor
    for _ in range(draw(st.integers(0, 2))):
        shape.insert(draw(st.integers(0, len(shape))), 1)
    return tuple(shape)


@st.composite
def cuts(draw: st.DrawFn, shape: tuple[int, ...]) -> Cut:
    """A slice that is inside."""
    sizes = tuple(draw(st.sampled_from(sorted({1, n, draw(st.integers(1, n))}))) for n in shape)
    offsets = tuple(draw(st.integers(0, whole - n)) for whole, n in zip(shape, sizes, strict=True))
    return Cut(offsets, sizes, frozenset(draw(st.sets(st.integers(0, len(shape) - 1)))) if shape else frozenset())


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    """Up to five steps on a root of up to 96 elements."""
    size = draw(st.sampled_from([1, 2, 4]))
    root = draw(st.sampled_from([8, 16, 24, 36, 48, 64, 96]).flatmap(factorings))
    moves: list[Move] = []
    shape, now = root, size
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["cut", "cut", "shape", "squeeze", "cast"]))
        move: Move
        if kind == "cut":
            move = draw(cuts(shape))
        elif kind == "shape":
            move = Shape(draw(factorings(math.prod(shape))))
        elif kind == "squeeze":
            ones = [axis for axis, n in enumerate(shape) if n == 1]
            move = Squeeze(tuple(sorted(draw(st.sets(st.sampled_from(ones)))) if ones else ()))
        else:
            fits = [
                Cast(wide, axis) for wide in (1, 2, 4) for axis, n in enumerate(shape) if n * now % wide == 0
            ]  # a cast to the same width keeps the shape
            if not fits:
                continue
            move = draw(st.sampled_from(fits))
        moves.append(move)
        *left, now = moved(np.zeros((*shape, now), np.int64), move).shape
        shape = tuple(left)
    return Chain(root, size, tuple(moves))


def reads_and_writes(chain: Chain) -> Executable:
    """A program that returns what the view of the first root holds, and writes to it what that of the second does."""
    shape = chain.numbered().shape[:-1]

    def body(memory: Memory, roots: Sequence[Root], offsets: Sequence[Index]) -> list[Value]:
        view = chain.view(roots[0], offsets)
        assert view.shape == shape
        old = memory.read(view)
        memory.write(chain.view(roots[0], offsets), memory.read(chain.view(roots[1], offsets)))
        return [old]

    kind = (chain.root, f"i{8 * chain.width}")
    return program([kind, kind], len(chain.offsets), body)


def check(run: Executable, chain: Chain, random: np.random.Generator) -> None:
    """Runs such a program, and compares it with what becomes of numbered bytes."""
    numbers = chain.numbered()
    data, other = (random.integers(0, 256, math.prod(chain.root) * chain.width, np.uint8) for _ in range(2))
    arrays = [each.view(f"i{chain.width}").reshape(chain.root) for each in (data, other)]
    read, after, kept = run(*arrays, *scalars(*chain.offsets))
    bits = np.ascontiguousarray(data[numbers]).view(f"i{numbers.shape[-1]}")
    np.testing.assert_array_equal(read, bits.reshape(numbers.shape[:-1]))
    expected = data.copy()
    expected[numbers] = other[numbers]
    np.testing.assert_array_equal(np.ascontiguousarray(after).view(np.uint8).ravel(), expected)
    np.testing.assert_array_equal(kept, arrays[1])


@settings(max_examples=60, deadline=None)
@given(chains(), st.integers(0, 2**32))
def test_reading_and_writing_are_what_they_are_to_numbered_bytes(chain: Chain, seed: int) -> None:
    """Whatever the chain of steps, and wherever it is at run time, exactly the bytes it names are read and written."""
    check(reads_and_writes(chain), chain, np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("root", "width_", "moves"),
    [
        ((3, 6, 4), 1, [Cut((1, 0, 0), (1, 6, 4), frozenset()), Shape((24,)), Cut((0,), (5,), frozenset({0}))]),
        (
            (2, 5, 2, 4),
            2,
            [Cut((0, 1, 0, 0), (2, 4, 2, 4), frozenset()), Shape((2, 32)), Cut((0, 0), (2, 11), frozenset({1}))],
        ),
        ((8, 3), 4, [Cast(1, 0), Shape((96,)), Cut((0,), (7,), frozenset({0}))]),
        ((8, 3), 4, [Cast(2, 0), Cut((0, 0), (5, 3), frozenset({0}))]),
        ((24, 2), 1, [Cast(4, 0), Shape((3, 4)), Cut((0, 0), (2, 3), frozenset({0, 1}))]),
    ],
)
def test_rows_that_are_read_for_a_part_of_them_are_the_right_ones(
    root: tuple[int, ...], width_: int, moves: list[Move]
) -> None:
    """Where more has to be read than is asked for, every place that the last slice can have is the right one."""
    *before, last = moves
    assert isinstance(last, Cut)
    whole = Chain(root, width_, tuple(before)).numbered().shape[:-1]
    ends = [
        n - size if axis in last.runtime else 0 for axis, (n, size) in enumerate(zip(whole, last.sizes, strict=True))
    ]
    run = None
    for place in np.ndindex(*(end + 1 for end in ends)):
        chain = Chain(root, width_, (*before, Cut(place, last.sizes, last.runtime)))
        run = run or reads_and_writes(chain)
        check(run, chain, np.random.default_rng(sum(place)))


@settings(max_examples=300, deadline=None)
@given(chains())
def test_known_offsets_lead_to_the_same_bytes_in_normal_form(chain: Chain) -> None:
    """The normal form of steps whose offsets are known has the effect of the steps."""
    with context():
        root = Root("root", chain.root, integer(chain.width), Kind.SCRATCH)
        numbers = np.arange(math.prod(chain.root) * chain.width).reshape(*chain.root, chain.width)
        for step in normalised(root.shape, root.element, chain.view(root, chain.offsets).steps):
            match step:
                case Slice():
                    offsets = tuple(offset for offset in step.offsets if isinstance(offset, int))
                    numbers = moved(numbers, Cut(offsets, step.sizes, frozenset()))
                case Reshape():
                    numbers = moved(numbers, Shape(step.shape))
                case Bitcast():
                    pairs = zip(step.shape, numbers.shape, strict=False)
                    axis = next((k for k, (new, old) in enumerate(pairs) if new != old), 0)
                    numbers = moved(numbers, Cast(width(step.element), axis))
        np.testing.assert_array_equal(numbers, chain.numbered())
