"""A launch that doesn't fit its kernel is one located error, and never a wrong result."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jaxlib.mlir import ir

from mosaic_grid.context import create_context, unknown_location
from mosaic_grid.cpu.convert import lower_to_cpu
from mosaic_grid.cpu.options import Options
from mosaic_grid.errors import UserError

DOUBLE = (Path(__file__).parents[1] / "tool" / "Inputs" / "double.mlir").read_text()
MAP = "func.func @transform_1(%i: i32, %j: i32) -> (i32, i32) {\n    return %i, %j : i32, i32\n  }"


def lowered(text: str) -> str:
    """The program lowered for the CPU. Raises `UserError`."""
    with create_context(), unknown_location():
        module = ir.Module.parse(text)
        lower_to_cpu(module.operation, Options())
        return str(module)


def test_sample_fits() -> None:
    """What the others are changed from is right."""
    assert "tpu_custom_call" not in lowered(DOUBLE)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tensor<i32>", "tensor<i16>", "the bound of dimension 0 of @double is tensor<i16>, not tensor<i32>"),
        (
            "tensor<1024x256xf32>",
            "tensor<1024x256xbf16>",
            "input 0 of this launch is tensor<1024x256xbf16>",
        ),
        ("array<i64: 8, 128>}]", "array<i64: 128, 8>}]", "a window of [128, 8] can't be seen as memref<8x128xf32"),
        ("array<i64: 8, 128>}]", "array<i64: 16, 128>}]", "a window of [16, 128] can't be seen as memref<8x128xf32"),
        ("array<i64: 8, 128>}]", "array<i64: -8, 128>}]", "is [-8, 128]: its sizes must be positive"),
        ("array<i64: 8, 128>}]", "array<i64: 0, 128>}]", "is [0, 128]: its sizes must be positive"),
        ("array<i64: 8, 128>}]", "7 : i64}]", "window_bounds can't be 7 : i64"),
        (" window_bounds = array<i64: 8, 128>}]", " window_bounds = array<i64: 8, 128>}, unit]", "no dictionary"),
        ("808, 2>", "808, -2>", "dimension 1 of @double can't have -2 steps"),
        (
            "{transform_indices = @transform_1",
            "{transform_indices = @double",
            "the index map @double is the kernel itself",
        ),
        (
            MAP,
            "func.func @transform_1(%i: i32) -> (i32, i32) { return %i, %i : i32, i32 }",
            "the index map @transform_1 is (i32) -> (i32, i32), and not from the 2 grid indices",
        ),
        (
            MAP,
            "func.func @transform_1(%i: i32, %j: i32) -> i32 { return %i : i32 }",
            "the index map @transform_1 is (i32, i32) -> i32, and not from the 2 grid indices",
        ),
        (
            MAP,
            "func.func @transform_1(%i: i32, %j: i32) -> (i32, i32) { %c = arith.cmpi slt, %i, %j : i32 "
            "cf.cond_br %c, ^a, ^b\n^a: return %i, %j : i32, i32\n^b: return %j, %i : i32, i32 }",
            "@transform_1 has branches between blocks",
        ),
        (
            "{stable_mosaic.version",
            "{tpu.dynamic_dimension_mapping_indices_7 = [], stable_mosaic.version",
            "symbolic shapes",
        ),
    ],
)
def test_unfit_launch(old: str, new: str, message: str) -> None:
    """What the lowering relies on is looked at before, and said."""
    assert old in DOUBLE
    with pytest.raises(UserError, match=re.escape(message)):
        lowered(DOUBLE.replace(old, new))


def test_unfit_result() -> None:
    """A result of another element type than the kernel's output isn't taken for its bits."""
    for old in ("-> tensor<1024x256xf32>", "return %0 : tensor<1024x256xf32>"):
        assert old in DOUBLE
    text = DOUBLE.replace("-> tensor<1024x256xf32>", "-> tensor<1024x256xi32>")
    with pytest.raises(UserError, match="output 0 of this launch is tensor<1024x256xi32>"):
        lowered(text.replace("return %0 : tensor<1024x256xf32>", "return %0 : tensor<1024x256xi32>"))


def test_recursion() -> None:
    """A function that calls itself through another is refused."""
    text = """
      func.func public @main(%x: tensor<f32>) -> tensor<f32> {
        %0 = func.call @f(%x) : (tensor<f32>) -> tensor<f32>
        return %0 : tensor<f32>
      }
      func.func private @f(%x: tensor<f32>) -> tensor<f32> {
        %0 = func.call @g(%x) : (tensor<f32>) -> tensor<f32>
        return %0 : tensor<f32>
      }
      func.func private @g(%x: tensor<f32>) -> tensor<f32> {
        %0 = func.call @f(%x) : (tensor<f32>) -> tensor<f32>
        return %0 : tensor<f32>
      }
    """
    with pytest.raises(UserError, match="@f calls itself"):
        lowered(text)


def test_loop_that_never_ends() -> None:
    """A constant step of 0 is refused, where it would run for ever."""
    store = next(line for line in DOUBLE.splitlines() if "vector.store" in line)
    zero = "%zero = arith.constant 0 : i32"
    text = DOUBLE.replace(store, f"{zero}\n scf.for %k = %i to %j step %zero : i32 {{\n {store}\n }}")
    with pytest.raises(UserError) as caught:
        lowered(text)
    assert any("a step of 0, with which the loop never ends" in note for note in caught.value.notes)
