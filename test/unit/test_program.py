"""The views over a program: what they find, and what they say of parts that don't fit together."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from jaxlib.mlir import ir

from mosaic_grid.context import create_context
from mosaic_grid.errors import Place
from mosaic_grid.grid import Dimension, Semantics
from mosaic_grid.program import Kernel, Program, ProgramError, attribute_of, custom_calls, is_kernel

VMEM = "memref<8x128xf32, #tpu.memory_space<vmem>>"
SMEM = "memref<4xi32, #tpu.memory_space<smem>>"
DYNAMIC = -(2**63)


def kernel_text(attributes: str = "", arguments: str = "%i: i32, %j: i32", name: str = "k") -> str:
    """A kernel with a grid of two dimensions unless `attributes` says something else."""
    given = attributes or f"iteration_bounds = array<i64: {DYNAMIC}, 2>"
    return (
        f"module @{name} attributes {{stable_mosaic.version = 15 : i64}} {{\n"
        f"  func.func @body({arguments}) attributes {{tpu.core_type = #tpu.core_type<tc>, {given}}} {{\n"
        "    return\n  }\n"
        "  func.func @transform_0(%i: i32, %j: i32) -> (i32, i32) {\n    return %i, %j : i32, i32\n  }\n}\n"
    )


LAUNCH = (
    "func.func @main(%n: tensor<i32>) {{\n"
    "  stablehlo.custom_call @tpu_custom_call({operands}) {{mosaic.kernel = {kernel}, has_side_effect = true, "
    'backend_config = ""}} : ({types}) -> () loc("step.py":7:3)\n'
    "  return\n}}\n"
)


@pytest.fixture(autouse=True)
def context() -> Iterator[ir.Context]:
    """The tool's context, current."""
    with create_context() as current, ir.Location.unknown():
        yield current


def read(text: str) -> ir.Operation:
    """A program from its text; several ops stand in a module."""
    return ir.Module.parse(text).operation


def bare(text: str) -> Kernel:
    """A kernel from its text."""
    return Kernel(ir.Operation.parse(text, source_name="kernel.mlir").operation)


def launch(operands: str = "%n", kernel: str = "@k", types: str = "tensor<i32>") -> str:
    """A function that launches a kernel."""
    return LAUNCH.format(operands=operands, kernel=kernel, types=types)


def test_kernel_parts() -> None:
    """Grid, prefetch operands, windows and scratch are told apart by the counts that the kernel gives."""
    kernel = bare(
        kernel_text(
            f"iteration_bounds = array<i64: {DYNAMIC}, 2>, scalar_prefetch = 1 : i64, scratch_operands = 2 : i64, "
            "dimension_semantics = [#tpu.dimension_semantics<parallel>, #tpu.dimension_semantics<arbitrary>], "
            "window_params = [{transform_indices = @transform_0, window_bounds = array<i64: 8, 128>}, {}]",
            f"%i: i32, %j: i32, %t: {SMEM}, %x: {VMEM}, %o: {VMEM}, %s: {VMEM}, %r: {SMEM}",
        )
    )
    assert (kernel.symbol, kernel.name) == ("k", "body")
    assert kernel.grid == (Dimension(None, Semantics.PARALLEL), Dimension(2, Semantics.ARBITRARY))
    assert kernel.dynamic_dimensions == (0,)
    assert [str(argument.type) for argument in kernel.prefetch] == [SMEM]
    assert [str(argument.type) for argument in kernel.scratch] == [VMEM, SMEM]
    assert [(window.shape, window.transform) for window in kernel.windows] == [((8, 128), "transform_0"), (None, None)]
    assert list(kernel.functions) == ["body", "transform_0"]


def test_kernel_that_says_little() -> None:
    """Without a grid there are no dimensions, without semantics they are arbitrary, without windows all is whole."""
    kernel = bare(kernel_text("scratch_operands = 0 : i64", f"%x: {VMEM}"))
    assert kernel.grid == ()
    assert [window.shape for window in kernel.windows] == [None]
    for attributes in ("", "iteration_bounds = array<i64: 2, 2>, dimension_semantics = []"):
        assert {dimension.semantics for dimension in bare(kernel_text(attributes)).grid} == {Semantics.ARBITRARY}


def test_launches() -> None:
    """A launch leads to its kernel, and a dynamic bound to its operand."""
    program = Program(read(launch() + kernel_text()))
    (found,) = program.launches
    assert found.kernel.symbol == "k"
    assert {axis: str(value.type) for axis, value in found.bounds.items()} == {0: "tensor<i32>"}


def test_a_bare_kernel_is_a_program() -> None:
    """It is its only kernel, and has no launches."""
    program = Program(ir.Operation.parse(kernel_text()).operation)
    assert list(program.kernels) == ["k"]
    assert program.launches == ()


