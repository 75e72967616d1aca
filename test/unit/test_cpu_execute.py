"""Compiling and running a StableHLO program on the CPU: types, order, and every way in which it can be refused."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from jaxlib.mlir import ir

from mosaic_grid.context import create_context
from mosaic_grid.cpu import execute
from mosaic_grid.cpu.arrays import DTYPES, Array
from mosaic_grid.cpu.execute import ClientError, Executable, compile_program
from mosaic_grid.cpu.xla_options import COMPILER_OPTIONS, SCHEDULER
from mosaic_grid.errors import UserError

IDENTITY = "module {{ func.func public @main(%a: {0}) -> {0} {{ return %a : {0} }} }}"
ADD = """
module attributes {mosaic.note = "x"} {
  func.func public @main(%a: tensor<2x3xf32> loc("x"), %b: tensor<i32>) -> (tensor<i32>, tensor<2x3xf32>) {
    %0 = stablehlo.add %a, %a {mosaic.note = 1 : i32} : tensor<2x3xf32>
    return %b, %0 : tensor<i32>, tensor<2x3xf32>
  }
}
"""


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    """A context in which programs can be parsed."""
    with create_context():
        yield


def compiled(text: str) -> Executable:
    """The program, compiled."""
    return compile_program(ir.Module.parse(text).operation)


def some_numbers(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """A few small numbers of a type over and over, -1 among them where it has that, and no NaN."""
    few = np.array([1, 0, -1, 1, 2, 4]).astype(dtype)
    exact = few[few.astype(complex) == [1, 0, -1, 1, 2, 4]]
    return np.resize(exact, shape)


@pytest.mark.parametrize("shape", [(), (3, 5), (0, 4), (1,), (64, 3)])
@pytest.mark.parametrize("name", DTYPES)
def test_every_type_comes_back_as_it_went(name: str, shape: tuple[int, ...]) -> None:
    """Arrays of each element type and shape reach the program and return, those packed into half a byte too."""
    array = some_numbers(DTYPES[name], shape)
    kind = f"tensor<{''.join(f'{size}x' for size in shape)}{name}>"
    (result,) = compiled(IDENTITY.format(kind))(array)
    assert (result.dtype, result.shape) == (array.dtype, array.shape)
    assert np.array_equal(result, array)


def test_order_and_discardable_attributes() -> None:
    """Arguments and results come in the order of `@main`; attributes of our own don't disturb XLA."""
    number, doubled = compiled(ADD)(np.ones((2, 3), np.float32), np.int32(7))  # type: ignore[arg-type]
    assert number == 7
    assert np.array_equal(doubled, np.full((2, 3), 2, np.float32))


def test_arrays_of_any_layout() -> None:
    """A transposed or sliced array is taken by its elements, not by its memory."""
    array = np.arange(24, dtype=np.float32).reshape(6, 4).T[:, ::2]
    (result,) = compiled(IDENTITY.format("tensor<4x3xf32>"))(array)
    assert np.array_equal(result, array)


def test_results_outlive_everything_else() -> None:
    """A result keeps its memory when the program and the argument are gone, and when the program runs again."""
    program = compiled(IDENTITY.format("tensor<1000xf32>"))
    results = [program(np.full(1000, number, np.float32))[0] for number in range(20)]
    del program
    gc.collect()
    assert [set(result.tolist()) for result in results] == [{float(number)} for number in range(20)]


