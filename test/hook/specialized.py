"""A pipeline as the flag's value: static variants of a kernel, with values for it by its name, on both platforms."""

# RUN: env "JAX_MOSAIC_GRID=specialize-grid{values=copy_rows:0=2,4}" %python %s tpu > %t.mlir
# RUN: %mosaic-opt %t.mlir --unpacked | FileCheck %s --check-prefix=TPU
# RUN: env "JAX_MOSAIC_GRID=specialize-grid{values=copy_rows:0=2,4}" JAX_MOSAIC_GRID_CPU=v5p %python %s cpu \
# RUN:   | FileCheck %s --check-prefix=CPU
# RUN: env "JAX_MOSAIC_GRID=partition-cores,specialize-grid{values=n=5,6 bucket=round-up}" JAX_MOSAIC_GRID_CPU=v5p \
# RUN:   %python %s cpu | FileCheck %s --check-prefix=CPU

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import mosaic_grid_startup  # noqa: F401  # what a start of Python imports where the package is installed


def copy_rows(x_ref: Any, o_ref: Any) -> None:
    """A block plus 1."""
    o_ref[...] = x_ref[...] + 1.0


# TPU:       func.func public @main
# TPU:         stablehlo.case
# TPU:           stablehlo.custom_call @tpu_custom_call(%{{[^,)]+}}) {{.*}}mosaic.kernel = @copy_rows
# TPU:           stablehlo.custom_call @tpu_custom_call(%{{[^,)]+}}) {{.*}}mosaic.kernel = @copy_rows
# TPU:           stablehlo.custom_call @tpu_custom_call(%{{[^,)]+}}, %{{[^,)]+}}) {{.*}}mosaic.kernel = @copy_rows
# TPU-DAG:   iteration_bounds = array<i64: -{{[0-9]+}}>
# TPU-DAG:   iteration_bounds = array<i64: 2>
# TPU-DAG:   iteration_bounds = array<i64: 4>
@jax.jit
def add_one(n: jax.Array, x: jax.Array) -> jax.Array:
    """The first `n` blocks of `x` plus 1; the others as they are."""
    return pl.pallas_call(
        copy_rows,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(n,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        input_output_aliases={0: 0},
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )(x)


def main() -> None:
    """Prints the program for the TPU, or runs it for bounds with and without a variant."""
    x = jnp.arange(64 * 128, dtype=jnp.float32).reshape(64, 128)
    if sys.argv[1] == "tpu":
        n = jax.ShapeDtypeStruct((), jnp.int32)
        print(add_one.trace(n, x).lower(lowering_platforms=("tpu",)).as_text())
        return
    # CPU: 0 1 2 3 4 5 6 8 are right
    right = [n for n in (0, 1, 2, 3, 4, 5, 6, 8) if np.array_equal(add_one(n, x), x.at[: 8 * n].add(1.0))]
    print(*right, "are right")


main()
