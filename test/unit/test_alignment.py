"""Indices of loads and stores that the compiler doesn't take: check-grid says so of those, and of no other."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jaxlib.mlir import ir

from mosaic_grid.context import create_context
from mosaic_grid.libtpu import compile_program, libtpu_available
from mosaic_grid.passes.check_grid import CheckGrid
from mosaic_grid.session import Session
from mosaic_grid.targets import parse_target
from mosaic_grid.unpack import unpack

MULTIPLE = pl.multiple_of

# what is made of a number read from SMEM and of the grid's index, and whether libtpu takes 8 rows from there
INDICES: dict[str, tuple[Callable[[Any, Any], Any], bool]] = {
    "n": (lambda n, i: n, False),
    "n + 8": (lambda n, i: n + 8, False),
    "n * 4": (lambda n, i: n * 4, False),
    "n * 8": (lambda n, i: n * 8, True),
    "n * 8 + 8": (lambda n, i: n * 8 + 8, True),
    "n * 8 + 4": (lambda n, i: n * 8 + 4, False),
    "64 - n * 8": (lambda n, i: 64 - n * 8, True),
    "n * 4 * 2": (lambda n, i: n * 4 * 2, True),
    "(n * 2) * (n * 4)": (lambda n, i: (n * 2) * (n * 4), False),
    "i": (lambda n, i: i, False),
    "i * 8": (lambda n, i: i * 8, True),
    "i * 4": (lambda n, i: i * 4, False),
    "multiple(n, 8)": (lambda n, i: MULTIPLE(n, 8), True),
    "multiple(n, 16) + 8": (lambda n, i: MULTIPLE(n, 16) + 8, True),
    "multiple(n, 4)": (lambda n, i: MULTIPLE(n, 4), False),
    "multiple(n, 4) * 2": (lambda n, i: MULTIPLE(n, 4) * 2, True),
    "n << 3": (lambda n, i: n << 3, False),
    "n & ~7": (lambda n, i: n & ~7, False),
    "n / 8 * 8": (lambda n, i: jax.lax.div(n, 8) * 8, True),
    "n * 16 / 2": (lambda n, i: jax.lax.div(n * 16, 2), True),
    "n * 8 / 8": (lambda n, i: jax.lax.div(n * 8, 8), False),
    "n * 8 % 64": (lambda n, i: jax.lax.rem(n * 8, 64), True),
    "min(n * 8, 64)": (lambda n, i: jnp.minimum(n * 8, 64), True),
    "min(n * 8, 63)": (lambda n, i: jnp.minimum(n * 8, 63), False),
    "max(n * 8, 8)": (lambda n, i: jnp.maximum(n * 8, 8), False),
    "n * 8 or 16": (lambda n, i: jnp.where(n > 0, n * 8, 16), True),
    "n or 16": (lambda n, i: jnp.where(n > 0, n, 16), False),
    "n - n": (lambda n, i: n - n, True),
    "n - n % 8": (lambda n, i: n - jax.lax.rem(n, 8), False),
    "n * 9 - n": (lambda n, i: n * 9 - n, False),
    "n - 8 * i": (lambda n, i: n - 8 * i, False),
    "n * 8 - i * 8": (lambda n, i: n * 8 - i * 8, True),
    "n * 8 + n % 8 - n % 8": (lambda n, i: n * 8 + jax.lax.rem(n, 8) - jax.lax.rem(n, 8), True),
    "n + i - (i + n) + i * 8": (lambda n, i: n + i - (i + n) + i * 8, True),
    "if n: n * 8": (lambda n, i: jax.lax.cond(n > 3, lambda: n * 8, lambda: 16), False),
    "n * 8 from outside of an if": (lambda n, i: either(n, n * 8, n * 16), True),
    "num_programs": (lambda n, i: pl.num_programs(0), True),
}


def either(n: Any, one: Any, other: Any) -> Any:
    """One of two numbers, which were computed before."""
    return jax.lax.cond(n > 3, lambda: one, lambda: other)


def eight_rows(index: Callable[[Any, Any], Any]) -> str:
    """A kernel that copies 8 rows from an index, lowered."""

    def kernel(n_ref: Any, x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[pl.ds(index(n_ref[0], pl.program_id(0)), 8), :]

    return program(kernel, (8, 256), (256, 256), jnp.float32)


def program(kernel: Any, out: tuple[int, int], rows: tuple[int, int], dtype: Any) -> str:
    """A launch of a kernel of a number, a matrix and a result on a grid of 8 steps, lowered."""
    grid = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(8,),
        in_specs=[pl.BlockSpec(rows, lambda i, n: (0, 0))],
        out_specs=pl.BlockSpec(out, lambda i, n: (0, 0)),
    )
    shape: Any = jax.ShapeDtypeStruct
    call = pl.pallas_call(kernel, grid_spec=grid, out_shape=shape(out, dtype))
    traced = jax.jit(call).trace(shape((4,), jnp.int32), shape(rows, dtype))
    text: str = traced.lower(lowering_platforms=("tpu",)).as_text()
    return text


def findings(text: str) -> list[str]:
    """What check-grid says of the alignment of indices."""
    session = Session()
    with create_context(), ir.Location.unknown():
        module = ir.Operation.parse(text)
        unpack(module.operation)
        CheckGrid().run(module.operation, session)
    return [each.message for each in session.diagnostics if each.name == "unproven-alignment"]


def compiles(text: str) -> bool:
    """Whether libtpu takes it for a v5e; what else it refuses is a failure of the test."""
    (report,) = compile_program(text.encode(), [parse_target("v5e")])
    (launch,) = report.launches
    assert not launch.failed or "cannot statically prove that index" in str(launch.diagnostic)
    return not launch.failed


@pytest.mark.parametrize("name", INDICES)
def test_indices(name: str) -> None:
    """An index is told of where the compiler refuses it, with the multiple, and once."""
    index, taken = INDICES[name]
    told = findings(eight_rows(index))
    assert [message.endswith("a multiple of 8") for message in told] == ([] if taken else [True])


@pytest.mark.libtpu
@pytest.mark.skipif(not libtpu_available(), reason="there is no libtpu")
@pytest.mark.parametrize("name", ["n + 8", "n << 3", "n * 8 + 8"])
def test_the_compiler_agrees(name: str) -> None:
    """What the table says of an index is what libtpu says: a sum of multiples is one, and it doesn't see shifts."""
    index, taken = INDICES[name]
    assert compiles(eight_rows(index)) is taken


