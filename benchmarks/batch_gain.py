"""What one launch for a batch gains over a loop of launches: time on the CPU, grid steps, and libtpu's schedule.

The kernel doubles the first n blocks of an element, or those that a table names; n and the table differ in each of 64
elements. It computes next to nothing, so that what is around it shows. Both programs run on the CPU by way of
`mosaic_grid.run` in a `jax.jit`, on arrays that are on the device, taking turns; the time is the least of each, and a
ratio above one says that the launch is faster. Plain XLA that doubles the whole array has a column of its own: what it
takes, nearly all of it for memory and threads, neither of the two goes much below. What a launch costs on a TPU isn't
measured by anything here: on the CPU the loop pays for its slices and updates, which copy whole elements, and the
launch for finding the element of a step.

Bundles are VLIW instructions of the whole kernel, read from libtpu's own schedule: of the kernel in the loop, and of
the one launch that looks the element of a step up, that finds it by bisection, or whose grid is static. The last lines
say which targets hold.

    python benchmarks/batch_gain.py [TARGET]     TARGET: v5p unless another is given
"""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
os.environ.setdefault("JAX_PLATFORMS", "cpu")  # no TPU is asked for

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jaxlib.mlir import ir

import mosaic_grid
from mosaic_grid.containers.text import parse
from mosaic_grid.context import create_context, unknown_location
from mosaic_grid.cpu.execute import compile_program
from mosaic_grid.passes.batch_grid import BatchGrid
from mosaic_grid.program import Launch, Program
from mosaic_grid.session import Session
from mosaic_grid.targets import Target, parse_target
from mosaic_grid.unpack import unpack
from mosaic_grid.variants.measure import measure

SIZE = 64
TURNS = 500
FASTER = 1.5
"""How many times faster one launch of 64 small elements is to be."""
SLICES = ("stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice")


@dataclasses.dataclass(frozen=True)
class Case:
    """A batch whose elements have `room` for blocks of 8 rows and `columns`, of which up to `most` are in use."""

    name: str
    room: int
    most: int
    columns: int
    size: int = SIZE

    @property
    def arguments(self) -> tuple[Any, Any]:
        """Bounds, or where the grid is static tables, and the elements."""
        rng = np.random.default_rng(0)
        x = jnp.asarray(rng.standard_normal((self.size, self.room * 8, self.columns)).astype(np.float32))
        shape = self.size if self.most else (self.size, self.room)
        return jnp.asarray(rng.integers(0, (self.most or self.room - 1) + 1, shape).astype(np.int32)), x

    def lower(self) -> Any:
        """The vmapped kernel, lowered for TPU; what the bounds are at most is in the program."""
        block = (8, self.columns)

        def ragged(n: Any, x: Any) -> Any:
            spec = pl.BlockSpec(block, lambda i: (i, 0))
            return pl.pallas_call(double, array(x.shape), grid=(n,), in_specs=[spec], out_specs=spec)(x)

        def static(table: Any, x: Any) -> Any:
            spec = pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=1,
                grid=(self.room,),
                in_specs=[pl.BlockSpec(block, lambda i, table: (table[i], 0))],
                out_specs=pl.BlockSpec(block, lambda i, table: (i, 0)),
            )
            return pl.pallas_call(double, array(x.shape), grid_spec=spec)(table, x)

        def run(n: Any, x: Any) -> Any:
            return jax.vmap(ragged)(jnp.clip(n, 0, self.most), x) if self.most else jax.vmap(static)(n, x)

        return jax.jit(run).trace(*self.arguments).lower(lowering_platforms=("tpu",))


TIMED = (
    Case("all of 4 blocks of 8x128 in use", 4, 4, 128),
    Case("all of 4 blocks of 8x256 in use", 4, 4, 256),
    Case("all of 8 blocks of 8x256 in use", 8, 8, 256),
    Case("up to 4 of 16 blocks of 8x128 in use", 16, 4, 128),
    Case("up to 2 of 16 blocks of 8x128 in use", 16, 2, 128),
    Case("tables differ, 4 blocks of 8x128", 4, 0, 128),
    Case("tables differ, 8 blocks of 8x256", 8, 0, 256),
)
COMPILED = (
    Case("bounds differ, a table of steps", 4, 4, 128),
    Case("bounds differ, bisection in 1024", 64, 64, 128, 1024),
    Case("tables differ", 4, 0, 128),
)


def double(*refs: Any) -> None:
    """The kernel: its last two arguments are a block and what becomes of it."""
    *_, x_ref, o_ref = refs
    o_ref[...] = x_ref[...] * 2.0


