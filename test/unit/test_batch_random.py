"""`batch-grid` on random kernels: any grid, any batch of bounds and tables, one launch computes what the loop did."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from batch_programs import batched, lower
from dynamic_programs import BLOCK, array, numbers, params
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jaxlib.mlir import ir

from mosaic_grid.batching import vectors
from mosaic_grid.context import create_context
from mosaic_grid.cpu.execute import compile_program

CONTEXT = create_context()
MOST = 3
"""Steps of a dimension."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A kernel over a grid, outermost dimension first, and a batch of it.

    `bounds` are numbers of steps, a tuple of them where the elements differ; `static` says which are no operands.
    `table` is batched, the same for all, or not there. `rows` are the axes that choose the output's block of rows; a
    sum runs over the dimensions behind the last of them, and starts afresh in the first step of these.
    """

    size: int
    bounds: tuple[int | tuple[int, ...], ...]
    static: tuple[bool, ...]
    parallel: tuple[bool, ...]
    table: str
    batched_input: bool
    in_place: bool

    @property
    def rank(self) -> int:
        """How many dimensions the grid has."""
        return len(self.bounds)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A batch that JAX makes a loop of."""
    size, rank = draw(st.integers(2, 5)), draw(st.integers(1, 3))
    bounds: list[int | tuple[int, ...]] = []
    for _ in range(rank):
        differ = draw(st.booleans())
        steps = st.integers(0, MOST)
        bounds.append(draw(st.tuples(*[steps] * size)) if differ else draw(steps))
    static = tuple(isinstance(bound, int) and draw(st.booleans()) for bound in bounds)
    table = draw(st.sampled_from(["none", "same", "batched"]))
    if all(isinstance(bound, int) for bound in bounds):
        # JAX 0.12 loses dynamic bounds that are the same for all elements where only tables differ
        table, static = "batched", (True,) * rank
    parallel = tuple(draw(st.booleans()) for _ in range(rank))
    return Case(size, tuple(bounds), static, parallel, table, draw(st.booleans()), draw(st.booleans()))


def program(case: Case) -> tuple[Any, tuple[Any, ...]]:
    """The vmapped function, and its arguments; outputs have a row of blocks for each index of the first dimension."""
    dynamic = [axis for axis in range(case.rank) if not case.static[axis]]
    given = [np.array(case.bounds[axis], np.int32) for axis in dynamic]
    rng = np.random.default_rng(case.size)
    shape = (case.size, MOST) if case.table == "batched" else (MOST,)
    tables = [] if case.table == "none" else [rng.integers(0, MOST, shape).astype(np.int32)]
    x = numbers(case.size, 8 * MOST, 128) if case.batched_input else numbers(8 * MOST, 128)

    def function(*operands: Any) -> Any:
        bounds = dict(zip(dynamic, operands, strict=False))
        grid = tuple(bounds.get(axis, bound) for axis, bound in enumerate(case.bounds))
        *table, x = operands[len(dynamic) :]

        def kernel(*refs: Any) -> None:
            *table_ref, x_ref, o_ref, sum_ref = refs
            indices = [pl.program_id(axis) for axis in range(case.rank)]
            first = functools.reduce(jnp.logical_and, [index == 0 for index in indices[1:]], jnp.bool_(True))

            @pl.when(first)
            def _() -> None:
                sum_ref[...] = jnp.zeros_like(sum_ref)

            code = sum(index * 10**axis + pl.num_programs(axis) * 7 for axis, index in enumerate(indices))
            extra = table_ref[0][indices[0]] if table_ref else 0
            sum_ref[...] = sum_ref[...] * 3.0 + x_ref[...] + (code + extra).astype(jnp.float32)
            o_ref[...] = sum_ref[...]

        def source(*arguments: Any) -> tuple[Any, int]:
            indices, tables = arguments[: case.rank], arguments[case.rank :]
            return (tables[0][indices[0]] if tables and not case.in_place else indices[0]), 0

        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=len(table),
            grid=grid,
            in_specs=[pl.BlockSpec(BLOCK, source)],
            out_specs=pl.BlockSpec(BLOCK, lambda *arguments: (arguments[0], 0)),
            scratch_shapes=[pltpu.VMEM(BLOCK, jnp.float32)],
        )
        words = ["parallel" if parallel and not axis else "arbitrary" for axis, parallel in enumerate(case.parallel)]
        aliases = {len(table): 0} if case.in_place else {}
        launch = pl.pallas_call(
            kernel, array(*x.shape), grid_spec=spec, input_output_aliases=aliases, compiler_params=params(*words)
        )
        return launch(*table, x)

    axes = [0 if each.ndim else None for each in given]
    axes += [0 if case.table == "batched" else None for _ in tables]
    return jax.vmap(function, in_axes=(*axes, 0 if case.batched_input else None)), (*given, *tables, x)


@settings(max_examples=25, deadline=None)
@given(cases())
def test_any_batch(case: Case) -> None:
    """The launch gives the bits of the loop."""
    function, arguments = program(case)
    with CONTEXT, ir.Location.unknown():
        found = batched(lower(function, *arguments))
        assert found.said == ""
        found.check([arguments])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=9), st.integers(1, 40))
def test_tables(steps: list[int], count: int) -> None:
    """Running sums, and whose step each is, computed by the outer program, are what NumPy computes."""
    with CONTEXT, ir.Location.unknown():
        module = ir.Module.parse(
            f"func.func public @main(%a: tensor<{len(steps)}xi32>) -> (tensor<{len(steps)}xi32>, tensor<{count}xi32>, "
            f'tensor<i32>) {{ %0:3 = "test.marker"() : () -> (tensor<{len(steps)}xi32>, tensor<{count}xi32>, '
            "tensor<i32>) return %0#0, %0#1, %0#2 : "
            f"tensor<{len(steps)}xi32>, tensor<{count}xi32>, tensor<i32> }}"
        )
        function = module.body.operations[0]
        marker, end = list(function.regions[0].blocks[0].operations)
        with ir.InsertionPoint(marker):
            from jaxlib.mlir.dialects import stablehlo

            ends = vectors.running_sums(function.regions[0].blocks[0].arguments[0])
            starts = stablehlo.subtract(ends, function.regions[0].blocks[0].arguments[0])
            values = [ends, vectors.last_not_above(starts, count), vectors.last(ends)]
        for number, value in enumerate(values):
            end.operands[number] = value
        marker.operation.erase()
        sums, places, total = compile_program(module.operation)(np.array(steps, np.int32))
    expected = np.cumsum(steps)
    assert (sums.tolist(), int(total)) == (expected.tolist(), int(expected[-1]))
    first = expected - steps
    assert places.tolist() == [int(np.flatnonzero(first <= step)[-1]) for step in range(count)]
