"""`resolve-grid`: constant bounds become static, and the program computes what it did."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from cpu_programs import assert_same, compiled
from grid_samples import Dim, Sample, Term
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxlib.mlir import ir

from mosaic_grid.context import create_context
from mosaic_grid.cpu.arrays import Array
from mosaic_grid.launch_edit import BOUNDS
from mosaic_grid.passes.resolve_grid import ResolveGrid
from mosaic_grid.program import Program
from mosaic_grid.session import Session

CONTEXT = create_context()

KINDS = ("static", "dynamic", "constant")


def constant(text: str, axis: int, bound: int) -> str:
    """The program with the bound of a dynamic dimension a constant, hidden behind arithmetic."""
    plain = f"%b{axis} = stablehlo.reshape %n{axis} : (tensor<i32>) -> tensor<i32>"
    assert plain in text
    hidden = f"""
      %h{axis} = stablehlo.constant dense<{bound - 1}> : tensor<i32>
      %o{axis} = stablehlo.constant dense<1> : tensor<i32>
      %b{axis} = stablehlo.add %h{axis}, %o{axis} : tensor<i32>"""
    return text.replace(plain, hidden)


def resolved(text: str, arguments: Sequence[Array]) -> ir.Operation:
    """The program after the pass, which must have kept its results."""
    module = ir.Operation.parse(text).operation
    expected = compiled(module)(*arguments)
    ResolveGrid().run(module, Session())
    module.verify()
    assert_same(compiled(module)(*arguments), expected, "after the pass")
    return module


def bounds_of(module: ir.Operation) -> dict[str, list[int | None]]:
    """The bounds of each kernel."""
    return {symbol: [d.bound for d in kernel.grid] for symbol, kernel in Program(module).kernels.items()}


@settings(max_examples=20)
@given(
    bounds=st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from(["static", "dynamic", "constant"])), min_size=1, max_size=3
    ),
    in_place=st.booleans(),
    access=st.sampled_from(["same", "half", "reversed", "table"]),
)
def test_any_grid_keeps_its_meaning(bounds: list[tuple[int, str]], in_place: bool, access: str) -> None:
    """Of any grid the constant bounds become static, with everything that counts operands in step.

    Only a 0 beside a dynamic bound stays, since libtpu doesn't compile it.
    """
    grid = tuple(Dim(bound, dynamic=kind != "static") for bound, kind in bounds)
    axes = tuple(range(len(grid)))
    last = Term(len(grid) - 1, access)  # type: ignore[arg-type]
    sample = Sample(grid, axes, ((last,),), asked=axes, in_place=in_place)
    text = sample.text()
    for axis, (bound, kind) in enumerate(bounds):
        text = constant(text, axis, bound) if kind == "constant" else text
    with CONTEXT, ir.Location.unknown():
        module = resolved(text, sample.arguments())
        (found,) = bounds_of(module).values()
        zero_stays = any(kind == "dynamic" for _, kind in bounds)
        stays = [kind == "dynamic" or (kind == "constant" and not bound and zero_stays) for bound, kind in bounds]
        assert found == [None if dynamic else bound for (bound, _), dynamic in zip(bounds, stays, strict=True)]
        (launch,) = Program(module).launches
        words = [str(word) for word in ir.ArrayAttr(launch.op.attributes[BOUNDS])] if launch.bounds else []
        unknown = [axis for axis, dynamic in enumerate(stays) if dynamic]
        assert [word.split(":")[0] for word in words] == [f'"dimension {axis}' for axis in unknown]
        assert launch.bounds or BOUNDS not in launch.op.attributes


def two_launches(first: str, second: str) -> tuple[str, list[Array]]:
    """One kernel launched twice, one launch after the other, with bounds computed from %n by two lines of text."""
    sample = Sample((Dim(4, dynamic=True),), (0,), ((Term(0),),), asked=(0,))
    text = sample.text()
    head, kernel = text[: text.index("module @kernel")], text[text.index("module @kernel") :]
    call = head[head.index("%r = ") : head.index("return")]
    start = head[: head.index("%b0 = ")]
    twice = call.replace("%b0", "%b1").replace("%x0", "%r").replace("%r =", "%q =")
    body = [start, f"%b0 = {first} : tensor<i32>", call, f"%b1 = {second} : tensor<i32>", twice]
    return "\n".join([*body, "return %q : tensor<4x3xi32>", "}", kernel]), sample.arguments()


@pytest.mark.parametrize(
    ("first", "second", "grids"),
    [
        ("stablehlo.constant dense<3>", "stablehlo.constant dense<3>", [[3]]),
        ("stablehlo.constant dense<3>", "stablehlo.constant dense<4>", [[3], [4]]),
        ("stablehlo.constant dense<3>", "stablehlo.negate %n0", [[3], [None]]),
        ("stablehlo.constant dense<0>", "stablehlo.constant dense<2>", [[0], [2]]),
    ],
)
def test_launches_that_agree_share_a_kernel(first: str, second: str, grids: list[list[int | None]]) -> None:
    """A kernel is made once for each set of constants; the original stays only for launches that still need it."""
    text, _ = two_launches(first, second)
    with CONTEXT, ir.Location.unknown():
        module = ir.Operation.parse(text).operation
        ResolveGrid().run(module, Session())
        module.verify()
        found = [bounds_of(module)[launch.kernel.symbol] for launch in Program(module).launches]
        assert found == (grids * 2 if len(grids) == 1 else grids)
        assert len(Program(module).kernels) == len(grids)


def test_only_selected_kernels_are_touched() -> None:
    """A kernel that wasn't asked for is left alone, launch and all."""
    text, _ = two_launches("stablehlo.constant dense<3>", "stablehlo.constant dense<4>")
    with CONTEXT, ir.Location.unknown():
        module = ir.Operation.parse(text).operation
        before = str(module)
        ResolveGrid().run(module, Session(kernels=("other",)))
        assert str(module) == before


