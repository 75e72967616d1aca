"""What kernels print on the CPU under the hook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hook_kernels import like
from hooked import hooked
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jaxlib.mlir import ir
from releases import needs_0_12

from mosaic_grid.context import create_context
from mosaic_grid.cpu.prints import filled, text_of

X = np.arange(8 * 128, dtype=np.float32).reshape(8, 128)
SMEM, VMEM = pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.VMEM)


@pytest.fixture(autouse=True)
def on_cpu() -> Iterator[None]:
    """Every test runs with the option."""
    with hooked(cpu="v5p"):
        yield


def test_lines_are_in_order_with_their_numbers(capfd: pytest.CaptureFixture[str]) -> None:
    """Integers stand in their places or behind the text, line after line, step after step."""

    def kernel(o_ref: Any) -> None:
        pl.debug_print("step {} of {}", pl.program_id(0), pl.num_programs(0))
        pl.debug_print("behind", pl.program_id(0))
        o_ref[...] = jnp.zeros_like(o_ref)

    call = pl.pallas_call(kernel, out_shape=like(X), grid=(2,), out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)))
    jax.jit(call)().block_until_ready()
    lines = [f"step {i} of 2\nbehind {i}\n" for i in (0, 1)]
    assert capfd.readouterr().out == "".join(lines)


@needs_0_12("puts signed integers only in the places of a text")
def test_numbers_of_all_kinds_have_a_place(capfd: pytest.CaptureFixture[str]) -> None:
    """Unsigned integers and floats stand in their places, too."""

    def kernel(n_ref: Any, x_ref: Any, o_ref: Any) -> None:
        pl.debug_print("large {}, half {}", n_ref[0], x_ref[0, 0])
        o_ref[...] = jnp.zeros_like(o_ref)

    call = pl.pallas_call(kernel, out_shape=like(X), in_specs=[SMEM, SMEM])
    jax.jit(call)(jnp.array([2**32 - 1], jnp.uint32), X + 0.5).block_until_ready()
    assert capfd.readouterr().out == "large 4294967295, half 0.5\n"


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.int8, jnp.bool_])
def test_vectors_are_printed_whole(dtype: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """A vector is printed as NumPy prints it, whatever its type."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        pl.debug_print("x = {}", x_ref[...])
        o_ref[...] = x_ref[...]

    x = jnp.asarray(X[:1] % 2).astype(dtype)
    jax.jit(pl.pallas_call(kernel, out_shape=like(x)))(x).block_until_ready()
    wanted = np.asarray(x).astype(np.float32) if dtype == jnp.bfloat16 else np.asarray(x)
    assert capfd.readouterr().out == f"x = {wanted}\n"


def test_prints_of_jax_go_on(capfd: pytest.CaptureFixture[str]) -> None:
    """Calls of Python around a kernel keep their numbers, under `jax.vmap` as well."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        pl.debug_print("in")
        o_ref[...] = x_ref[...]

    def function(x: Any) -> Any:
        y = pl.pallas_call(kernel, out_shape=like(x))(x)
        jax.debug.print("out {}", y[0, 1])
        return y

    jax.jit(jax.vmap(function))(np.stack([X, X + 1])).block_until_ready()
    jax.effects_barrier()
    assert sorted(capfd.readouterr().out.split("\n")) == ["", "in", "in", "out 1.0", "out 2.0"]


def test_exported_programs_are_silent(capfd: pytest.CaptureFixture[str]) -> None:
    """A call of Python can't be written to a file; the program can, and runs without it."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        pl.debug_print("in")
        o_ref[...] = x_ref[...]

    exported = jax.export.export(jax.jit(pl.pallas_call(kernel, out_shape=like(X))))(X)
    np.testing.assert_array_equal(jax.export.deserialize(exported.serialize()).call(X), X)
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("attributes", "wanted"),
    [
        ('tag = "$0 of $12", formatted = true', "$s0 of $s12"),
        ('tag = "$u0", formatted = true', "$u0"),
        ('tag = "costs $5", formatted = false', "costs $5"),
        ('tag = "costs $5"', "costs $5"),
    ],
)
def test_places_of_every_release(attributes: str, wanted: str) -> None:
    """A place without a kind, as an older JAX has it, is one of a signed integer, where the text has places at all."""
    with create_context():
        module = ir.Module.parse(f'"tpu.log"() {{{attributes}}} : () -> ()')
        assert text_of(module.body.operations[0].operation) == wanted


@pytest.mark.parametrize(
    ("text", "numbers", "wanted"),
    [
        ("n $s0, $f1", [3, 0.5], "n 3, 0.5"),
        ("$u0", [-1], "4294967295"),
        ("$s1 $s0", [1], "$s1 1"),
        ("n", [1, 2], "n 1 2"),
        ("costs $5", [], "costs $5"),
    ],
)
def test_places_are_filled(text: str, numbers: list[Any], wanted: str) -> None:
    """Each place gets the number that it names, as it says; without places the numbers come behind."""
    assert filled(text, numbers) == wanted
