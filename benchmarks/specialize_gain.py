"""What a static grid gains: the bundles of a grid step and the cores in use, of kernels whose grid is dynamic, of their
variant for one bound by `specialize-grid`, and after `partition-cores`; on v5p unless another target is given.

Bundles are VLIW instructions in libtpu's own schedule: those of the loop over the grid's steps, as `llo_step` counts
them, and in brackets those of the whole kernel. Each launch is compiled by itself, in a branch that is chosen at run
time. A ratio compares bundles divided by the cores that run them with those of the dynamic kernel: below one is faster.
The kernels are JAX's own to the last op. Where their grid is static as they are shipped one dimension of it has been
made dynamic; which is in the row.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
os.environ.setdefault("JAX_PLATFORMS", "cpu")  # no TPU is asked for

import jax
import jax.numpy as jnp

import real_kernels
import shipped_kernels
from mosaic_grid.containers.text import parse
from mosaic_grid.context import create_context, unknown_location
from mosaic_grid.passbase import Pass
from mosaic_grid.passes.partition_cores import PartitionCores
from mosaic_grid.passes.specialize_grid import SpecializeGrid
from mosaic_grid.program import Program
from mosaic_grid.session import Session
from mosaic_grid.targets import Target, parse_target
from mosaic_grid.unpack import unpack
from mosaic_grid.variants.measure import Measured, cost_ratio, measure


@dataclasses.dataclass(frozen=True)
class Case:
    """A kernel, the bound that a variant is made for, and what lowers it: StableHLO text.

    `shared` is whether there is something to share with this bound: where not, the original runs.
    """

    name: str
    values: str
    lower: Callable[[], str]
    shared: bool = True


def splash() -> str:
    """Splash attention, causal, of 512 queries on 512 keys, over a dynamic number of heads."""
    module = importlib.import_module("jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_kernel")
    attend = shipped_kernels.splash_attention(shipped_kernels.CAUSAL)

    def run(heads: jax.Array, q: jax.Array, k: jax.Array, v: jax.Array) -> Any:
        with real_kernels.changed_grid(module, lambda grid: (heads, *grid[1:])):
            return attend(q, k, v)

    return real_kernels.lower_for_tpu(run, jax.ShapeDtypeStruct((), jnp.int32), *shipped_kernels.SPLASH)


def ragged() -> str:
    """Ragged paged attention of 8 heads, over a dynamic number of blocks of queries."""
    module = importlib.import_module("jax.experimental.pallas.ops.tpu.ragged_paged_attention.kernel")
    attend = shipped_kernels.ragged()

    def run(blocks: jax.Array, *arrays: jax.Array) -> Any:
        with real_kernels.changed_grid(module, lambda grid: (*grid[:-1], blocks)):
            return attend(*arrays)

    scalar = jax.ShapeDtypeStruct((), jnp.int32)
    return shipped_kernels.lower_for("TPU v5", 2, run, scalar, *shipped_kernels.RAGGED).decode()


def pipeline() -> str:
    """A copy by `emit_pipeline`: steps of 8 by 128, as many as the kernel is told, which is its bound too."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    whole = pl.BlockSpec(memory_space=pl.ANY)

    def copy(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...]

    def kernel(count_ref: Any, x_ref: Any, o_ref: Any) -> None:
        pltpu.emit_pipeline(copy, grid=(count_ref[0],), in_specs=[block], out_specs=[block])(x_ref, o_ref)

    def run(n: Any, x: Any) -> Any:
        spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(n,), in_specs=[whole], out_specs=whole)
        return pl.pallas_call(kernel, shipped_kernels.array(x.shape), grid_spec=spec)(n[None], x)

    scalar = jax.ShapeDtypeStruct((), jnp.int32)
    return shipped_kernels.lower_for("TPU v5", 2, run, scalar, shipped_kernels.array((64, 128))).decode()


CASES = (
    Case("copy, 8x128 blocks: rows", "0=128", real_kernels.dynamic_copy),
    Case("copy: one row", "0=1", real_kernels.dynamic_copy, shared=False),
    Case("megablox gmm: tiles of rows (as shipped)", "1=8", lambda: shipped_kernels.KERNELS["gmm"]().decode()),
    Case("megablox tgmm: tiles of rows (as shipped)", "2=8", lambda: shipped_kernels.KERNELS["tgmm"]().decode()),
    Case("megablox gmm: columns", "0=4", real_kernels.dynamic_gmm),
    Case("megablox gmm: columns and rows", "0=4,1=16", real_kernels.dynamic_gmm),
    Case("flash attention: heads", "1=8", real_kernels.dynamic_flash_attention),
    Case("splash attention: heads", "0=2", splash),
    Case("ragged paged attention: blocks of queries", "1=2", ragged),
    Case("emit_pipeline in a kernel: steps", "0=4", pipeline),
    Case("emit_pipeline in a kernel: one step", "0=1", pipeline, shared=False),
)


def launches(text: str, rewrite: Pass, target: Target) -> list[Measured]:
    """What libtpu makes of each launch of the program after a pass, by itself."""
    with create_context() as context, unknown_location():
        program = parse(text, "program.mlir", context)
        unpack(program)
        rewrite.run(program, Session(target))
        measured = [one for launch in Program(program).launches for one in measure(launch, [None], target)]
    return [one for one in measured if one.cost is not None]


def main() -> None:
    """Prints a row per kernel."""
    target = parse_target(sys.argv[1] if len(sys.argv) > 1 else "v5p")
    columns = f"{'dynamic':>18}{'static':>18}{'shared':>18}{'static':>9}{'shared':>9}"
    print(f"{f'bundles of a step (in all) x cores on {target}':46}{columns}")
    for case in CASES:
        text = case.lower()
        static, *_, dynamic = launches(text, SpecializeGrid(values=tuple(case.values.split(","))), target)
        choices = launches(text, PartitionCores(), target) if case.shared else [dynamic]
        shared = min(choices, key=lambda each: cost_ratio(each, dynamic) or 1)
        cells = [f"{each.step} ({each.bundles}) x {each.cores}" for each in (dynamic, static, shared)]
        ratios = [cost_ratio(each, dynamic) or 1 for each in (static, shared)]
        print(f"{case.name:46}{''.join(f'{cell:>18}' for cell in cells)}{ratios[0]:>9.3f}{ratios[1]:>9.3f}", flush=True)


if __name__ == "__main__":
    main()
