"""Which step of a grid wrote an element last: against every step in order, in NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from jaxlib.mlir import ir
from run_programs import DYNAMIC, opened, program

from mosaic_grid.context import create_context, unknown_location
from mosaic_grid.cpu.arrays import Array
from mosaic_grid.cpu.options import Options
from mosaic_grid.runner.origin import NotKnownError
from mosaic_grid.runner.steps import Step, last_write

X = np.zeros((32, 256), np.float32)
TABLE = np.array([2, 0, 2, 1], np.int32)
PLAIN = "return %i0, %i1 : i32, i32"
DIAGONAL = """%c3 = arith.constant 3 : i32
    %s = arith.addi %i0, %i1 : i32
    %r = arith.andi %s, %c3 : i32
    %c1 = arith.constant 1 : i32
    %c = arith.andi %i0, %c1 : i32
    return %r, %c : i32, i32"""
LOOKED_UP = """%k = arith.index_cast %i0 : i32 to index
    %v = memref.load %t[%k] : memref<4xi32, #tpu.memory_space<smem>>
    return %v, %i1 : i32, i32"""


@pytest.fixture
def context() -> Iterator[ir.Context]:
    """A current context."""
    with create_context() as made, unknown_location():
        yield made


def expected(
    bounds: Sequence[int], place: Callable[..., tuple[int, int]], element: tuple[int, int], cores: Sequence[int] = ()
) -> tuple[int, ...] | None:
    """The indices of the last step whose block has the element, by trying all steps in the order in which they run."""
    order = [*cores, *(axis for axis in range(len(bounds)) if axis not in cores)]
    last = None
    for counted in itertools.product(*(range(bounds[axis]) for axis in order)):
        indices = tuple(counted[order.index(axis)] for axis in range(len(bounds)))
        if place(*indices) == (element[0] // 8, element[1] // 128):
            last = indices
    return last


def answer(text: str, context: ir.Context, element: tuple[int, ...], inputs: Sequence[Array]) -> tuple[int, ...] | None:
    """What `last_write` says; `None` where it says that no step writes the element."""
    try:
        step = last_write(opened(text, context), 0, element, inputs, Options())
    except NotKnownError as error:
        if str(error) != "no step of 'k' wrote it":
            raise
        return None
    assert step.kernel == "k"
    return step.indices


@pytest.mark.parametrize("element", [(0, 0), (7, 127), (8, 128), (31, 255), (16, 5)])
@pytest.mark.parametrize(
    ("bounds", "index_map", "place", "table"),
    [
        ((4, 2), PLAIN, lambda i, j: (i, j), False),
        ((3, 2), PLAIN, lambda i, j: (i, j), False),
        ((4, 5), DIAGONAL, lambda i, j: ((i + j) & 3, i & 1), False),
        ((4, 2), LOOKED_UP, lambda i, j: (int(TABLE[i]), j), True),
    ],
)
@pytest.mark.parametrize("dynamic", [(), (0,), (0, 1)])
def test_last_step_is_that_of_all_steps_in_order(
    bounds: tuple[int, ...],
    index_map: str,
    place: Callable[..., tuple[int, int]],
    table: bool,
    element: tuple[int, int],
    dynamic: tuple[int, ...],
    context: ir.Context,
) -> None:
    """The step is the one that trying all of them finds, with static and dynamic bounds, and maps that read a table."""
    text = program([DYNAMIC if k in dynamic else n for k, n in enumerate(bounds)], index_map, table=table)
    inputs = [*(np.int32(bounds[k]) for k in dynamic), *([TABLE] if table else []), X]
    assert answer(text, context, element, [np.asarray(each) for each in inputs]) == expected(bounds, place, element)


def test_cores_run_one_after_the_other(context: ir.Context) -> None:
    """A dimension of cores counts as the outermost, wherever it stands."""
    text = program([4, 2], DIAGONAL, semantics=["arbitrary", "core_parallel"])
    found = answer(text, context, (8, 128), [X])
    assert found == expected((4, 2), lambda i, j: ((i + j) & 3, i & 1), (8, 128), cores=(1,)) == (1, 0)
    text = program([4, 2], DIAGONAL)
    assert answer(text, context, (8, 128), [X]) == (1, 0)


def test_order_of_cores_matters(context: ir.Context) -> None:
    """The same map, with and without cores, has another last step."""
    constant = "%c0 = arith.constant 0 : i32\n    return %c0, %c0 : i32, i32"
    first_not_last = """%c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %s = arith.addi %i0, %i1 : i32
    %m = arith.andi %s, %c1 : i32
    return %m, %c0 : i32, i32"""
    assert answer(program([3, 2], constant), context, (0, 0), [X]) == (2, 1)
    for semantics, cores in ((["arbitrary", "arbitrary"], ()), (["arbitrary", "core_parallel"], (1,))):
        text = program([3, 2], first_not_last, semantics=semantics)
        place = expected((3, 2), lambda i, j: ((i + j) & 1, 0), (0, 0), cores)
        assert answer(text, context, (0, 0), [X]) == place
    assert expected((3, 2), lambda i, j: ((i + j) & 1, 0), (0, 0), (1,)) == (1, 1)
    assert expected((3, 2), lambda i, j: ((i + j) & 1, 0), (0, 0)) == (2, 0)


@pytest.mark.parametrize(
    ("body", "result", "element"),
    [
        ("%y = stablehlo.reshape %r : (tensor<32x256xf32>) -> tensor<4x8x256xf32>\n  return %y : tensor<4x8x256xf32>",
         "tensor<4x8x256xf32>", (2, 3, 130)),
        ("%y = stablehlo.transpose %r, dims = [1, 0] : (tensor<32x256xf32>) -> tensor<256x32xf32>\n"
         "  return %y : tensor<256x32xf32>", "tensor<256x32xf32>", (130, 19)),
        ("%y = stablehlo.slice %r [1:32:2, 2:256] : (tensor<32x256xf32>) -> tensor<16x254xf32>\n"
         "  return %y : tensor<16x254xf32>", "tensor<16x254xf32>", (9, 128)),
        ("%y = stablehlo.convert %r : (tensor<32x256xf32>) -> tensor<32x256xbf16>\n"
         "  return %y : tensor<32x256xbf16>", "tensor<32x256xbf16>", (19, 130)),
        ("%y = stablehlo.optimization_barrier %r : tensor<32x256xf32>\n  return %y : tensor<32x256xf32>",
         "tensor<32x256xf32>", (19, 130)),
    ],
)  # fmt: skip
def test_what_only_moves_elements_is_followed(
    body: str, result: str, element: tuple[int, ...], context: ir.Context
) -> None:
    """Each of these elements is the one in row 19 and column 130 of the launch's result, which step (2, 1) writes."""
    assert answer(program([4, 2], PLAIN, body=body, result=result), context, element, [X]) == (2, 1)