@pytest.mark.full
@pytest.mark.libtpu
@pytest.mark.skipif(not libtpu_available(), reason="there is no libtpu")
def test_the_compiler_agrees_on_all() -> None:
    """The whole table is what libtpu says."""
    said = {name: compiles(eight_rows(index)) for name, (index, _) in INDICES.items()}
    assert said == {name: taken for name, (_, taken) in INDICES.items()}


def of_rows(count: int, bits: int, moved: int, multiple: int) -> str:
    """A kernel that copies `moved` rows of a buffer of `count` from a multiple, lowered."""
    dtype = {32: jnp.float32, 16: jnp.bfloat16, 8: jnp.int8}[bits]

    def kernel(n_ref: Any, x_ref: Any, o_ref: Any) -> None:
        start = n_ref[0] if multiple == 1 else MULTIPLE(n_ref[0], multiple)
        o_ref[...] = x_ref[pl.ds(start, moved), :]

    return program(kernel, (moved, 256), (count, 256), dtype)


ROWS = [(rows, bits, moved) for bits in (32, 16, 8) for rows in (2, 4, 8, 12, 32, 40) for moved in (1, 2)]


def needed(rows: int, bits: int, moved: int) -> int:
    """The least multiple that check-grid says nothing of."""
    return next(m for m in (1, 2, 4, 8, 16, 32, 64) if not findings(of_rows(rows, bits, moved, m)))


@functools.cache
def tiles() -> dict[tuple[int, int, int], int]:
    """What check-grid wants of each kind of buffer."""
    return {kind: needed(*kind) for kind in ROWS}


def test_tiles() -> None:
    """A tile has 8 rows, fewer in a small buffer, 32 where bytes fill it; single rows of words may be anywhere."""
    wanted = tiles()
    assert {wanted[rows, 32, 1] for rows in (2, 4, 8, 12, 32, 40)} == {1}
    assert [wanted[rows, 16, 1] for rows in (2, 4, 8, 12, 32, 40)] == [2, 4, 8, 8, 8, 8]
    assert [wanted[rows, 8, 2] for rows in (2, 4, 8, 12, 32, 40)] == [4, 4, 8, 8, 32, 8]


