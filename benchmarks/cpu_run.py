"""How fast kernels lowered for TPU run on the CPU, beside JAX's two interpreters and what XLA makes of plain JAX.

Each kernel runs four ways in one process, taking turns, on arrays that are on the device: lowered for TPU and then to
the CPU (`mosaic_grid.run` in a `jax.jit`); with `interpret=True`; with `pltpu.InterpretParams()`; and as the plain JAX
function that computes the same. Beside that, what the kernel's products of blocks take alone, in a loop of plain JAX:
what is over it is the price of the grid and the pipeline. Then one kernel runs for more and more steps, and one for as
many steps on larger and larger arrays. The last lines say which targets hold, by the time on the clock; on a machine
that does other things as well some may be missed, and the time of all cores together says more.

`interpret=True` copies whole arrays in each step: how much slower it is depends on the machine's memory.

    python benchmarks/cpu_run.py [NAME...]     NAME: matmul, flash, flash_causal, gmm, steps or sizes; else all
"""

from __future__ import annotations

import dataclasses
import functools
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas.ops.tpu.megablox.gmm import gmm

import mosaic_grid
from cpu_kernels import BLOCK, Function, attention, matmul, products, reference, repeated_sum, update

ROUNDS = 5
TURN = 0.15
"""Seconds that a contender runs in each round, once at least."""
STEPS = (64, 256, 1024, 4096)
SIZES = (16, 128, 1024, 4096)
"""Blocks of the array that is updated, each of 64 KiB."""
LEVEL = 1.3
"""What counts as no growth, from the first measurement to the last."""
ALONE = "products alone"
"""What no way of running a kernel step by step can be faster than, on the same machine."""
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
    products: int = 0
    """How many pairs of blocks it multiplies, one after the other; that alone is measured too, if not 0."""


