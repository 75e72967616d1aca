"""What is known of an index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import pytest
from cpu_memory_programs import program, scalars
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.build import Index
from mosaic_grid.cpu.indices import alignment, divide, known, product, remainder, row_major, subtract, total
from mosaic_grid.cpu.memory import Memory
from mosaic_grid.cpu.roots import Root
from mosaic_grid.ir_types import Value

Tree: TypeAlias = "int | str | tuple[str, Tree, Tree]"

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "and_": lambda x, y: x & y,
}

numbers = st.integers(-(2**31), 2**31 - 1) | st.integers(-40, 40) | st.sampled_from([8, 16, 24, 2**20, -(2**31)])
trees: st.SearchStrategy[Tree] = st.recursive(
    numbers | st.just("x"), lambda inner: st.tuples(st.sampled_from(sorted(OPERATIONS)), inner, inner), max_leaves=6
)


def built(tree: Tree, x: Value) -> Value:
    """The index that a tree is, of the value `x`."""
    if isinstance(tree, tuple):
        operation: Callable[[Value, Value], Value] = getattr(hlo, tree[0])
        return operation(built(tree[1], x), built(tree[2], x))
    return x if isinstance(tree, str) else build.i32(tree)


def valued(tree: Tree, x: int) -> int:
    """What it is, before it wraps around."""
    if isinstance(tree, tuple):
        return OPERATIONS[tree[0]](valued(tree[1], x), valued(tree[2], x))
    return x if isinstance(tree, str) else tree


@settings(max_examples=100, deadline=None)
@given(trees, st.lists(numbers, min_size=3, max_size=9))
def test_an_alignment_divides_the_index_whatever_it_is(tree: Tree, places: list[int]) -> None:
    """Whatever is put in, and if it wraps around: what is said to divide an index does."""
    found: list[int] = []

    def body(memory: Memory, roots: Sequence[Root], indices: Sequence[Index]) -> list[Value]:
        found.append(alignment(built(tree, build.as_value(indices[0]))))
        return [build.i32(0)]

    program([((1,), "i32")], 1, body)
    assert all(valued(tree, place) % 2**32 % found[0] == 0 for place in places)


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (("multiply", "x", 24), 8),
        (("add", ("multiply", "x", 16), 8), 8),
        (("and_", "x", -64), 64),
        ("x", 1),
        (0, 2**31),
    ],
)
def test_what_an_index_is_made_of_says_its_alignment(tree: Tree, expected: int) -> None:
    """Products, sums and masks of constants are looked into."""

    def body(memory: Memory, roots: Sequence[Root], indices: Sequence[Index]) -> list[Value]:
        assert alignment(built(tree, build.as_value(indices[0]))) == expected
        return [build.i32(0)]

    program([((1,), "i32")], 1, body)


@pytest.mark.parametrize("runtime", [False, True])
def test_arithmetic_on_indices_is_that_of_integers(runtime: bool) -> None:
    """Of known numbers the result is known, of others it is computed; constants of the program are known."""

    def body(memory: Memory, roots: Sequence[Root], indices: Sequence[Index]) -> list[Value]:
        x, y = indices if runtime else (23, 4)
        results = [
            subtract(x, y), subtract(x, 5), divide(x, 4), divide(x, 1), remainder(x, 4), remainder(x, 1),
            total([x, y, 1]), product([x, y, 2]), row_major([1, y, x], [2, 5, 30]),
        ]  # fmt: skip
        assert runtime or all(isinstance(result, int) for result in results)
        assert known(build.i32(-7)) == -7
        return [build.as_value(result) for result in results]

    *results, _ = program([((1,), "i32")], 2, body)(scalars(0)[0].reshape(1), *scalars(23, 4))
    assert [int(result) for result in results] == [19, 18, 5, 23, 3, 0, 28, 184, 1 * 150 + 4 * 30 + 23]