def test_a_constant_below_zero_stays_dynamic() -> None:
    """It runs no step, and `iteration_bounds` must not hold it: most negative numbers mean nothing there."""
    sample = Sample((Dim(-2, dynamic=True),), (0,))
    with CONTEXT, ir.Location.unknown():
        module = resolved(constant(sample.text(), 0, -2), sample.arguments())
        assert list(bounds_of(module).values()) == [[None]]


def test_chained_launches_keep_their_order() -> None:
    """The second launch reads what the first wrote, before and after."""
    text, arguments = two_launches("stablehlo.constant dense<4>", "stablehlo.constant dense<4>")
    with CONTEXT, ir.Location.unknown():
        module = resolved(text, arguments)
        first, second = Program(module).launches
        assert second.op.operands[0] == first.op.results[0]


LARGE = 2**20


@pytest.mark.parametrize(
    ("grid", "resolved_grid"),
    [
        # libtpu doesn't take a static 0 beside a dynamic bound
        ([("dynamic", 3), ("constant", 0)], [None, None]),
        ([("constant", 0), ("constant", 4)], [0, 4]),
        ([("constant", 0), ("static", 4)], [0, 4]),
        # nor static bounds whose product is 2**31 - 1 or more: the larger ones stay dynamic
        ([("constant", LARGE), ("constant", 4 * LARGE)], [LARGE, None]),
        ([("static", LARGE), ("constant", LARGE), ("constant", 5)], [LARGE, None, 5]),
        ([("constant", 2**31 - 1)], [None]),
        ([("constant", 2**31 - 2)], [2**31 - 2]),
    ],
)
def test_constants_that_libtpu_would_refuse_stay_dynamic(
    grid: list[tuple[str, int]], resolved_grid: list[int | None]
) -> None:
    """A program that compiles still does when its constants are static."""
    dims = tuple(Dim(bound, dynamic=kind != "static") for kind, bound in grid)
    # the output's block is that of no step in particular: this program is not run
    text = Sample(dims, ()).text()
    for axis, (kind, bound) in enumerate(grid):
        text = constant(text, axis, bound) if kind == "constant" else text
    with CONTEXT, ir.Location.unknown():
        module = ir.Operation.parse(text).operation
        ResolveGrid().run(module, Session())
        module.verify()
        assert list(bounds_of(module).values()) == [resolved_grid]