def test_calls_are_entered(context: ir.Context) -> None:
    """A launch in a function that is called in a function that is called is found, and the program stays as it was."""
    text = program([4, 2], PLAIN).replace("@main", "private @inner")
    text += """
func.func private @outer(%x: tensor<32x256xf32>) -> tensor<32x256xf32> {
  %0 = call @inner(%x) : (tensor<32x256xf32>) -> tensor<32x256xf32>
  return %0 : tensor<32x256xf32>
}
func.func @main(%x: tensor<32x256xf32>) -> tensor<32x256xf32> {
  %0 = call @outer(%x) : (tensor<32x256xf32>) -> tensor<32x256xf32>
  %1 = call @outer(%0) : (tensor<32x256xf32>) -> tensor<32x256xf32>
  return %1 : tensor<32x256xf32>
}
"""
    found = opened(text, context)
    before = str(found.module)
    assert last_write(found, 0, (31, 255), [X], Options()) == Step("k", (3, 1))
    assert str(found.module) == before


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("%y = stablehlo.add %r, %r : tensor<32x256xf32>\n  return %y : tensor<32x256xf32>",
         "no launch wrote it: stablehlo.add computed it"),
        ("return %x : tensor<32x256xf32>", "the program returns an argument as it is"),
    ],
)  # fmt: skip
def test_what_no_launch_wrote(body: str, reason: str, context: ir.Context) -> None:
    """Where something is computed on the way, the answer is why it isn't known, and never some step."""
    with pytest.raises(NotKnownError, match=reason):
        last_write(opened(program([4, 2], PLAIN, body=body), context), 0, (0, 0), [X], Options())


def test_array_without_a_window(context: ir.Context) -> None:
    """A kernel that copies its result into place by itself isn't guessed about."""
    text, array = program([4, 2], PLAIN), "memref<32x256xf32, #tpu.memory_space<any>>"
    window = "{transform_indices = @place, window_bounds = array<i64: 8, 128>}"
    text = text.replace(window, "{}").replace("%o: memref<8x128xf32, #tpu.memory_space<vmem>>", f"%o: {array}")
    text = "\n".join(line for line in text.splitlines() if "vector.store" not in line)
    with pytest.raises(NotKnownError, match="copies this result to its array by itself, without a window"):
        last_write(opened(text, context), 0, (0, 0), [X], Options())


def test_step_in_words() -> None:
    """A step is shown by its indices and its kernel."""
    assert str(Step("k", (1, 2))) == "step (1, 2) of 'k'"
