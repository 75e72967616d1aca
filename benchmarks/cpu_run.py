"""How fast kernels lowered for TPU run on the CPU, beside JAX's two interpreters and what XLA makes of plain JAX.

Each kernel runs four ways in one process, taking turns, on arrays that are on the device: lowered for TPU and then to
the CPU (`mosaic_grid.run` in a `jax.jit`); with `interpret=True`; with `pltpu.InterpretParams()`; and as the plain JAX
function that computes the same. Then one kernel runs for more and more steps, and one for as many steps on larger and
larger arrays. The last lines say which targets hold; a machine that is busy with other things may miss some.

    python benchmarks/cpu_run.py [NAME...]     NAME: matmul, flash, flash_causal, gmm, steps or sizes; else all
"""

from __future__ import annotations

import dataclasses
import functools
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas.ops.tpu import flash_attention
from jax.experimental.pallas.ops.tpu.megablox.gmm import gmm

import mosaic_grid

Function = Callable[..., Any]

ROUNDS = 5
TURN = 0.15
"""Seconds that a contender runs in each round, once at least."""
BLOCK = 128
STEPS = (128, 512, 2048, 8192)
SIZES = (16, 128, 1024, 4096)
"""Blocks of the array that is updated, each of 64 KiB."""
LEVEL = 1.3
"""What counts as no growth, from the first measurement to the last."""
OTHERS = {"interpret=True": 5, "InterpretParams": 20}
"""How many times faster than the interpreters kernels other than the matmul are to be."""


@dataclasses.dataclass(frozen=True)
class Contest:
    """A kernel, the function of plain JAX that computes the same, and what it runs on.

    The targets: how many times `faster` than each interpreter, and `at_most` how many times as long as plain JAX.
    """

    title: str
    baseline: str
    kernel: Function
    plain: Function
    arguments: tuple[Any, ...]
    faster: Mapping[str, float]
    at_most: float | None = None


