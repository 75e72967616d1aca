"""Kernels that `jax.vmap` makes a loop of, lowered for TPU by JAX, and what `batch-grid` makes of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from cpu_programs import assert_same, compiled
from dynamic_programs import BLOCK, array, numbers, params
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractDevice, AbstractMesh, AxisType
from jaxlib.mlir import ir

from mosaic_grid.cpu.arrays import Array
from mosaic_grid.diagnostics import Diagnostic
from mosaic_grid.passes.batch_grid import BatchGrid
from mosaic_grid.program import Program
from mosaic_grid.session import Session
from mosaic_grid.unpack import unpack

ROWS = 5
"""Blocks of rows that an element's arrays have."""


def lower(function: Callable[..., Any], *arguments: Any) -> str:
    """StableHLO text for a TPU v5p."""
    device = AbstractDevice("TPU v5p", 2, "tpu")
    mesh = AbstractMesh((1,), ("d",), axis_types=(AxisType.Auto,), abstract_device=device)
    with jax.sharding.use_abstract_mesh(mesh):
        text: str = jax.jit(function).trace(*arguments).lower(lowering_platforms=("tpu",)).as_text()
    return text


@dataclasses.dataclass(frozen=True)
class Batched:
    """A program before and after the pass, unpacked, and what the pass said."""

    before: ir.Operation
    after: ir.Operation
    diagnostics: tuple[Diagnostic, ...]

    @property
    def said(self) -> str:
        """The messages."""
        return "; ".join(diagnostic.message for diagnostic in self.diagnostics)

    @property
    def loops(self) -> int:
        """How many of the launches after the pass stand in a loop."""
        return sum(_in_loop(launch.op) for launch in Program(self.after).launches)

    @property
    def launches(self) -> int:
        """How many launches there are after the pass."""
        return len(Program(self.after).launches)

    def check(self, inputs: Sequence[Sequence[Array]]) -> None:
        """Asserts that both compute the same bits, and wrote the same elements."""
        original, changed = compiled(self.before), compiled(self.after)
        for arguments in inputs:
            bounds = [argument.tolist() for argument in arguments if argument.dtype == np.int32]
            assert_same(changed(*arguments), original(*arguments), str(bounds))


def batched(text: str, contracts: Sequence[str] = ()) -> Batched:
    """A program before and after the pass. Nothing is run. The context must be current."""
    before = ir.Operation.parse(text).operation
    unpack(before)
    after = before.clone().operation
    session = Session(contracts=tuple(contracts))
    BatchGrid().run(after, session)
    after.verify()
    return Batched(before, after, tuple(session.diagnostics))


def _in_loop(op: ir.Operation) -> bool:
    while op.parent is not None:
        op = op.parent.operation
        if op.name == "stablehlo.while":
            return True
    return False


def scale(n: Any, x: Any) -> Any:
    """Doubles the first n blocks of rows, and adds how many programs there are and which one this is."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        shift = pl.num_programs(0) * 1000 + pl.program_id(0) * 10 + pl.program_id(1)
        o_ref[...] = x_ref[...] * 2.0 + shift.astype(jnp.float32)

    spec = pl.BlockSpec(BLOCK, lambda i, j: (i, j))
    launch = pl.pallas_call(
        kernel,
        array(*x.shape),
        grid=(n, 2),
        in_specs=[spec],
        out_specs=spec,
        compiler_params=params("parallel", "arbitrary"),
    )
    return launch(x)


def in_place(n: Any, x: Any) -> Any:
    """Doubles the first n blocks of rows where they are."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * 2.0

    spec = pl.BlockSpec(BLOCK, lambda i: (i, 0))
    launch = pl.pallas_call(
        kernel, array(*x.shape), grid=(n,), in_specs=[spec], out_specs=spec, input_output_aliases={0: 0}
    )
    return launch(x)


def summed(n: Any, m: Any, x: Any) -> Any:
    """Running sums over m blocks of columns, for n blocks of rows, in scratch; both are dynamic."""

    def kernel(x_ref: Any, o_ref: Any, sum_ref: Any) -> None:
        @pl.when(pl.program_id(1) == 0)
        def _() -> None:
            sum_ref[...] = jnp.zeros_like(sum_ref)

        sum_ref[...] += x_ref[...]
        o_ref[...] = sum_ref[...] + (pl.num_programs(1) * 100 + pl.program_id(0)).astype(jnp.float32)

    spec = pl.BlockSpec(BLOCK, lambda i, j: (i, j))
    launch = pl.pallas_call(
        kernel,
        array(*x.shape),
        grid=(n, m),
        in_specs=[spec],
        out_specs=spec,
        scratch_shapes=[pltpu.VMEM(BLOCK, jnp.float32)],
    )
    return launch(x)