def test_a_donated_argument_is_left_alone() -> None:
    """A program that may write its result into its argument doesn't write into the caller's array."""
    text = """
    module { func.func public @main(%a: tensor<1024xf32> {tf.aliasing_output = 0 : i32}) -> tensor<1024xf32> {
      %0 = stablehlo.add %a, %a : tensor<1024xf32>
      return %0 : tensor<1024xf32> } }
    """
    memory = np.zeros(2048, np.float32)
    start = -memory.ctypes.data % 64 // 4  # so aligned, XLA uses the caller's memory
    array = memory[start : start + 1024]
    array[:] = 1
    (result,) = compiled(text)(array)
    assert set(result.tolist()) == {2.0}
    assert set(array.tolist()) == {1.0}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([np.ones((2, 3), np.float32)], "the program takes 2 arguments, it got 1"),
        (
            [np.ones((2, 3), ml_dtypes.bfloat16), np.int32(0)],
            "argument 0 (x) of the program is f32[2,3], it got bf16[2,3]",
        ),
        ([np.ones((3, 2), np.float32), np.int32(0)], "argument 0 (x) of the program is f32[2,3], it got f32[3,2]"),
        ([np.ones((2, 3), np.float32), np.uint32(0)], "argument 1 of the program is i32[], it got ui32[]"),
        ([np.ones((2, 3), np.float32), np.array("a")], "argument 1 of the program is i32[], it got <U1[]"),
        ([np.ones((2, 3), ">f4"), np.int32(0)], "argument 0 (x) of the program is f32[2,3], it got >f4[2,3]"),
    ],
)
def test_arrays_that_do_not_fit(arrays: list[Any], message: str) -> None:
    """An array of another shape or type is refused by the argument's name, with both types."""
    with pytest.raises(UserError) as error:
        compiled(ADD)(*arrays)
    assert error.value.message == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("module { func.func @other() { return } }", "the program has no function @main that could be run"),
        ("module { func.func private @main() }", "the program has no function @main that could be run"),
        (
            IDENTITY.format("tensor<?xf32>"),
            "argument 0 of the program is a tensor<?xf32>; only arrays of static shape can be handed to it",
        ),
        (
            IDENTITY.format("tensor<2xi7>"),
            "argument 0 of the program is a tensor<2xi7>, which no NumPy type is for",
        ),
        (
            "module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 2 : i32} "
            "{ func.func @main() { return } }",
            "the program needs 8 devices (mhlo.num_replicas = 2, mhlo.num_partitions = 4); on the CPU there is one",
        ),
    ],
)
def test_programs_that_cannot_be_run(text: str, message: str) -> None:
    """What can't be run is told before anything is compiled."""
    with pytest.raises(UserError) as error:
        compiled(text)
    assert error.value.message == message


def test_one_of_each_device_is_enough() -> None:
    """A program that says that it is for one device runs."""
    attributes = "mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32"
    assert compiled(f"module attributes {{{attributes}}} {{ func.func @main() {{ return }} }}")() == []


def test_what_xla_refuses_is_an_error_of_the_user() -> None:
    """XLA's reason stands in the message."""
    call = "%0 = stablehlo.custom_call @no() : () -> tensor<f32>"
    with pytest.raises(UserError, match=r"compiling the program on the CPU failed: .* custom call to no for Host"):
        compiled(f"module {{ func.func @main() -> tensor<f32> {{ {call} return %0 : tensor<f32> }} }}")


def test_another_interface_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where jaxlib's private interface has moved, the error says that instead of what Python makes of it."""
    monkeypatch.delattr("jaxlib._jax.CompileOptions")
    with pytest.raises(ClientError, match=r"jaxlib's CPU client isn't the one that is known here: .*CompileOptions"):
        compiled("module { func.func @main() { return } }")


def test_our_options_are_some_that_xla_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """XLA reads the options: it takes all of ours, and refuses one that doesn't exist."""
    module = ir.Module.parse("module { func.func @main() { return } }").operation
    assert execute._compile(module, list(COMPILER_OPTIONS.items())) is not None
    monkeypatch.setattr(execute, "COMPILER_OPTIONS", {"xla_no_such_option": False})
    with pytest.raises(UserError, match="xla_no_such_option"):
        compiled("module { func.func @main() { return } }")


def test_an_xla_without_that_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    """What only makes a program faster is left out where XLA doesn't know it."""
    monkeypatch.setattr(execute, "COMPILER_OPTIONS", {SCHEDULER: "CPU_SCHEDULER_TYPE_OF_ANOTHER_RELEASE"})
    assert compiled("module { func.func @main() { return } }")() == []


def test_neither_jax_nor_a_word() -> None:
    """Running a program imports no JAX, and XLA writes nothing when it starts."""
    code = """
import sys
import numpy as np
from mosaic_grid.context import create_context
from mosaic_grid.cpu.execute import compile_program
from jaxlib.mlir import ir
with create_context():
    text = "module { func.func @main(%a: tensor<2xbf16>) -> tensor<2xbf16> { return %a : tensor<2xbf16> } }"
    program = compile_program(ir.Module.parse(text).operation)
    print(program(np.zeros(2, program.arguments[0].dtype))[0].tolist(), "jax" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[0.0, 0.0] False\n", "")
