"""`batch-grid` makes one launch of loops over batches in each other, as `jax.vmap` of `jax.vmap` lowers to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import batch_programs as programs
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from batch_programs import TABLES, batched, lengths, lower
from dynamic_programs import numbers
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax
from jaxlib.mlir import ir

from mosaic_grid.batching import vectors
from mosaic_grid.context import create_context
from mosaic_grid.cpu.arrays import Array
from mosaic_grid.cpu.execute import compile_program

CONTEXT = create_context()
BOUNDS = np.resize(lengths(3, 0, 1, 5, 2), (2, 4))
ARRAYS = numbers(2, 4, 40, 128)
STAYS = "the launches of 'kernel' in a loop become one, but stay in the loop around it: "
CARRIED = "isn't a collection of results of the launch, so an iteration may need what another has computed"


@pytest.mark.parametrize(
    "axes",
    [((None, 0), (0, 0)), ((0, None), (None, 0)), ((0, 0), (0, 0)), ((0, None), (0, 0)), ((0, 0), (0, None))],
    ids=["outer bound", "inner bound", "both", "outer array", "inner array"],
)
@pytest.mark.parametrize("contracts", [(), ("0 <= %arg0[*] <= 5",)], ids=["unknown", "short"])
def test_vmap_of_vmap(axes: tuple[Any, Any], contracts: Sequence[str]) -> None:
    """Two batches become one launch, whichever of them the bound and the array have; the loop is for too many steps."""
    inner, outer = axes
    mapped = jax.vmap(jax.vmap(programs.scale, in_axes=inner), in_axes=outer)
    shape = tuple(n for n, axis in zip((2, 4), (outer[0], inner[0]), strict=True) if axis is not None)
    bounds = np.resize(lengths(3, 0, 1, 5, 2), shape)
    arrays = [n for n, axis in zip((2, 4), (outer[1], inner[1]), strict=True) if axis is not None]
    x = numbers(*arrays, 40, 256)
    with CONTEXT, ir.Location.unknown():
        program = batched(lower(mapped, bounds, x), contracts)
        assert program.said == ""
        assert program.loops == (0 if contracts else 1)
        program.check([(bounds, x), (np.zeros_like(bounds), x)])


@pytest.mark.parametrize(
    ("inner", "outer", "bounds", "x"),
    [
        ({"in_axes": (0, 2)}, {"in_axes": (1, 1)}, BOUNDS.T.copy(), ARRAYS.transpose(2, 0, 3, 1).copy()),
        ({"in_axes": (0, 1)}, {"in_axes": (0, 2)}, BOUNDS, ARRAYS.transpose(2, 1, 0, 3).copy()),
        ({"out_axes": 2}, {"out_axes": 1}, BOUNDS, ARRAYS),
    ],
    ids=["in_axes", "in_axes, the outer one behind", "out_axes"],
)
def test_axes(inner: dict[str, Any], outer: dict[str, Any], bounds: Array, x: Array) -> None:
    """Batches along any axes of the arrays and the results, in either order."""
    mapped = jax.vmap(jax.vmap(programs.in_place, **inner), **outer)
    with CONTEXT, ir.Location.unknown():
        program = batched(lower(mapped, bounds, x), ["0 <= %arg0[*] <= 5"])
        assert (program.said, program.launches, program.loops) == ("", 1, 0)
        program.check([(bounds, x), (np.zeros_like(bounds), x)])


def test_tables() -> None:
    """Tables that differ in both batches: the grid is static, and nothing of a loop is left."""
    tables = np.stack([TABLES, TABLES[::-1]])
    with CONTEXT, ir.Location.unknown():
        program = batched(lower(jax.vmap(jax.vmap(programs.gather)), tables, ARRAYS))
        assert (program.said, program.launches, program.loops) == ("", 1, 0)
        program.check([(tables, ARRAYS)])


def test_three_batches() -> None:
    """A third batch is one more loop in the others."""
    bounds, x = np.resize(BOUNDS, (2, 3, 2)), numbers(2, 3, 2, 40, 128)
    mapped = jax.vmap(jax.vmap(jax.vmap(programs.in_place)))
    with CONTEXT, ir.Location.unknown():
        program = batched(lower(mapped, bounds, x), ["0 <= %arg0[*] <= 5"])
        assert (program.said, program.launches, program.loops) == ("", 1, 0)
        program.check([(bounds, x)])


def test_what_is_too_much_for_one_launch() -> None:
    """Where both batches don't fit into one launch the inner one gets it, and why the other stays a loop is said."""
    tables = np.zeros((8, 2, 2, 2**13), np.int32)
    tables[..., :3] = np.resize(TABLES[..., :3], (8, 2, 2, 3))
    x = numbers(8, 2, 40, 128)
    with CONTEXT, ir.Location.unknown():
        program = batched(lower(jax.vmap(jax.vmap(programs.gather)), tables, x))
        reason = "the prefetch operands of all elements take 1048576 bytes of SMEM, more than 524288"
        assert (program.said, program.launches, program.loops) == (STAYS + reason, 1, 1)
        program.check([(tables, x)])