def outer_static(n: Any, x: Any) -> Any:
    """A static dimension in front of the dynamic one: three columns, n blocks of rows of each."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] + (pl.num_programs(1) * 10 + pl.program_id(0)).astype(jnp.float32)

    spec = pl.BlockSpec(BLOCK, lambda j, i: (i, j))
    return pl.pallas_call(kernel, array(*x.shape), grid=(2, n), in_specs=[spec], out_specs=spec)(x)


def gather(table: Any, x: Any) -> Any:
    """Blocks of rows that a table names, plus its numbers; the grid is static."""

    def kernel(table_ref: Any, x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] + table_ref[1, pl.program_id(0)].astype(jnp.float32)

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(3,),
        in_specs=[pl.BlockSpec(BLOCK, lambda i, table: (table[0, i], 0))],
        out_specs=pl.BlockSpec(BLOCK, lambda i, table: (i, 0)),
    )
    return pl.pallas_call(kernel, array(*x.shape), grid_spec=spec)(table, x)


def ragged_gather(n: Any, table: Any, x: Any) -> Any:
    """The same over the first n entries of the table."""

    def kernel(table_ref: Any, x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] + table_ref[1, pl.program_id(0)].astype(jnp.float32)

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(n,),
        in_specs=[pl.BlockSpec(BLOCK, lambda i, table: (table[0, i], 0))],
        out_specs=pl.BlockSpec(BLOCK, lambda i, table: (i, 0)),
    )
    return pl.pallas_call(kernel, array(*x.shape), grid_spec=spec)(table, x)


def copied(n: Any, w: Any, h: Any, x: Any) -> Any:
    """A block that it copies from an array in HBM itself, one that is whole, and one-dimensional rows."""

    def kernel(w_ref: Any, h_ref: Any, x_ref: Any, o_ref: Any, v_ref: Any, row: Any, done: Any) -> None:
        pltpu.async_copy(h_ref.at[pl.ds(pl.program_id(0) * 8, 8)], row, done).wait()
        o_ref[...] = x_ref[...] + row[...] * w_ref[...][None]
        v_ref[...] = w_ref[...] + pl.program_id(0).astype(jnp.float32)

    spec = pl.BlockSpec(BLOCK, lambda i: (i, 0))
    launch = pl.pallas_call(
        kernel,
        [array(*x.shape), array(x.shape[0] // 8 * 128)],
        grid=(n,),
        in_specs=[pl.BlockSpec((128,), lambda i: (0,)), pl.BlockSpec(memory_space=pl.ANY), spec],
        out_specs=[spec, pl.BlockSpec((128,), lambda i: (i,))],
        scratch_shapes=[pltpu.VMEM(BLOCK, jnp.float32), pltpu.SemaphoreType.DMA],
    )
    return launch(w, h, x)


def repeated(n: Any, x: Any) -> Any:
    """Adds 1 to a block n times, in scratch."""

    def kernel(x_ref: Any, o_ref: Any, sum_ref: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            sum_ref[...] = x_ref[...]

        sum_ref[...] += 1.0
        o_ref[...] = sum_ref[...]

    spec = pl.BlockSpec(BLOCK, lambda i: (0, 0))
    scratch = [pltpu.VMEM(BLOCK, jnp.float32)]
    launch = pl.pallas_call(kernel, array(*x.shape), grid=(n,), in_specs=[spec], out_specs=spec, scratch_shapes=scratch)
    return launch(x)


def lengths(*values: int) -> Array:
    """Bounds, one for each element of a batch."""
    return np.array(values, np.int32)


BOUNDS = (
    lengths(3, 0, 5, 1),
    lengths(0, 0, 0, 0),
    lengths(0, 0, 0, 5),
    lengths(5, 5, 5, 5),
    lengths(1, 0, 0, 2),
    lengths(-1, 2, -(2**31), 4),
)
"""Of a batch of four: odd ones, none at all, none in front, as many as there are, none between, and below zero."""

TABLES = np.random.default_rng(1).integers(0, ROWS, (4, 2, ROWS)).astype(np.int32)
ROW_ARRAYS = numbers(4, 8 * ROWS, 256)
NARROW = ROW_ARRAYS[:, :, :128]