def array(shape: tuple[int, ...]) -> Any:
    """The abstract value of an f32 array."""
    make: Any = jax.ShapeDtypeStruct  # which has no types of its own
    return make(shape, jnp.float32)


def seconds(case: Case) -> tuple[float, float, float]:
    """The least seconds that the loop, the launch and plain XLA take, in turns; the first two have the same results."""
    lowered, arguments = case.lower(), case.arguments
    options = dict(mosaic_grid.COMPILER_OPTIONS)
    programs = [
        jax.jit(lambda *given, passes=passes: mosaic_grid.run(lowered, *given, passes=passes), compiler_options=options)
        for passes in ("", "batch-grid")
    ]
    one, other = (np.asarray(program(*arguments)[0]) for program in programs)
    assert one.tobytes() == other.tobytes(), "results differ"
    contenders = (*programs, jax.jit(lambda _, x: [x * 2.0]))
    least = [float("inf")] * len(contenders)
    for _ in range(TURNS):
        for number, program in enumerate(contenders):
            start = time.perf_counter()
            jax.block_until_ready(program(*arguments))
            least[number] = min(least[number], time.perf_counter() - start)
    loop, once, plain = least
    return loop, once, plain


def rewritten(case: Case, context: ir.Context) -> tuple[ir.Operation, ir.Operation]:
    """The unpacked program before and after the pass; the context must be current."""
    loop = parse(case.lower().as_text(debug_info=True), "program.mlir", context)
    unpack(loop)
    once = loop.clone().operation
    BatchGrid().run(once, Session())
    return loop, once


def bundles(launch: Launch, target: Target) -> str:
    """The length of a launch's schedule, and on how many cores it runs."""
    (measured,) = measure(launch, [None], target)
    return f"{measured.bundles} x {measured.cores}" if measured.cost is not None else measured.error


def slices(program: ir.Operation) -> int:
    """How many slices and updates of arrays the outer program has; in a loop they run for each element."""
    found: list[str] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.append(op.name)
        return ir.WalkResult.ADVANCE

    program.walk(visit)
    return sum(found.count(name) for name in SLICES)


def total_steps(program: ir.Operation, arguments: tuple[Any, Any]) -> int:
    """The bound that the one launch of a program is given: what the outer program computes for it."""
    copy = program.clone().operation
    view = Program(copy)
    (launch,) = view.launches
    bound, block = launch.op.operands[0], launch.op.block
    function, end = block.owner.operation, block.operations[-1].operation
    with end.location, ir.InsertionPoint(end):
        ir.Operation.create("func.return", operands=[bound])
    end.erase()
    inputs = [argument.type for argument in block.arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, [bound.type]))
    if "res_attrs" in function.attributes:
        del function.attributes["res_attrs"]
    launch.op.erase()
    for kernel in view.kernels.values():
        kernel.module.erase()
    return int(compile_program(copy)(*map(np.asarray, arguments))[0])


def main() -> None:
    """Prints the rows, and whether the targets hold."""
    target = parse_target(sys.argv[1] if len(sys.argv) > 1 else "v5p")
    ratios: dict[str, float] = {}
    print(f"{f'{SIZE} elements on the CPU':40}{'loop, us':>12}{'once, us':>12}{'ratio':>8}{'x * 2, us':>12}")
    for case in TIMED:
        loop, once, plain = (each * 1e6 for each in seconds(case))
        ratios[case.name] = loop / once
        print(f"{case.name:40}{loop:>12.0f}{once:>12.0f}{loop / once:>8.2f}{plain:>12.0f}", flush=True)
    print(f"\n{f'bundles x cores on {target}':40}{'loop':>12}{'once':>12}{'slices':>12}")
    with create_context() as context, unknown_location():
        for case in COMPILED:
            before, after = rewritten(case, context)
            cells = [bundles(Program(each).launches[-1], target) for each in (before, after)]
            left = f"{slices(before)} -> {slices(after)}" if len(Program(after).launches) == 1 else ""
            print(f"{case.name:40}{cells[0]:>12}{cells[1]:>12}{left:>12}", flush=True)
        _, program = rewritten(COMPILED[0], context)
        steps, total = int(COMPILED[0].arguments[0].sum()), total_steps(program, COMPILED[0].arguments)
        print(f"\nlaunches of {SIZE} elements: {len(Program(program).launches)}")
        print(f"grid steps: {steps} in the loop, {total} in one launch: {'holds' if total == steps else 'MISSED'}")
    for name, ratio in ratios.items():
        print(f"{FASTER} times as fast, {name}: {ratio:.2f}: {'holds' if ratio >= FASTER else 'MISSED'}")


if __name__ == "__main__":
    main()