def by_hand(step: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A loop around a vmapped kernel; `step` gives the new output from the old one, the results and the iteration."""

    def run(n: Any, x: Any) -> Any:
        def body(k: Any, out: Any) -> Any:
            bounds, array = (lax.dynamic_index_in_dim(each, k, 0, False) for each in (n, x))
            return step(out, jax.vmap(programs.in_place)(bounds, array), k)

        return lax.fori_loop(0, 2, body, jnp.zeros_like(x))

    return run


def put(out: Any, one: Any, k: Any) -> Any:
    """The results as they are."""
    return lax.dynamic_update_index_in_dim(out, one, k, 0)


@pytest.mark.parametrize(
    ("step", "stays"),
    [
        (put, ""),
        (lambda out, one, k: put(out, one * 2.0, k), CARRIED),
        (lambda out, one, k: put(out, one, 1 - k), CARRIED),
        (lambda out, one, k: put(out + 1.0, one, k), CARRIED),
        (
            lambda out, one, k: put(out, lax.cond(k > 0, lambda: one, lambda: one + 1.0), k),
            "the loop has a stablehlo.case",
        ),
    ],
    ids=["a batch", "computes", "backwards", "carries", "branches"],
)
def test_loops_by_hand(step: Callable[[Any, Any, Any], Any], stays: str) -> None:
    """A loop by hand is one over a batch if it takes elements and puts results, and does no more; else why is said."""
    with CONTEXT, ir.Location.unknown():
        program = batched(lower(by_hand(step), BOUNDS, ARRAYS), ["0 <= %arg0[*] <= 5"])
        assert (program.launches, program.loops) == (1, bool(stays))
        assert stays in program.said
        assert program.said.startswith(STAYS if stays else "")
        assert bool(program.said) == bool(stays)
        program.check([(BOUNDS, ARRAYS)])


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_stacking(data: st.DataObject) -> None:
    """Slices along any axes are stacked and repeated as NumPy does it, and put back where they were."""
    rank = data.draw(st.integers(1, 4), label="rank")
    shape = data.draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank), label="shape")
    along = data.draw(st.permutations(range(rank)), label="along")[: data.draw(st.integers(0, rank), label="batches")]
    axes: list[int | None] = list(along)
    axes.insert(data.draw(st.integers(0, len(axes)), label="place"), None)
    sizes = [3 if axis is None else shape[axis] for axis in axes]
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    others = [axis for axis in range(rank) if axis not in along]
    moved = np.transpose(x, [*along, *others])
    repeated = np.repeat(np.expand_dims(moved, axes.index(None)), 3, axes.index(None))
    wanted = repeated.reshape([int(np.prod(sizes)), *(shape[axis] for axis in others)])
    kind = f"tensor<{'x'.join(map(str, shape))}xi32>"
    with CONTEXT, ir.Location.unknown():
        module = ir.Module.parse(f"func.func public @main(%x: {kind}) -> {kind} {{ return %x : {kind} }}").operation
        function = module.regions[0].blocks[0].operations[0].operation
        block = function.regions[0].blocks[0]
        end = block.operations[0].operation
        with ir.InsertionPoint(end):
            value = block.arguments[0]
            every = vectors.stacked(value, axes, sizes)
            known = [axis for axis in axes if axis is not None]
            back = vectors.unstacked(
                vectors.stacked(value, known, [shape[axis] for axis in known]), known, [shape[axis] for axis in known]
            )
            ir.Operation.create("func.return", operands=[every, back])
        end.erase()
        results = ir.FunctionType.get([value.type], [every.type, back.type])
        function.attributes["function_type"] = ir.TypeAttr.get(results)
        one, other = compile_program(module)(x)
    assert one.tolist() == wanted.tolist()
    assert other.tolist() == x.tolist()
