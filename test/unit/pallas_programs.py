"""Small programs with Pallas kernels that JAX lowers for TPU, for the tests of unpacking and packing."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

ROWS, COLUMNS = 32, 256


def launch(name: str, factor: float = 2.0) -> Callable[[Any, Any], Any]:
    """A launch of the kernel `x * factor` on a grid (n, 2)."""
    import jax
    from jax.experimental import pallas as pl

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * factor

    def call(n: Any, x: Any) -> Any:
        spec = pl.BlockSpec((8, 128), lambda i, j: (i, j))
        out: Any = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return pl.pallas_call(kernel, out, grid=(n, 2), in_specs=[spec], out_specs=spec, name=name)(x)

    return call


def lower(f: Callable[[Any, Any], Any]) -> str:
    """`f(n, x)` for a scalar and a matrix, as StableHLO text with locations."""
    import jax
    import jax.numpy as jnp

    shape: Any = jax.ShapeDtypeStruct
    avals = (shape((), jnp.int32), shape((ROWS, COLUMNS), jnp.float32))
    text: str = jax.jit(f).trace(*avals).lower(lowering_platforms=("tpu",)).as_text(debug_info=True)
    return text


def one(n: Any, x: Any) -> Any:
    """One launch."""
    return launch("double")(n, x)


def identical(n: Any, x: Any) -> Any:
    """The same kernel three times, from one line."""
    for _ in range(3):
        x = launch("double")(n, x)
    return x


def same_name(n: Any, x: Any) -> Any:
    """Different kernels of one name."""
    for factor in (2.0, 3.0, 4.0):
        x = launch("scale", factor)(n, x)
    return x


def named_like_a_function(n: Any, x: Any) -> Any:
    """A kernel that has the name of the outer function."""
    return launch("main")(n, x)


def in_regions(n: Any, x: Any) -> Any:
    """Launches in a while loop, in the branches of a case, and in a private function that is called twice."""
    import jax

    x = jax.lax.fori_loop(0, n, lambda _, y: launch("looped")(n, y), x)
    x = jax.lax.cond(n > 2, lambda y: launch("left", 3.0)(n, y), lambda y: launch("right", 5.0)(n, y), x)
    inner = jax.jit(launch("inner", 7.0))
    return inner(n, inner(n, x))


def with_regions(n: Any, x: Any) -> Any:
    """A kernel whose body has a while loop and a conditional: ops with several regions, and arguments in each."""
    import jax
    from jax.experimental import pallas as pl

    def kernel(x_ref: Any, o_ref: Any) -> None:
        i = pl.program_id(0)
        rounds, value = jax.lax.while_loop(
            lambda carry: carry[0] < i, lambda carry: (carry[0] + 1, carry[1] * 2.0), (0, x_ref[...])
        )

        @pl.when(rounds > 1)
        def _() -> None:
            o_ref[...] = value

        @pl.when(rounds <= 1)
        def _() -> None:
            o_ref[...] = x_ref[...]

    spec = pl.BlockSpec((8, 128), lambda i, j: (i, j))
    out: Any = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(kernel, out, grid=(n, 2), in_specs=[spec], out_specs=spec, name="loops")(x)


def with_prefetch_and_alias(n: Any, x: Any) -> Any:
    """A scalar-prefetch operand in an index map, scratch, and an output in the place of an input."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def kernel(table_ref: Any, x_ref: Any, o_ref: Any, scratch_ref: Any) -> None:
        scratch_ref[...] = x_ref[...]
        o_ref[...] = scratch_ref[...] + table_ref[0].astype(jnp.float32)

    grid_spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(n, 2),
        in_specs=[pl.BlockSpec((8, 128), lambda i, j, table: (table[i], j))],
        out_specs=pl.BlockSpec((8, 128), lambda i, j, table: (table[i], j)),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
    )
    out: Any = jax.ShapeDtypeStruct(x.shape, x.dtype)
    call = pl.pallas_call(kernel, out, grid_spec=grid_spec, input_output_aliases={1: 0}, name="gather")
    return call(jnp.arange(ROWS // 8, dtype=jnp.int32), x)


PROGRAMS = (one, identical, same_name, named_like_a_function, in_regions, with_regions, with_prefetch_and_alias)


@functools.cache
def text_of(program: Callable[[Any, Any], Any]) -> str:
    """The lowered program, lowered once."""
    return lower(program)
