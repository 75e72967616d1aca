"""A step that first of all writes all of its output doesn't depend on what the buffer held."""

from __future__ import annotations

import pytest
from jaxlib.mlir import ir

from mosaic_grid.context import create_context
from mosaic_grid.cpu.overwritten import is_overwritten

STORE = "vector.store %v, %m[%c0, %c0] : memref<8x128xf32>, vector<8x128xf32>"
LOAD = "%old = vector.load %m[%c0, %c0] : memref<8x128xf32>, vector<8x128xf32>"
VIEW = "memref<8x128xf32, strided<[128, 1]>>"
COPY = (
    "tpu.enqueue_dma source(%m : memref<8x128xf32>) target(%b : memref<8x128xf32>) "
    "target_semaphore(%s : memref<!tpu.dma_semaphore>)"
)
SCALAR = "memref.store %f, %m[%c0, %c0] : memref<8x128xf32>"


def tpu_store(how: str = "", mask: str = "") -> str:
    """A store of the `tpu` dialect to all of the memref."""
    types = "memref<8x128xf32>, vector<8x128xf32>, " + ("vector<8x128xi1>" if mask else "")
    return f"tpu.vector_store %m[%c0, %c0], %v {mask} {{strides = array<i32>{how}}} : {types}"


def says(*lines: str) -> bool:
    """What it says of a body of these operations."""
    text = "\n".join(lines)
    with create_context():
        module = ir.Module.parse(f"""
func.func @f(%m: memref<8x128xf32>, %v: vector<8x128xf32>, %c: i1, %i: index, %f: f32, %k: vector<8x128xi1>,
             %b: memref<8x128xf32>, %s: memref<!tpu.dma_semaphore>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  {text}
  return
}}""")
        block = module.operation.regions[0].blocks[0].operations[0].operation.regions[0].blocks[0]
        return is_overwritten(block, block.arguments[0])


@pytest.mark.parametrize("store", [STORE, tpu_store()])
def test_a_store_to_all_of_it(store: str) -> None:
    """Whatever comes later, and although JAX loads what nobody uses before."""
    assert says(store)
    assert says(LOAD, store, SCALAR)
    assert says(store, "scf.if %c {", LOAD.replace("%old", "%other"), STORE, "}")


@pytest.mark.parametrize(
    "lines",
    [
        (),
        (LOAD,),
        (SCALAR, STORE),
        (COPY, STORE),
        (LOAD, "%sum = arith.addf %old, %v : vector<8x128xf32>", STORE),
        ("scf.if %c {", STORE, "}"),
        ("scf.if %c {", SCALAR, "}", STORE),
        ("vector.store %v, %m[%c1, %c0] : memref<8x128xf32>, vector<8x128xf32>",),
        ("vector.store %v, %m[%i, %c0] : memref<8x128xf32>, vector<8x128xf32>",),
        (
            "%part = arith.constant dense<0.0> : vector<4x128xf32>",
            "vector.store %part, %m[%c0, %c0] : memref<8x128xf32>, vector<4x128xf32>",
        ),
        (
            f"%view = memref.subview %m[0, 0] [8, 128] [1, 1] : memref<8x128xf32> to {VIEW}",
            f"vector.store %v, %view[%c0, %c0] : {VIEW}, vector<8x128xf32>",
        ),
    ],
    ids=range(11),
)
def test_what_may_show_what_it_held(lines: tuple[str, ...]) -> None:
    """Nothing, a load that is used, a copy, a store to a part, under a condition, or through a view."""
    assert not says(*lines)


@pytest.mark.parametrize("store", [tpu_store(", add = true"), tpu_store(mask="masked %k")])
def test_stores_that_leave_some(store: str) -> None:
    """Those that add or are masked need what was there."""
    assert not says(store)