def matmul(x: Any, y: Any) -> Any:
    """`x @ y`, a block of the result at a time: its products are added up in scratch."""

    def step(x: Any, y: Any, out: Any, total: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            total[...] = jnp.zeros_like(total)

        total[...] += jnp.dot(x[...], y[...], preferred_element_type=jnp.float32)

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _() -> None:
            out[...] = total[...]

    return pl.pallas_call(
        step,
        grid=(x.shape[0] // BLOCK, y.shape[1] // BLOCK, x.shape[1] // BLOCK),
        in_specs=[
            pl.BlockSpec((BLOCK, BLOCK), lambda i, j, k: (i, k)),
            pl.BlockSpec((BLOCK, BLOCK), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((BLOCK, BLOCK), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((x.shape[0], y.shape[1]), jnp.float32),
        scratch_shapes=[pltpu.VMEM((BLOCK, BLOCK), jnp.float32)],
    )(x, y)


def repeated_sum(steps: Any, x: Any) -> Any:
    """Adds up blocks of `x`, one a step, from the first on again after the last."""

    def step(x: Any, total: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            total[...] = jnp.zeros_like(total)

        total[...] += x[...]

    return pl.pallas_call(
        step,
        grid=(steps,),
        in_specs=[pl.BlockSpec((BLOCK, BLOCK), lambda i: (i % (x.shape[0] // BLOCK), 0))],
        out_specs=pl.BlockSpec((BLOCK, BLOCK), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((BLOCK, BLOCK), jnp.float32),
    )(x)


def update(table: Any, x: Any) -> Any:
    """Adds 1 to the blocks of `x` that the table names, one a step, in place."""

    def step(table: Any, x: Any, out: Any) -> None:
        del table
        out[...] = x[...] + 1

    def place(i: Any, table: Any) -> tuple[Any, int]:
        return table[i], 0

    return pl.pallas_call(
        step,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(table.shape[0],),
            in_specs=[pl.BlockSpec((BLOCK, BLOCK), place)],
            out_specs=pl.BlockSpec((BLOCK, BLOCK), place),
        ),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        input_output_aliases={1: 0},
    )(table, x)


def attention(*, causal: bool) -> Function:
    """JAX's flash attention in the blocks that it takes itself."""
    return lambda q, k, v: flash_attention.flash_attention(q, k, v, causal=causal)


def reference(*, causal: bool) -> Function:
    """Attention in plain JAX."""
    return lambda q, k, v: flash_attention.mha_reference(q, k, v, None, causal=causal)


def contests() -> dict[str, Contest]:
    """The kernels by name."""
    rng = np.random.default_rng(0)

    def normal(*shape: int, dtype: Any = jnp.float32) -> Any:
        return jnp.asarray(rng.standard_normal(shape, np.float32), dtype)

    heads = tuple(normal(1, 8, 1024, 128) for _ in range(3))
    groups = jnp.array([300, 0, 500, 224], jnp.int32)
    return {
        "matmul": Contest(
            "matmul, 1024^3 f32, 512 steps", "jnp.dot", matmul, jnp.dot, (normal(1024, 1024), normal(1024, 1024)),
            {"interpret=True": 15, "InterpretParams": 50}, 2.2,
        ),
        "flash": Contest(
            "flash attention, 8 x 1024 x 128 f32, 512 steps", "mha_reference", attention(causal=False),
            reference(causal=False), heads, OTHERS,
        ),
        "flash_causal": Contest(
            "the same, causal: 224 of the steps do nothing", "mha_reference", attention(causal=True),
            reference(causal=True), heads, OTHERS,
        ),
        "gmm": Contest(
            "megablox gmm, 1024 x 512 by 4 x 512 x 512 bf16, 160 steps", "lax.ragged_dot",
            lambda x, y, sizes: gmm(x, y, sizes), jax.lax.ragged_dot,
            (normal(1024, 512, dtype=jnp.bfloat16), normal(4, 512, 512, dtype=jnp.bfloat16), groups), OTHERS,
        ),
    }  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Compiled:
    """A function ready to run, and the seconds from the Python function to there."""

    call: Function
    seconds: float


def compiled(function: Function, arguments: Sequence[Any], **options: Any) -> Compiled:
    """The function as XLA compiles it for this machine."""
    start = time.perf_counter()
    call = jax.jit(function, **options).lower(*arguments).compile()
    return Compiled(call, time.perf_counter() - start)


def lowered(kernel: Function, arguments: Sequence[Any], **options: Any) -> Compiled:
    """The kernel lowered for TPU, and that program lowered to the CPU; every rounding that it asks for is made."""
    start = time.perf_counter()
    program = jax.jit(kernel, keep_unused=True).trace(*arguments).lower(lowering_platforms=("tpu",))
    rounding = {"xla_allow_excess_precision": False}
    made = compiled(lambda *args: mosaic_grid.run(program, *args), arguments, compiler_options=rounding, **options)
    return Compiled(made.call, time.perf_counter() - start)


def interpreted(kernel: Function, arguments: Sequence[Any], interpret: Any) -> Compiled:
    """The kernel in one of JAX's interpreters, as if `interpret=` stood in its `pallas_call`."""
    with pltpu.force_tpu_interpret_mode(interpret):
        return compiled(lambda *args: kernel(*args), arguments)


def best_of(calls: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """The least seconds of each call; they take turns, so that what else the machine does meets all of them."""
    best = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        jax.block_until_ready(call())
    for _ in range(ROUNDS):
        for name, call in calls.items():
            until = time.perf_counter() + TURN
            while (start := time.perf_counter()) < until:
                jax.block_until_ready(call())
                best[name] = min(best[name], time.perf_counter() - start)
    return best


@dataclasses.dataclass(frozen=True)
class Target:
    """A ratio that was measured, and the bound it is to keep."""

    claim: str
    measured: float
    bound: float
    is_least: bool = False

    def __str__(self) -> str:
        holds = self.measured >= self.bound if self.is_least else self.measured <= self.bound
        side = "at least" if self.is_least else "at most"
        return f"{'holds ' if holds else 'MISSED'}  {self.claim}: {self.measured:.3g}x, {side} {self.bound:g}x"


def compete(name: str, contest: Contest) -> list[Target]:
    """Prints how the kernel does; returns what it was to reach."""
    args = contest.arguments
    ways = {
        "lowered": lowered(contest.kernel, args),
        "interpret=True": interpreted(contest.kernel, args, interpret=True),
        "InterpretParams": interpreted(contest.kernel, args, pltpu.InterpretParams()),
        contest.baseline: compiled(contest.plain, args),
    }
    seconds = best_of({name: functools.partial(way.call, *args) for name, way in ways.items()})
    ours = seconds["lowered"]
    print(f"{name}: {contest.title}")
    print(f"    {'':18}{'run':>10}{'/ lowered':>11}{'compile':>12}{'/ lowered':>11}")
    for title, way in ways.items():
        run = f"{seconds[title] * 1e3:>7.4g} ms{seconds[title] / ours:>10.3g}x"
        print(f"    {title:18}{run}{way.seconds:>10.2f} s{way.seconds / ways['lowered'].seconds:>10.3g}x")
    print(flush=True)
    faster = [
        Target(f"{name}: faster than {title}", seconds[title] / ours, bound, is_least=True)
        for title, bound in contest.faster.items()
    ]
    if contest.at_most is None:
        return faster
    return [*faster, Target(f"{name}: time of {contest.baseline}", ours / seconds[contest.baseline], contest.at_most)]


def grow_steps() -> list[Target]:
    """One program run for more and more steps, over the same array."""
    x = jnp.ones((8 * BLOCK, BLOCK), jnp.float32)
    call = lowered(repeated_sum, (jnp.int32(0), x)).call
    seconds = best_of({str(steps): functools.partial(call, jnp.int32(steps), x) for steps in STEPS})
    per_step = [seconds[str(steps)] / steps for steps in STEPS]
    print("steps: adding up blocks of 64 KiB, time a step by the number of steps, which is only known at run time")
    _print_growth([f"{steps}" for steps in STEPS], per_step)
    return [Target("steps: time a step, last to first", per_step[-1] / per_step[0], LEVEL)]


def grow_sizes() -> list[Target]:
    """As many steps on larger and larger arrays, which are updated in place."""
    calls = {}
    for blocks in SIZES:
        table = jnp.asarray(np.arange(256) % 16 * (blocks // 16), jnp.int32)
        x = jnp.zeros((blocks * BLOCK, BLOCK), jnp.float32)
        way = lowered(update, (table, x), donate_argnums=1)
        calls[f"{blocks // 16} MiB"] = _Repeated(functools.partial(way.call, table), x)
    seconds = best_of(calls)
    seconds_of = list(seconds.values())
    print("sizes: 256 steps that update 16 blocks of 64 KiB of an array in place, time by the size of the array")
    _print_growth(list(seconds), seconds_of)
    return [Target("sizes: time, last to first", seconds_of[-1] / seconds_of[0], LEVEL)]


class _Repeated:
    """A call whose result, made in the place of its argument, is the argument of the next."""

    def __init__(self, call: Function, value: Any) -> None:
        self.call = call
        self.value = value

    def __call__(self) -> Any:
        (self.value,) = self.call(self.value)
        return self.value


def _print_growth(titles: Sequence[str], seconds: Sequence[float]) -> None:
    parts = [
        f"{title}: {time_ * 1e6:.3g} us ({time_ / seconds[0]:.2f}x)"
        for title, time_ in zip(titles, seconds, strict=True)
    ]
    print(f"    {', '.join(parts)}\n", flush=True)


def main(names: Sequence[str]) -> None:
    """Prints a table for each kernel, how time grows, and which targets hold."""
    measurements: dict[str, Callable[[], list[Target]]] = {
        name: functools.partial(compete, name, contest) for name, contest in contests().items()
    } | {"steps": grow_steps, "sizes": grow_sizes}
    if unknown := set(names) - set(measurements):
        sys.exit(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(measurements)}")
    for target in [target for name in names or measurements for target in measurements[name]()]:
        print(target)


if __name__ == "__main__":
    main(sys.argv[1:])
