"""The windows of a launch as the proofs take them: what tables hold, which launches are reached, and what is told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.containers.text import parse
from mosaic_grid.context import create_context, unknown_location
from mosaic_grid.dataflow.geometry import Geometry, geometry_of
from mosaic_grid.dataflow.outer import OuterScalars
from mosaic_grid.dataflow.tables import Table
from mosaic_grid.dataflow.tensors import Each, Elements, Uniform
from mosaic_grid.errors import UserError
from mosaic_grid.passes.check_grid import CheckGrid
from mosaic_grid.program import Program
from mosaic_grid.selection import Selection
from mosaic_grid.session import Session
from mosaic_grid.targets import parse_target

I32 = sym.type_range(32, True)
I = sym.parameter("i", sym.Range(0, 7))  # noqa: E741
KERNEL = """
  module @kernel attributes {stable_mosaic.version = 18 : i64} {
    func.func @kernel(%i: i32, %t: memref<8xi32, #tpu.memory_space<smem>>,
                      %x: memref<8x128xf32, #tpu.memory_space<vmem>>,
                      %o: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {
        iteration_bounds = array<i64: BOUND>, dimension_semantics = [#tpu.dimension_semantics<arbitrary>],
        scalar_prefetch = 1 : i64, window_params = [
          {transform_indices = @read, window_bounds = array<i64: 8, 128>KIND},
          {transform_indices = @step, window_bounds = array<i64: 8, 128>}]} {
      BODY
      return
    }
    func.func @read(%i: i32, %t: memref<8xi32, #tpu.memory_space<smem>>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      %at = arith.index_cast %i : i32 to index
      %b = memref.load %t[%at] : memref<8xi32, #tpu.memory_space<smem>>
      return %b, %zero : i32, i32
    }
    func.func @step(%i: i32, %t: memref<8xi32, #tpu.memory_space<smem>>) -> (i32, i32) {
      %zero = arith.constant 0 : i32
      return %i, %zero : i32, i32
    }
  }
"""
CALL = """stablehlo.custom_call @tpu_custom_call(%n, %t, %x) {mosaic.kernel = @kernel,
    backend_config = "{\\22custom_call_config\\22: {\\22body\\22: \\22\\22}}"}
    : (tensor<i32>, tensor<8xi32>, tensor<64x128xf32>) -> tensor<64x128xf32>"""
ARGUMENTS = '(%n: tensor<i32> loc("n"), %t: tensor<8xi32> loc("t"), %x: tensor<64x128xf32>) -> tensor<64x128xf32>'
PLAIN = f"func.func public @main{ARGUMENTS} {{\n %0 = {CALL}\n return %0 : tensor<64x128xf32>\n}}"
BRANCH = f"""func.func public @main{ARGUMENTS} {{
  %c = stablehlo.constant dense<8> : tensor<i32>
  %few = stablehlo.compare LE, %n, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %0 = "stablehlo.if"(%few) ({{
    %1 = {CALL}
    stablehlo.return %1 : tensor<64x128xf32>
  }}, {{
    stablehlo.return %x : tensor<64x128xf32>
  }}) : (tensor<i1>) -> tensor<64x128xf32>
  return %0 : tensor<64x128xf32>
}}"""
CALLED = f"""func.func public @main{ARGUMENTS} {{
  %0 = call @inner(%n, %t, %x) : (tensor<i32>, tensor<8xi32>, tensor<64x128xf32>) -> tensor<64x128xf32>
  return %0 : tensor<64x128xf32>
}}
func.func private @inner(%n: tensor<i32>, %t: tensor<8xi32>, %x: tensor<64x128xf32>) -> tensor<64x128xf32> {{
  %0 = {CALL}
  return %0 : tensor<64x128xf32>
}}"""
IN_BRANCH = CALLED.replace(
    "%0 = call @inner(%n, %t, %x) : (tensor<i32>, tensor<8xi32>, tensor<64x128xf32>) -> tensor<64x128xf32>",
    """%c = stablehlo.constant dense<8> : tensor<i32>
  %few = stablehlo.compare LE, %n, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %0 = "stablehlo.if"(%few) ({
    %1 = func.call @inner(%n, %t, %x) : (tensor<i32>, tensor<8xi32>, tensor<64x128xf32>) -> tensor<64x128xf32>
    stablehlo.return %1 : tensor<64x128xf32>
  }, {
    stablehlo.return %x : tensor<64x128xf32>
  }) : (tensor<i1>) -> tensor<64x128xf32>""",
)
WRITES = """%c0 = arith.constant 0 : index
      %one = arith.constant 1 : i32
      memref.store %one, %t[%c0] : memref<8xi32, #tpu.memory_space<smem>>"""


def text(outer: str, bound: str = "-9223372036854775808", body: str = "", kind: str = "") -> str:
    """A program of these outer functions."""
    kernel = KERNEL.replace("BOUND", bound).replace("BODY", body).replace("KIND", kind)
    if bound.isdigit():
        outer = outer.replace("@tpu_custom_call(%n, ", "@tpu_custom_call(")
        outer = outer.replace(": (tensor<i32>, tensor<8xi32>", ": (tensor<8xi32>")
    return f"module {{\n{outer}\n{kernel}\n}}"


@pytest.fixture(autouse=True)
def context() -> Iterator[ir.Context]:
    """A current context."""
    with create_context() as context, unknown_location():
        yield context


def opened(source: str) -> ir.Operation:
    """The program."""
    assert ir.Context.current is not None
    return parse(source, "p.mlir", ir.Context.current)


def geometry(source: str, *contracts: str) -> Geometry:
    """That of the only launch."""
    program = opened(source)
    (launch,) = Program(program).launches
    return geometry_of(launch.kernel, launch, OuterScalars(program, contracts))


def said(source: str, *contracts: str, strict: bool = False, name: str = "window-out-of-bounds") -> list[str]:
    """What check-grid says of windows out of bounds, or under another name, up to the window."""
    program = opened(source)
    session = Session(parse_target("v5e"), contracts=contracts, selection=Selection(strict=strict))
    CheckGrid().run(program, session)
    return [d.message.partition(" of ")[0] for d in session.diagnostics if d.name == name]


def test_what_a_table_holds() -> None:
    """Elements are what the program computes, wherever the place is inside; beyond the end it may be anything."""
    n, element = sym.parameter("n", I32), sym.load("t", (), I32)
    assert Table("p", Uniform(n), (8,)).element([I], I32) == n
    shifted = Table("p", Each(sym.minimum(element, sym.constant(3))), (8,)).element([I], I32)
    assert str(shifted) == "min(3, t[i])"
    few = Table("p", Elements((n, sym.constant(5))), (2,))
    assert few.element([sym.constant(1)], I32) == sym.constant(5)
    assert "beyond its end" in str(few.element([sym.constant(2)], I32))
    assert "beyond its end" in str(Table("p", Uniform(n), (7,)).element([I], I32))
    at = few.element([sym.parameter("b", sym.Range(0, 1))], I32)
    values: list[dict[sym.Expr, int]] = [
        {leaf: {"n": 9, "b": b}[str(leaf)] for leaf in sym.leaves_of(at)} for b in (0, 1)
    ]
    assert [sym.value_of(at, known) for known in values] == [9, 5]
    many = Table("p", Elements(tuple(map(sym.constant, range(64)))), (64,)).element([I], I32)
    assert (str(many), sym.range_of(many)) == ("%p[i]", sym.Range(0, 63))


def test_a_launch_in_terms_of_inputs() -> None:
    """The bound is the argument, and the window reads the argument's elements by its name in the program."""
    found = geometry(text(PLAIN), "n >= 1", "t[*] >= 0")
    window = found.windows[0]
    assert window is not None
    assert (str(found.grid.bounds[0]), found.grid.arrays, found.grid.opaque) == ("n", frozenset({"t"}), frozenset())
    # the grid may have more steps than the table has elements
    assert str(window.index[0]).startswith("t[i] where i < 8") or "beyond its end" in str(window.index[0])


@pytest.mark.parametrize(("outer", "reached"), [(PLAIN, True), (CALLED, True), (BRANCH, False), (IN_BRANCH, False)])
def test_inputs_that_reach_a_launch(outer: str, reached: bool) -> None:
    """In a branch, or a function that is called in one, not every input gets there: no witness is made of inputs."""
    assert said(text(outer))[:1] == (["with n = 9 step (8) shows block (8, 0)"] if reached else [])
    assert said(text(outer), "n <= 8") == []


def test_a_contract_about_a_table() -> None:
    """Elements are looked at where a contract speaks of them, and proved where it is enough."""
    static = text(PLAIN, bound="8")
    assert said(static) == []
    assert said(static, "t[*] >= 0") == ["with t[0] = 8 step (0) shows block (8, 0)"]
    assert said(static, "0 <= t[*] < 8", strict=True) == []
    # another kernel argument of that name would be another table
    assert said(text(PLAIN, bound="8", body=WRITES), "0 <= t[*] < 9") == []
    assert len(said(text(PLAIN, bound="8", body=WRITES), "0 <= t[*] < 8", strict=True)) == 1


def test_a_race_that_a_table_decides() -> None:
    """Two steps that a table sends to one block race, if a contract says that it may hold such numbers."""
    source = text(PLAIN, bound="8").replace("@step, window", "@read, window").replace("<arbitrary>", "<parallel>")
    told = "with t[0] = 0 and t[1] = 0 parallel dimension 0 is a race: steps (0) and (1) write the same block (0, 0)"
    assert said(source, "0 <= t[*] < 8", name="parallel-race") == [told]
    assert said(source, name="parallel-race") == []
    assert said(source.replace("<parallel>", "<arbitrary>"), "0 <= t[*] < 8", name="parallel-race") == []


def test_a_table_that_is_too_short() -> None:
    """A contract about its elements says nothing of what is read behind them."""
    assert said(text(PLAIN, bound="9"), "0 <= t[*] < 8", strict=True)[0].startswith("can't tell whether each block")
    assert said(text(PLAIN, bound="8"), "0 <= t[*] < 8", strict=True) == []


@pytest.mark.parametrize(
    ("kind", "contract", "outside"),
    [
        ("", "0 <= t[*] <= 7", False),
        ("", "0 <= t[*] <= 8", True),
        (", window_kind = #tpu.element_window<[0, 0], [0, 0]>", "-7 <= t[*] <= 63", False),
        (", window_kind = #tpu.element_window<[0, 0], [0, 0]>", "-8 <= t[*] <= 63", True),
        (", window_kind = #tpu.element_window<[0, 0], [0, 0]>", "0 <= t[*] <= 64", True),
        (", window_kind = #tpu.element_window<[2, 0], [3, 0]>", "0 <= t[*] <= 68", False),
        (", window_kind = #tpu.element_window<[2, 0], [3, 0]>", "0 <= t[*] <= 69", True),
    ],
)
def test_blocks_and_elements(kind: str, contract: str, outside: bool) -> None:
    """A window in elements counts from the padding before the array to the padding behind it."""
    assert bool(said(text(PLAIN, bound="8", kind=kind), contract, strict=True)) == outside


def test_names_that_contracts_may_use() -> None:
    """Arguments by name or number; anything else is an error that says what there is."""
    assert geometry(text(PLAIN), "%arg0 <= 3").grid.bounds[0].range.hi == 3
    for contract, message in (
        ("m >= 1", "no integer argument 'm'"),
        ("%arg2 >= 1", "no integer argument '%arg2'"),
        ("t >= 1", "'t' is an array"),
        ("n[*] >= 1", "'n' is a scalar"),
        ("t[0, 0] >= 1", "'t' has 1 dimensions"),
        ("t[8] >= 1", "t[8] isn't in t, whose shape is [8]"),
        ("n > 3000000000", "is never true"),
    ):
        with pytest.raises(UserError, match=message.replace("[", "\\[")):
            geometry(text(PLAIN), contract)