def test_kernels_are_not_looked_into() -> None:
    """A custom call inside a kernel is none of the outer program, and other targets are no launches."""
    inside = kernel_text().replace(
        "    return\n",
        '    "stablehlo.custom_call"() {call_target_name = "tpu_custom_call"} : () -> ()\n    return\n',
        1,
    )
    other = launch().replace("@tpu_custom_call", "@annotate")
    assert custom_calls(read(inside + other)) == []
    assert len(custom_calls(read(inside + launch()))) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("module attributes {stable_mosaic.version = 1 : i64} {}", True),
        ("module { func.func @k() attributes {tpu.core_type = #tpu.core_type<tc>} { return } }", True),
        ("module { func.func @k() attributes {iteration_bounds = array<i64>} { return } }", True),
        ("module { func.func @k() { return } }", False),
        ("module {}", False),
        ("func.func @k() attributes {tpu.core_type = #tpu.core_type<tc>} { return }", False),
    ],
)
def test_is_kernel(text: str, expected: bool) -> None:
    """A kernel is a module that says so, by its version or by its first function."""
    assert is_kernel(ir.Operation.parse(text).operation) is expected


@pytest.mark.parametrize(
    ("kernel", "part", "message"),
    [
        ("module @k attributes {stable_mosaic.version = 1 : i64} {}", "body", "the kernel @k has no function"),
        (
            kernel_text(
                "iteration_bounds = array<i64: 2, 2>, dimension_semantics = [#tpu.dimension_semantics<parallel>]"
            ),
            "grid",
            "iteration_bounds and dimension_semantics differ in length",
        ),
        (kernel_text("iteration_bounds = [2, 2]"), "grid", "'iteration_bounds' is not what it should be: [2, 2]"),
        (
            kernel_text('iteration_bounds = array<i64: 2>, dimension_semantics = ["parallel"]'),
            "grid",
            "dimension_semantics can't be read: ",
        ),
        (kernel_text('scalar_prefetch = "1"'), "prefetch_count", "'scalar_prefetch' is not what it should be: \"1\""),
        (kernel_text("window_params = 1"), "windows", "'window_params' is not what it should be: 1"),
        (
            kernel_text("window_params = [1]", f"%x: {VMEM}"),
            "windows",
            "window_params has an entry that is no dictionary",
        ),
        (
            kernel_text("window_params = [{}, {}]", f"%x: {VMEM}"),
            "windows",
            "window_params and the kernel's arguments differ in number",
        ),
    ],
)
def test_kernels_that_do_not_fit_together(kernel: str, part: str, message: str) -> None:
    """A part that contradicts another is an error at the kernel, never an exception of the bindings."""
    with pytest.raises(ProgramError) as caught:
        getattr(bare(kernel), part)
    assert caught.value.message.startswith(message)
    assert caught.value.place
    assert caught.value.place.file == "kernel.mlir"


@pytest.mark.parametrize(
    ("text", "message", "notes"),
    [
        (
            launch(kernel="@other") + kernel_text(),
            "this launch names the kernel @other, which is not in the program",
            ("the kernels are @k",),
        ),
        (launch(), "this launch names the kernel @k, which is not in the program", ("there is no kernel in it",)),
        (launch(kernel="1 : i32") + kernel_text(), "'mosaic.kernel' is not what it should be: 1 : i32", ()),
        (
            launch("", types="") + kernel_text(),
            "this launch has fewer operands than @k has bounds and prefetch operands",
            (),
        ),
    ],
)
def test_launches_that_do_not_fit(text: str, message: str, notes: tuple[str, ...]) -> None:
    """A launch that doesn't fit its kernel is an error at the launch."""
    with pytest.raises(ProgramError) as caught:
        _ = Program(read(text)).launches
    assert (caught.value.message, caught.value.notes) == (message, notes)
    assert caught.value.place == Place("step.py", 7, 3)


def test_launch_without_config() -> None:
    """Its configuration is asked for, and isn't there."""
    (found,) = Program(read(launch().replace(', backend_config = ""', "") + kernel_text())).launches
    with pytest.raises(ProgramError, match="this launch has no backend_config string"):
        _ = found.config


def test_attribute_of() -> None:
    """An attribute of the right kind, none, and one of another kind, which is an error that shows it."""
    op = ir.Operation.parse('module attributes {a.x = 1 : i64, a.y = "1"} {}', source_name="m.mlir").operation
    found = attribute_of(op, "a.x", ir.IntegerAttr)
    assert found is not None
    assert found.value == 1
    assert attribute_of(op, "a.z", ir.IntegerAttr) is None
    with pytest.raises(ProgramError, match=r"m\.mlir:1:1: error: 'a\.y' is not what it should be: \"1\""):
        attribute_of(op, "a.y", ir.IntegerAttr)