@pytest.mark.full
@pytest.mark.libtpu
@pytest.mark.skipif(not libtpu_available(), reason="there is no libtpu")
def test_the_compiler_wants_these_tiles() -> None:
    """It takes an index that is a multiple of the tile, and none of half of it."""
    for kind, tile in tiles().items():
        assert compiles(of_rows(*kind, tile)), kind
        assert tile == 1 or not compiles(of_rows(*kind, tile // 2)), kind


def of_loop(start: Callable[[Any], Any], step: Callable[[Any, Any], Any], trips: Callable[[Any], Any]) -> str:
    """A kernel that adds up 8 rows from a number which a loop carries, lowered."""

    def kernel(n_ref: Any, x_ref: Any, o_ref: Any) -> None:
        n = n_ref[0]
        o_ref[...] = jnp.zeros_like(o_ref)

        def body(_: Any, carried: Any) -> Any:
            o_ref[...] += x_ref[pl.ds(carried, 8), :]
            return step(carried, n)

        jax.lax.fori_loop(0, trips(n), body, start(n))

    return program(kernel, (8, 256), (256, 256), jnp.float32)


def while_loop(step: int) -> str:
    """The same with a `while` loop, whose number begins at 0."""

    def kernel(n_ref: Any, x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

        def body(carried: Any) -> Any:
            o_ref[...] += x_ref[pl.ds(carried, 8), :]
            return carried + step

        jax.lax.while_loop(lambda carried: carried < n_ref[0], body, 0)

    return program(kernel, (8, 256), (256, 256), jnp.float32)


# what a loop starts with, its step, and its trips; whether libtpu takes 8 rows from there
LOOPS: dict[str, tuple[str, bool]] = {
    "0, + 8": (of_loop(lambda n: 0, lambda c, n: c + 8, lambda n: 4), False),
    "n * 8, + 8, n times": (of_loop(lambda n: n * 8, lambda c, n: c + 8, lambda n: n), False),
    "n * 8, + 8, once": (of_loop(lambda n: n * 8, lambda c, n: c + 8, lambda n: 1), True),
    "n * 8, the same": (of_loop(lambda n: n * 8, lambda c, n: c, lambda n: n), True),
    "n * 8, + 0": (of_loop(lambda n: n * 8, lambda c, n: c + 0, lambda n: 4), True),
    "while, + 8": (while_loop(8), False),
}


@pytest.mark.parametrize("name", LOOPS)
def test_what_a_loop_carries(name: str) -> None:
    """A number to which each iteration adds is no multiple to the compiler, whatever it is."""
    text, taken = LOOPS[name]
    told = findings(text)
    assert [message.endswith("a multiple of 8") for message in told] == ([] if taken else [True])


@pytest.mark.full
@pytest.mark.libtpu
@pytest.mark.skipif(not libtpu_available(), reason="there is no libtpu")
def test_the_compiler_agrees_on_loops() -> None:
    """It takes those, and only those, of which nothing is said."""
    assert {name: compiles(text) for name, (text, _) in LOOPS.items()} == {n: taken for n, (_, taken) in LOOPS.items()}


@pytest.mark.parametrize(("index", "told"), [("%n", 1), ("%eight", 0)])
def test_buffer_of_its_own(index: str, told: int) -> None:
    """A buffer that a step allocates is looked at as one that it is given."""
    smem, vmem = "#tpu.memory_space<smem>", "#tpu.memory_space<vmem>"
    config = r'backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}"'
    text = f"""module {{
      func.func @main(%t: tensor<8xi32>, %x: tensor<256x256xf32>) -> tensor<8x256xf32> {{
        %0 = stablehlo.custom_call @tpu_custom_call(%t, %x) {{mosaic.kernel = @k, {config}}}
          : (tensor<8xi32>, tensor<256x256xf32>) -> tensor<8x256xf32>
        return %0 : tensor<8x256xf32>
      }}
      module @k attributes {{stable_mosaic.version = 18 : i64}} {{
        func.func @k(%i: i32, %t: memref<8xi32, {smem}>, %x: memref<256x256xf32, {vmem}>,
                     %o: memref<8x256xf32, {vmem}>) attributes {{
            iteration_bounds = array<i64: 1>, dimension_semantics = [#tpu.dimension_semantics<arbitrary>],
            scalar_prefetch = 1 : i64, tpu.core_type = #tpu.core_type<tc>, window_params = [{{}}, {{}}]}} {{
          %z = arith.constant 0 : index
          %eight = arith.constant 8 : index
          %b = memref.alloca() : memref<256x256xf32, {vmem}>
          %a = vector.load %x[%z, %z] : memref<256x256xf32, {vmem}>, vector<256x256xf32>
          tpu.vector_store %b[%z, %z], %a {{strides = array<i32>}} : memref<256x256xf32, {vmem}>,
            vector<256x256xf32>,
          %m = memref.load %t[%z] : memref<8xi32, {smem}>
          %n = arith.index_cast %m : i32 to index
          %v = vector.load %b[{index}, %z] : memref<256x256xf32, {vmem}>, vector<8x256xf32>
          tpu.vector_store %o[%z, %z], %v {{strides = array<i32>}} : memref<8x256xf32, {vmem}>, vector<8x256xf32>,
          return
        }}
      }}
    }}"""
    session = Session()
    with create_context(), ir.Location.unknown():
        module = ir.Operation.parse(text)
        CheckGrid().run(module.operation, session)
    assert len([each for each in session.diagnostics if each.name == "unproven-alignment"]) == told
