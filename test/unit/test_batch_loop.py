"""Which loops `batch-grid` takes for one over a batch; of others it says why not, and leaves the program as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import batch_programs as programs
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from batch_programs import BOUNDS, NARROW, TABLES, batched, lower
from dynamic_programs import BLOCK, array
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jaxlib.mlir import ir

from mosaic_grid.context import create_context

CONTEXT = create_context()
SIZE = 4


def loop(
    step: Callable[[Any, Any], Any] = programs.in_place,
    *,
    count: Any = SIZE,
    at: Callable[[Any], Any] = lambda k: k,
    to: Callable[[Any], Any] = lambda k: k,
) -> Callable[[Any, Any], Any]:
    """A loop written by hand that takes element `at(k)` in iteration k and puts the result at `to(k)`."""

    def run(n: Any, x: Any) -> Any:
        def body(k: Any, out: Any) -> Any:
            one = step(lax.dynamic_index_in_dim(n, at(k), keepdims=False), lax.dynamic_index_in_dim(x, at(k), 0, False))
            return lax.dynamic_update_index_in_dim(out, one, to(k), 0)

        return lax.fori_loop(0, count(n) if callable(count) else count, body, jnp.zeros_like(x))

    return run


def test_loop_by_hand() -> None:
    """A loop that does what `jax.vmap` would have made is as good as its."""
    with CONTEXT, ir.Location.unknown():
        program = batched(lower(loop(), BOUNDS[0], NARROW))
        assert program.said == ""
        program.check([(BOUNDS[0], NARROW), (BOUNDS[1], NARROW)])


def test_bound_for_all() -> None:
    """Tables that differ over a dynamic bound that doesn't: the batch is a dimension in front of the dynamic one."""

    def run(n: Any, tables: Any, x: Any) -> Any:
        def body(k: Any, out: Any) -> Any:
            table = lax.dynamic_index_in_dim(tables, k, keepdims=False)
            one = programs.ragged_gather(n, table, lax.dynamic_index_in_dim(x, k, keepdims=False))
            return lax.dynamic_update_index_in_dim(out, one, k, 0)

        return lax.fori_loop(0, SIZE, body, jnp.zeros_like(x))

    bounds = [np.array(n, np.int32) for n in (3, 0, 5, -1)]
    with CONTEXT, ir.Location.unknown():
        program = batched(lower(run, bounds[0], TABLES, NARROW))
        assert (program.said, program.launches, program.loops) == ("", 2, 1)
        program.check([(n, TABLES, NARROW) for n in bounds])


def carried(n: Any, x: Any) -> Any:
    """Each iteration works on what the one before it has computed."""
    return lax.fori_loop(0, SIZE, lambda k, one: programs.in_place(n[k], one), x[0])


def previous(n: Any, x: Any) -> Any:
    """Each iteration reads the element of the output that the one before it has written."""

    def body(k: Any, out: Any) -> Any:
        one = programs.in_place(n[k], lax.dynamic_index_in_dim(out, k - 1, 0, False))
        return lax.dynamic_update_index_in_dim(out, one, k, 0)

    return lax.fori_loop(0, SIZE, body, x)


def twice(n: Any, x: Any) -> Any:
    """Two launches, one after the other, for each element."""
    return loop(lambda n, x: programs.in_place(n, programs.in_place(n, x)))(n, x)


def same(n: Any, x: Any) -> Any:
    """The same launch, over and over."""

    def body(k: Any, out: Any) -> Any:
        return lax.dynamic_update_index_in_dim(out, programs.in_place(n[0], x[0]), k, 0)

    return lax.fori_loop(0, SIZE, body, jnp.zeros_like(x))


def conditional(n: Any, x: Any) -> Any:
    """Some elements have no launch."""
    return loop(lambda n, x: lax.cond(n > 2, lambda: programs.in_place(n, x), lambda: x))(n, x)


def computed(n: Any, x: Any) -> Any:
    """The operands are computed anew in each iteration."""
    return loop(lambda n, x: programs.in_place(n, x * 2.0))(n, x)


def added(n: Any, x: Any) -> Any:
    """The loop adds its results up."""

    def body(k: Any, total: Any) -> Any:
        return total + programs.in_place(n[k], x[k])

    return lax.fori_loop(0, SIZE, body, jnp.zeros_like(x[0]))


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (carried, "isn't a collection of results of the launch, so an iteration may need what another has computed"),
        (previous, "operand 1 of the launch is neither the same in each iteration nor its slice"),
        (twice, "the loop has another custom call than the launch"),
        (same, "each iteration of the loop launches the kernel with the same operands"),
        (conditional, "in the loop the launch depends on a condition"),
        (computed, "operand 1 of the launch is neither the same in each iteration nor its slice"),
        (added, "isn't a collection of results of the launch"),
        (
            loop(at=lambda k: SIZE - 1 - k),
            "operand 0 of the launch is neither the same in each iteration nor its slice",
        ),
        (loop(to=lambda k: SIZE - 1 - k), "isn't a collection of results of the launch"),
        (loop(to=lambda k: k // 2), "isn't a collection of results of the launch"),
        (loop(count=SIZE - 1), "isn't a collection of results of the launch"),
        (loop(count=lambda n: n[0]), "how often the loop runs isn't a constant"),
    ],
    ids=[
        *("carried", "previous", "twice", "same", "conditional", "computed", "added"),
        *("backwards", "to the back", "halves", "part", "dynamic"),
    ],
)
def test_other_loops(function: Callable[..., Any], reason: str) -> None:
    """A loop that does something else is left, and the remark says what."""
    with CONTEXT, ir.Location.unknown():
        program = batched(lower(function, BOUNDS[0], NARROW))
        assert reason in program.said
        assert {diagnostic.name for diagnostic in program.diagnostics} == {"not-batched"}
        assert str(program.after) == str(program.before)


