"""`jax.vmap` of a pipeline whose number of steps differs between the elements, which JAX refuses."""

# An older JAX has no rule for any pipeline under vmap.
# UNSUPPORTED: jax-0.10
# RUN: env JAX_MOSAIC_GRID=on %python %s tpu > %t.mlir
# RUN: %mosaic-opt %t.mlir --split-input-file --unpacked | FileCheck %s --check-prefix=TPU
# RUN: env JAX_MOSAIC_GRID=on JAX_MOSAIC_GRID_CPU=v5p %python %s cpu | FileCheck %s --check-prefix=CPU

import jax
import jax.numpy as jnp
import numpy as np
from Inputs.situations import Situation, main
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def plus_one(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 1


# One pipeline over the steps of all elements of the batch: one loop.
# TPU-LABEL: module @jit_batched_pipeline
# TPU:         scf.for
# TPU-NOT:     scf.for
# CPU:       batched_pipeline is right
def batched_pipeline(x):
    def kernel(x_ref, o_ref):
        def run(n, x_row, o_row):
            block = pl.BlockSpec((8, 128), lambda i: (0, i))
            pltpu.emit_pipeline(plus_one, grid=(n,), in_specs=[block], out_specs=[block])(x_row, o_row)

        jax.vmap(run)(jnp.arange(4, dtype=jnp.int32), x_ref, o_ref)

    mesh = pltpu.TensorCoreMesh(axis_name="core", num_cores=1)
    return pl.kernel(kernel, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype), mesh=mesh)(x)


BATCH = np.arange(4 * 8 * 512, dtype=np.float32).reshape(4, 8, 512)
RAGGED = np.where(np.arange(512) < 128 * np.arange(4)[:, None, None], BATCH + 1, np.nan)

main([Situation(batched_pipeline, (BATCH,), RAGGED, primitive=True)])