def contests() -> dict[str, Contest]:
    """The kernels by name."""
    rng = np.random.default_rng(0)

    def normal(*shape: int, dtype: Any = jnp.float32) -> Any:
        return jnp.asarray(rng.standard_normal(shape, np.float32), dtype)

    heads = tuple(normal(1, 8, 1024, 128) for _ in range(3))
    groups = jnp.array([600, 0, 1000, 448], jnp.int32)
    return {
        "matmul": Contest(
            "matmul, 1024^3 f32, 512 steps", "jnp.dot", matmul, jnp.dot, (normal(1024, 1024), normal(1024, 1024)),
            {"interpret=True": 15, "InterpretParams": 50}, 2.2, 512,
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
            "megablox gmm, 2048 x 1024 by 4 x 1024 x 1024 bf16, 1152 steps", "lax.ragged_dot",
            lambda x, y, sizes: gmm(x, y, sizes), jax.lax.ragged_dot,
            (normal(2048, 1024, dtype=jnp.bfloat16), normal(4, 1024, 1024, dtype=jnp.bfloat16), groups), OTHERS,
            products=1152,
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
    """The kernel lowered for TPU, and that program lowered to the CPU, compiled as `mosaic-run` does."""
    start = time.perf_counter()
    program = jax.jit(kernel, keep_unused=True).trace(*arguments).lower(lowering_platforms=("tpu",))
    as_we_do = dict(mosaic_grid.COMPILER_OPTIONS)
    made = compiled(lambda *args: mosaic_grid.run(program, *args), arguments, compiler_options=as_we_do, **options)
    return Compiled(made.call, time.perf_counter() - start)


def interpreted(kernel: Function, arguments: Sequence[Any], interpret: Any) -> Compiled:
    """The kernel in one of JAX's interpreters, as if `interpret=` stood in its `pallas_call`."""
    with pltpu.force_tpu_interpret_mode(interpret):
        return compiled(lambda *args: kernel(*args), arguments)


@dataclasses.dataclass
class Times:
    """Seconds of the best of some calls: on the clock, and of all cores together; not always of the same call."""

    run: float = float("inf")
    cpu: float = float("inf")


def best_of(calls: Mapping[str, Callable[[], Any]]) -> dict[str, Times]:
    """The least seconds of each call; they take turns, so that what else the machine does meets all of them."""
    best = {name: Times() for name in calls}
    for call in calls.values():
        jax.block_until_ready(call())
    for _ in range(ROUNDS):
        for name, call in calls.items():
            until = time.perf_counter() + TURN
            while (start := time.perf_counter()) < until:
                cpu = time.process_time()
                jax.block_until_ready(call())
                best[name].cpu = min(best[name].cpu, time.process_time() - cpu)
                best[name].run = min(best[name].run, time.perf_counter() - start)
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
    """Prints how the kernel does, each number with what it is as a multiple of ours; returns what it was to reach."""
    args = contest.arguments
    ways = {
        "lowered": lowered(contest.kernel, args),
        "interpret=True": interpreted(contest.kernel, args, interpret=True),
        "InterpretParams": interpreted(contest.kernel, args, pltpu.InterpretParams()),
        contest.baseline: compiled(contest.plain, args),
    }
    _check(name, ways["lowered"].call(*args), ways[contest.baseline].call(*args))
    calls = {title: functools.partial(way.call, *args) for title, way in ways.items()}
    if contest.products:
        blocks = [jnp.ones((BLOCK, BLOCK), arg.dtype) for arg in args[:2]]
        ways[ALONE] = compiled(functools.partial(products, contest.products), blocks)
        calls[ALONE] = functools.partial(ways[ALONE].call, *blocks)
    times = best_of(calls)
    ours = times["lowered"]
    print(f"{name}: {contest.title}")
    print(f"    {'':18}{'run':>10}{'':10}{'all cores':>10}{'':10}{'compile':>10}")
    for title, way in ways.items():
        columns = [
            (times[title].run * 1e3, ours.run * 1e3, "ms"),
            (times[title].cpu * 1e3, ours.cpu * 1e3, "ms"),
            (way.seconds, ways["lowered"].seconds, "s"),
        ]
        row = "".join(f"{value:>{10 - len(unit) - 1}.4g} {unit}{value / base:>8.3g}x " for value, base, unit in columns)
        print(f"    {title:18}{row}")
    print(flush=True)
    faster = [
        Target(f"{name}: faster than {title}", times[title].run / ours.run, bound, is_least=True)
        for title, bound in contest.faster.items()
    ]
    if contest.at_most is None:
        return faster
    part = ours.run / times[contest.baseline].run
    return [*faster, Target(f"{name}: time of {contest.baseline}", part, contest.at_most)]


def _check(name: str, result: Sequence[Any], expected: Any) -> None:
    """Ends the benchmark if the kernel doesn't compute what plain JAX does: then nothing would be compared."""
    found, wanted = (np.asarray(each, np.float32) for each in (result[0], expected))
    if not np.allclose(found, wanted, rtol=0.02, atol=0.02 * float(np.abs(wanted).max())):
        sys.exit(f"{name}: the kernel is off by {np.abs(found - wanted).max():.3g} at most")


def grow_steps() -> list[Target]:
    """One program run for more and more steps, over the same array."""
    x = jnp.ones((8 * BLOCK, BLOCK), jnp.float32)
    call = lowered(repeated_sum, (jnp.int32(0), x)).call
    times = best_of({str(steps): functools.partial(call, jnp.int32(steps), x) for steps in STEPS})
    per_step = [times[str(steps)].run / steps for steps in STEPS]
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
    times = best_of(calls)
    seconds = [each.run for each in times.values()]
    print("sizes: 256 steps that update 16 blocks of 64 KiB of an array in place, time by the size of the array")
    _print_growth(list(times), seconds)
    return [Target("sizes: time, last to first", seconds[-1] / seconds[0], LEVEL)]


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
    load = os.getloadavg()[0]
    remark = "; the machine is busy, which may hide what holds" if load > 1 else ""
    print(f"{os.cpu_count()} cores, load {load:.1f} before{remark}\n")
    for target in [target for name in names or measurements for target in measurements[name]()]:
        print(target)


if __name__ == "__main__":
    main(sys.argv[1:])