def summing(kernel: Callable[..., None], n: Any, x: Any) -> Any:
    """A launch of a kernel that has a block of scratch to sum up in."""
    spec = pl.BlockSpec(BLOCK, lambda i: (i, 0))
    scratch = [pltpu.VMEM(BLOCK, jnp.float32)]
    launch = pl.pallas_call(kernel, array(*x.shape), grid=(n,), in_specs=[spec], out_specs=spec, scratch_shapes=scratch)
    return launch(x)


def kept_sum(n: Any, x: Any) -> Any:
    """A sum that starts with what the last launch has left in scratch."""

    def kernel(x_ref: Any, o_ref: Any, sum_ref: Any) -> None:
        sum_ref[...] += x_ref[...]
        o_ref[...] = sum_ref[...]

    return summing(kernel, n, x)


def late_sum(n: Any, x: Any) -> Any:
    """A sum that is only cleared in the second step."""

    def kernel(x_ref: Any, o_ref: Any, sum_ref: Any) -> None:
        @pl.when(pl.program_id(0) == 1)
        def _() -> None:
            sum_ref[...] = jnp.zeros_like(sum_ref)

        sum_ref[...] += x_ref[...]
        o_ref[...] = sum_ref[...]

    return summing(kernel, n, x)


def scribbled(n: Any, x: Any) -> Any:
    """A table that is copied as a whole, and not only read element by element."""

    def kernel(table_ref: Any, x_ref: Any, o_ref: Any, copy_ref: Any, done: Any) -> None:
        pltpu.async_copy(table_ref, copy_ref, done).wait()
        o_ref[...] = x_ref[...] + copy_ref[0].astype(jnp.float32)

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(2,),
        in_specs=[pl.BlockSpec(BLOCK, lambda i, table: (i, 0))],
        out_specs=pl.BlockSpec(BLOCK, lambda i, table: (i, 0)),
        scratch_shapes=[pltpu.SMEM((1,), jnp.int32), pltpu.SemaphoreType.DMA],
    )
    return pl.pallas_call(kernel, array(*x.shape), grid_spec=spec)(n[None], x)


@pytest.mark.parametrize(
    ("function", "reason"),
    [(kept_sum, "scratch operand 0"), (late_sum, "scratch operand 0"), (scribbled, "prefetch operand 0 is used by")],
)
def test_kernels_that_stay_apart(function: Callable[..., Any], reason: str) -> None:
    """A kernel that would find what another element has left, or whose table can't be batched, keeps its loop."""
    with CONTEXT, ir.Location.unknown():
        program = batched(lower(jax.vmap(function), BOUNDS[0], NARROW))
        assert reason in program.said
        assert str(program.after) == str(program.before)


def test_large_tables() -> None:
    """Tables that don't fit into SMEM together keep the loop."""
    tables = np.zeros((SIZE, 2, 2**15), np.int32)
    with CONTEXT, ir.Location.unknown():
        program = batched(lower(jax.vmap(programs.gather), tables, NARROW))
        assert "take 1048576 bytes of SMEM" in program.said
        assert str(program.after) == str(program.before)


def test_small_rows() -> None:
    """Rows that the compiler has no layout for in a batch keep the loop."""

    def kernel(s_ref: Any, x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * s_ref[0]

    def scaled(n: Any, s: Any, x: Any) -> Any:
        spec = pl.BlockSpec(BLOCK, lambda i: (i, 0))
        factors = pl.BlockSpec(memory_space=pltpu.SMEM)
        return pl.pallas_call(kernel, array(*x.shape), grid=(n,), in_specs=[factors, spec], out_specs=spec)(s, x)

    with CONTEXT, ir.Location.unknown():
        program = batched(lower(jax.vmap(scaled), BOUNDS[0], np.ones((SIZE, 3), np.float32), NARROW))
        assert "window 0 is a block of an array of one dimension" in program.said
        assert str(program.after) == str(program.before)


def test_without_a_loop() -> None:
    """A kernel that is launched once is left alone, and the remark says so."""
    with CONTEXT, ir.Location.unknown():
        program = batched(lower(programs.gather, TABLES[0], NARROW[0]))
        assert "batch-grid changed nothing: it is in no loop" in program.said
        assert str(program.after) == str(program.before)
