"""Kernels that hypothesis makes: whatever the flag says, they give the same numbers on the CPU, and the right ones."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hooked import hooked, quietly
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ROWS, LANES = 8, 128


@dataclasses.dataclass(frozen=True)
class Sum:
    """A kernel that adds up blocks of an array of blocks along some dimensions of its grid, the last ones.

    `bounds` are the steps that are taken of the array's, each dynamic where `dynamic` says so; `words` are the kept
    dimensions' semantics. `batch` is the number of elements under `jax.vmap`, with bounds of their own where they are
    dynamic; 0 is none.
    """

    sizes: tuple[int, ...]
    bounds: tuple[int, ...]
    dynamic: tuple[bool, ...]
    words: tuple[str, ...]
    batch: int

    def call(self, bounds: Any, x: Any) -> Any:
        """The launch; `bounds` is an array."""
        rank, kept = len(self.sizes), len(self.words)

        def kernel(x_ref: Any, o_ref: Any) -> None:
            first = functools.reduce(
                jnp.logical_and, [pl.program_id(axis) == 0 for axis in range(kept, rank)], jnp.bool_(True)
            )

            @pl.when(first)
            def _() -> None:
                o_ref[...] = jnp.zeros_like(o_ref)

            o_ref[...] += x_ref[...]

        block = (ROWS, LANES)
        words = [getattr(pltpu, word.upper()) for word in (*self.words, *["arbitrary"] * (rank - kept))]
        return pl.pallas_call(
            kernel,
            out_shape=jax.ShapeDtypeStruct((*self.sizes[:kept], *block), x.dtype),
            grid=tuple(bounds[axis] if self.dynamic[axis] else self.bounds[axis] for axis in range(rank)),
            in_specs=[pl.BlockSpec((*[None] * rank, *block), lambda *at: (*at, 0, 0))],
            out_specs=pl.BlockSpec((*[None] * kept, *block), lambda *at: (*at[:kept], 0, 0)),
            compiler_params=pltpu.CompilerParams(dimension_semantics=words),
        )(x)

    def check(self, bounds: np.ndarray[Any, Any], x: np.ndarray[Any, Any], result: np.ndarray[Any, Any]) -> None:
        """Of one element, against sums by NumPy; blocks that no step has are anything."""
        steps = [int(bounds[axis]) if self.dynamic[axis] else self.bounds[axis] for axis in range(len(self.sizes))]
        kept = len(self.words)
        if 0 in steps:
            return
        for at in itertools.product(*map(range, steps[:kept])):
            taken = x[at][tuple(slice(n) for n in steps[kept:])].reshape(-1, ROWS, LANES)
            np.testing.assert_array_equal(result[at], taken.sum(0))


@st.composite
def sums(draw: st.DrawFn) -> Sum:
    """Kernels of one to three dimensions, of few steps."""
    rank = draw(st.integers(1, 3))
    kept = draw(st.integers(1, rank))
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank)))
    bounds = tuple(draw(st.integers(1, size)) for size in sizes)
    dynamic = tuple(draw(st.lists(st.booleans(), min_size=rank, max_size=rank)))
    parallel = draw(st.integers(0, kept))
    words = (*["parallel"] * parallel, *["arbitrary"] * (kept - parallel))
    return Sum(sizes, bounds, dynamic, words, draw(st.sampled_from([0, 0, 2, 3])))


@given(sums(), st.integers(0, 2**32 - 1))
@settings(max_examples=8, deadline=None)
def test_modes_agree(kernel: Sum, seed: int) -> None:
    """`off`, `check` and `on` give sums that are equal where something is written, and those of NumPy."""
    random = np.random.default_rng(seed)
    lead = (kernel.batch,) if kernel.batch else ()
    x = random.integers(-9, 9, (*lead, *kernel.sizes, ROWS, LANES)).astype(np.float32)
    bounds = np.stack([random.integers(0, size + 1, lead) for size in kernel.sizes], -1).astype(np.int32)
    function = jax.vmap(kernel.call) if kernel.batch else kernel.call
    for mode in ("off", "check", "on"):
        with hooked(mode, "v5p"):
            result = np.asarray(quietly(jax.jit(function), bounds, x))
        if kernel.batch:
            for each in zip(bounds, x, result, strict=True):
                kernel.check(*each)
        else:
            kernel.check(bounds, x, result)
