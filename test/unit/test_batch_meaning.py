"""`batch-grid` keeps what a loop over a batch computes, with one launch where there was one for each element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import batch_programs as programs
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from batch_programs import BOUNDS, NARROW, ROW_ARRAYS, TABLES, batched, lengths, lower
from dynamic_programs import numbers
from jaxlib.mlir import ir
from launched import Launches

from mosaic_grid.context import create_context
from mosaic_grid.cpu.arrays import Array
from mosaic_grid.passes.batch_grid import BatchGrid
from mosaic_grid.passes.partition_cores import PartitionCores
from mosaic_grid.program import Program
from mosaic_grid.session import Session

CONTEXT = create_context()
SHORT = "0 <= %arg0[*] <= 5"


def with_bounds(*others: Array) -> list[tuple[Array, ...]]:
    """Inputs with each of the bounds in front."""
    return [(bounds, *others) for bounds in BOUNDS]


def to_front(function: Callable[..., Any], **axes: Any) -> Callable[..., Any]:
    """The function of `n` and the rest, vmapped; the name of the bounds is what contracts speak of."""
    mapped = jax.vmap(function, **axes)
    return lambda n, *rest: mapped(n, *rest)


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (to_front(programs.scale), with_bounds(ROW_ARRAYS)),
        (to_front(programs.scale, in_axes=(0, None)), with_bounds(ROW_ARRAYS[0])),
        (to_front(programs.scale, in_axes=(0, 1)), with_bounds(np.moveaxis(ROW_ARRAYS, 0, 1).copy())),
        (to_front(programs.scale, out_axes=2), with_bounds(ROW_ARRAYS)),
        (to_front(programs.in_place), with_bounds(NARROW)),
        (to_front(programs.in_place, in_axes=(0, None)), with_bounds(NARROW[0])),
        (to_front(programs.outer_static), with_bounds(ROW_ARRAYS)),
        (to_front(programs.ragged_gather), with_bounds(TABLES, NARROW)),
        (to_front(programs.ragged_gather, in_axes=(0, None, 0)), with_bounds(TABLES[0], NARROW)),
        (to_front(programs.copied), with_bounds(numbers(4, 128), NARROW, NARROW)),
        (to_front(programs.copied, in_axes=(0, None, None, 0)), with_bounds(numbers(128), NARROW[0], NARROW)),
    ],
    ids=[
        *("plain", "unbatched input", "in_axes", "out_axes", "in place", "in place, unbatched", "outer dimension"),
        *("table", "unbatched table", "copies", "unbatched copies"),
    ],
)
@pytest.mark.parametrize("contracts", [(), (SHORT,)], ids=["unknown", "short"])
def test_ragged(function: Callable[..., Any], inputs: Sequence[Sequence[Array]], contracts: Sequence[str]) -> None:
    """A batch of bounds gives the bits of the loop; the loop is gone where contracts show that steps can be counted."""
    with CONTEXT, ir.Location.unknown():
        program = batched(lower(function, *inputs[0]), contracts)
        assert (program.said, program.launches, program.loops) == (("", 1, 0) if contracts else ("", 2, 1))
        program.check(inputs if not contracts else [each for each in inputs if min(each[0]) >= 0])


def test_two_bounds() -> None:
    """Both bounds of a kernel differ between elements, one of them is the same, or the inner one only differs."""
    pairs = [(bounds, 2 - (np.roll(bounds, 1) % 3).astype(np.int32)) for bounds in BOUNDS]
    with CONTEXT, ir.Location.unknown():
        both = batched(lower(jax.vmap(programs.summed), *pairs[0], ROW_ARRAYS))
        both.check([(*pair, ROW_ARRAYS) for pair in pairs])
        for axes, one in (((0, None, 0), 0), ((None, 0, 0), 1)):
            inputs = [(*((pair[0], pair[1][0]) if one == 0 else (pair[0][0], pair[1])), ROW_ARRAYS) for pair in pairs]
            program = batched(lower(jax.vmap(programs.summed, in_axes=axes), *inputs[0]))
            assert (program.said, program.loops) == ("", 1)
            program.check(inputs)
        assert (both.said, both.loops) == ("", 1)


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (0, 1)], ids=str)
def test_static_grid(axes: tuple[Any, ...]) -> None:
    """Tables that differ make the batch a dimension of the grid, without a loop or a table of steps."""
    x = {0: NARROW, None: NARROW[0], 1: np.moveaxis(NARROW, 0, 1).copy()}[axes[1]]
    with CONTEXT, ir.Location.unknown():
        program = batched(lower(jax.vmap(programs.gather, in_axes=axes), TABLES, x))
        assert (program.said, program.launches, program.loops) == ("", 1, 0)
        program.check([(TABLES, x)])
        launched = Launches(program.after)(TABLES, x)
        assert launched.bounds == (4, 3)
        assert [table.tolist() for table in launched.tables] == [TABLES.reshape(-1).tolist()]


@pytest.mark.parametrize("bounds", BOUNDS[:5], ids=str)
def test_steps(bounds: Array) -> None:
    """There are as many steps as all elements have together, and the table tells whose each is."""
    with CONTEXT, ir.Location.unknown():
        program = batched(lower(to_front(programs.scale), bounds, ROW_ARRAYS), [SHORT])
        launched = Launches(program.after)(bounds, ROW_ARRAYS)
    steps = int(bounds.sum())
    assert launched.bounds == (steps, 2)
    (table,) = launched.tables
    assert table[:steps].tolist() == np.repeat(np.arange(4), bounds).tolist()
    assert table[20:24].tolist() == (np.cumsum(bounds) - bounds).tolist()
    assert table[24:].tolist() == bounds.tolist()


def test_many_steps() -> None:
    """More steps than the table has entries run in the loop, as many as it has in one launch."""
    x = numbers(2, 8, 128)
    with CONTEXT, ir.Location.unknown():
        program = batched(lower(jax.vmap(programs.repeated), lengths(1, 1), x))
        assert (program.launches, program.loops) == (2, 1)
        # 64 steps an element
        assert "1.290000e+02" in str(program.after)
        program.check([(lengths(127, 1), x), (lengths(128, 1), x), (lengths(0, 300), x)])


def test_large_batch() -> None:
    """A batch too large for a table of steps finds its elements by bisection."""
    size = 300
    bounds = np.random.default_rng(2).integers(0, 3, size).astype(np.int32)
    x = numbers(size, 16, 128)
    with CONTEXT, ir.Location.unknown():
        program = batched(lower(jax.vmap(programs.in_place), bounds, x))
        kernel = next(k for k in Program(program.after).kernels.values() if k.prefetch_count)
        assert list(ir.MemRefType(kernel.prefetch[0].type).shape) == [512]
        program.check([(bounds, x), (np.zeros_like(bounds), x), (np.eye(1, size, 299, dtype=np.int32)[0], x)])


def test_grad_of_vmap() -> None:
    """A loop in the forward pass and one in the backward pass both become a launch."""

    @jax.custom_vjp
    def doubled(n: Any, x: Any) -> Any:
        return programs.in_place(n, x)

    def forward(n: Any, x: Any) -> Any:
        return programs.in_place(n, x), n

    def backward(n: Any, g: Any) -> Any:
        return None, programs.in_place(n, g)

    doubled.defvjp(forward, backward)

    def loss(n: Any, x: Any) -> Any:
        return jnp.sum(jax.vmap(doubled)(n, x) ** 2)

    gradient = jax.value_and_grad(loss, argnums=1)
    with CONTEXT, ir.Location.unknown():
        program = batched(lower(gradient, BOUNDS[0], NARROW), [SHORT])
        assert (program.said, program.launches, program.loops) == ("", 2, 0)
        program.check([(bounds, NARROW) for bounds in BOUNDS[:5]])


def test_cores_share_the_batch() -> None:
    """The steps of all elements are shared between two cores, evenly, and give the same bits."""
    with CONTEXT, ir.Location.unknown():
        program = batched(lower(to_front(programs.scale), BOUNDS[0], ROW_ARRAYS), [SHORT])
        session = Session(contracts=(SHORT,))
        PartitionCores(cores=2).run(program.after, session)
        program.check(with_bounds(ROW_ARRAYS)[:5])
        launched = Launches(program.after)(BOUNDS[0], ROW_ARRAYS)
    assert (launched.cores, launched.bounds) == (2, (2, 5 * 2))


def test_runs_twice() -> None:
    """A second run changes nothing: the loop that is left is for when there are too many steps."""
    with CONTEXT, ir.Location.unknown():
        program = batched(lower(to_front(programs.scale), BOUNDS[0], ROW_ARRAYS))
        once = str(program.after)
        session = Session()
        BatchGrid().run(program.after, session)
        assert str(program.after) == once
        assert [diagnostic.name for diagnostic in session.diagnostics] == ["nothing-to-batch"]
