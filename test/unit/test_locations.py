"""Locations that are shipped apart from their kernel: taken off and put back on every op and argument."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import pytest
from jaxlib.mlir import ir

from mosaic_grid.context import create_context
from mosaic_grid.locations import LocationsError, attach, detach, unzip

KERNEL = """
module @k {
  func.func @k(%x: i32 loc("x_ref"("k.py":1:2)), %y: i32 loc(unknown)) -> i32 {
    %0:2 = scf.while (%a = %x, %b = %y) : (i32, i32) -> (i32, i32) {
      %c = arith.cmpi slt, %a, %b : i32 loc(callsite("f"("k.py":3:4) at "k.py":9:1))
      scf.condition(%c) %a, %b : i32, i32 loc("k.py":4:1)
    } do {
    ^bb0(%a: i32 loc("a"("k.py":5:1)), %b: i32 loc(fused["k.py":6:1, "k.py":7:1])):
      %s = arith.addi %a, %b : i32 loc("k.py":6:1 to :20)
      scf.yield %s, %b : i32, i32
    } loc("while"("k.py":2:1))
    return %0#0 : i32
  } loc("k"("k.py":1:1))
} loc(fused<"metadata">["k.py":1:1])
"""


@pytest.fixture(autouse=True)
def context() -> Iterator[ir.Context]:
    """The tool's context, current."""
    with create_context() as current:
        yield current


def kernel() -> ir.Operation:
    """An op with two regions, arguments in both, and locations of every kind."""
    return ir.Operation.parse(KERNEL, source_name="dump.mlir").operation


def full(op: ir.Operation) -> str:
    """The text with locations."""
    return str(op.get_asm(enable_debug_info=True))


def listed(text: str) -> bytes:
    """Bytecode of a module with these attributes."""
    buffer = io.BytesIO()
    ir.Module.parse(f"module attributes {{{text}}} {{}}").operation.write_bytecode(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("take_off", [detach, unzip])
def test_round_trip(take_off: Callable[[ir.Operation], bytes]) -> None:
    """jaxlib, or what stands in for it, takes them off, `attach` puts them back, each where it was."""
    op = kernel()
    before = full(op)
    apart = take_off(op)
    assert "k.py" not in full(op)
    attach(op, apart)
    assert full(op) == before


@pytest.mark.parametrize("take_off", [detach, unzip])
def test_stripped_kernel_is_another(take_off: Callable[[ir.Operation], bytes]) -> None:
    """A fresh kernel without locations gets those that were taken off its twin."""
    op = kernel()
    apart, stripped = take_off(op), full(op)
    other = ir.Operation.parse(stripped).operation
    attach(other, apart)
    assert full(other) == full(kernel())


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ("", "debug_locations has no 'tpu.locs' list"),
        ("tpu.locs = 1 : i32", "debug_locations has no 'tpu.locs' list"),
        ("tpu.locs = [1 : i32]", "debug_locations has something else than locations in its 'tpu.locs' list"),
        ("tpu.locs = []", "debug_locations lists fewer locations than the kernel has ops and arguments"),
        (
            f"tpu.locs = [{', '.join(['loc(unknown)'] * 99)}]",
            "debug_locations lists more locations than the kernel has ops and arguments",
        ),
    ],
)
def test_lists_that_do_not_belong(attributes: str, message: str) -> None:
    """A list that is none, or is another kernel's, is refused."""
    with pytest.raises(LocationsError) as caught:
        attach(kernel(), listed(attributes))
    assert str(caught.value) == message
