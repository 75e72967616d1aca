"""`lower-to-cpu` and cores: they run one after the other, or take turns in an order that a seed gives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from cpu_programs import compiled
from grid_kernels import Dim, GridKernel, Term, Window
from jaxlib.mlir import ir
from launch_text import ANY, LaunchText, window

from mosaic_grid.context import create_context, unknown_location
from mosaic_grid.cpu.arrays import Array
from mosaic_grid.cpu.options import Options
from mosaic_grid.errors import UserError

CONTEXT = create_context()
DYNAMIC = -(2**63)


def run(text: str, options: Options, *arrays: Array) -> Array:
    """The result of a program on the CPU."""
    with CONTEXT, unknown_location():
        return compiled(ir.Module.parse(text).operation, options)(*arrays)[0]


def turns(counts: tuple[int, ...], steps: int, options: Options) -> list[tuple[int, int]]:
    """The core and the step of each turn, in order, as a kernel notes them in an array that the cores share."""
    most = int(np.prod(counts)) * max(steps, 0)
    log = f"memref<{most + 1}xi32, {ANY}>"
    core = ["%core0 = arith.constant 0 : i32"]
    for axis, count in enumerate(counts):
        core += [
            f"%count{axis} = arith.constant {count} : i32",
            f"%m{axis} = arith.muli %core{axis}, %count{axis} : i32",
        ]
        core += [f"%core{axis + 1} = arith.addi %m{axis}, %i{axis} : i32"]
    axes = len(counts)
    lines = "\n".join(core)
    text = LaunchText(
        ["tensor<i32>", f"tensor<{most + 1}xi32>"],
        [f"tensor<{most + 1}xi32>"],
        [f"%x: {log}", f"%o: {log}"],
        ["", ""],
        f"""%c0 = arith.constant 0 : index
        %one = arith.constant 1 : i32
        %hundred = arith.constant 100 : i32
        {lines}
        %scaled = arith.muli %core{axes}, %hundred : i32
        %entry = arith.addi %scaled, %i{axes} : i32
        %before = memref.load %o[%c0] : {log}
        %count = arith.addi %before, %one : i32
        memref.store %count, %o[%c0] : {log}
        %at = arith.index_cast %count : i32 to index
        memref.store %entry, %o[%at] : {log}""",
        grid=[*counts, DYNAMIC],
        semantics=[*["core_parallel"] * axes, "arbitrary"],
        aliases={0: 1},
    ).text()
    found = run(text, options, np.asarray(steps, np.int32), np.zeros(most + 1, np.int32))
    return [divmod(int(entry), 100) for entry in found[1 : found[0] + 1]]


@pytest.mark.parametrize(("counts", "steps"), [((2,), 9), ((3,), 5), ((2, 3), 3), ((4,), 0), ((2,), -5), ((1,), 3)])
def test_cores_take_every_step_once(counts: tuple[int, ...], steps: int) -> None:
    """One after the other, or in an order by the seed that mixes them; each core's own steps stay in order."""
    cores = int(np.prod(counts))
    wanted = [(core, step) for core in range(cores) for step in range(steps)]
    assert turns(counts, steps, Options()) == wanted
    orders = {tuple(turns(counts, steps, Options(interleave=seed))) for seed in (0, 1, 2)}
    assert all(sorted(order) == wanted for order in orders)
    for order, core in itertools.product(orders, range(cores)):
        assert [step for one, step in order if one == core] == list(range(steps))
    assert tuple(wanted) not in orders or cores == 1 or steps <= 0
    assert len(orders) == (3 if cores > 1 and steps > 0 else 1)


def test_each_core_has_its_own_random_numbers() -> None:
    """What a core draws goes on from step to step, whatever other cores draw meanwhile; each starts from the same."""
    block = "memref<1x8x128xi32, #tpu.memory_space<vmem>>"
    text = LaunchText(
        [],
        ["tensor<6x8x128xi32>"],
        [f"%o: {block}"],
        [window("place", 1, 8, 128)],
        f"""%c0 = arith.constant 0 : index
        %bits = "tpu.prng_random_bits"() : () -> vector<1x8x128xi32>
        vector.store %bits, %o[%c0, %c0, %c0] : {block}, vector<1x8x128xi32>""",
        grid=[2, 3],
        semantics=["core_parallel", "arbitrary"],
        functions="""func.func @place(%i: i32, %j: i32) -> (i32, i32, i32) {
          %zero = arith.constant 0 : i32
          %three = arith.constant 3 : i32
          %start = arith.muli %i, %three : i32
          %place = arith.addi %start, %j : i32
          return %place, %zero, %zero : i32, i32, i32
        }""",
    ).text()
    found = run(text, Options())
    assert len(np.unique(found)) > 3000
    np.testing.assert_array_equal(found[:3], found[3:])
    for seed in (1, 2):
        np.testing.assert_array_equal(run(text, Options(interleave=seed)), found)


def test_each_core_has_its_own_barrier_semaphore() -> None:
    """What one core leaves in it another one doesn't find."""
    semaphore, cell = (
        "memref<!tpu.semaphore, #tpu.memory_space<semaphore_mem>>",
        "memref<1xi32, #tpu.memory_space<smem>>",
    )
    text = LaunchText(
        [],
        ["tensor<2xi32>"],
        [f"%o: {cell}"],
        [window("place", 1)],
        f"""%c0 = arith.constant 0 : index
        %one = arith.constant 1 : i32
        %s = tpu.sem_barrier : {semaphore}
        "tpu.sem_signal"(%s, %one) <{{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}}> : ({semaphore}, i32) -> ()
        %count = "tpu.sem_read"(%s) : ({semaphore}) -> i32
        memref.store %count, %o[%c0] : {cell}""",
        grid=[2],
        semantics=["core_parallel"],
        functions="func.func @place(%i: i32) -> i32 { return %i : i32 }",
    ).text()
    assert run(text, Options()).tolist() == [1, 1]


def test_no_cores() -> None:
    """A grid of no cores does nothing, in turns or not; a number of cores that isn't known can't take turns."""
    out = (Window((6,), (Term("index", 0),), (6,)),)
    for options in (Options(), Options(interleave=1)):
        found = run(GridKernel((Dim(0, "core_parallel"), Dim(2)), (), out).text(), options)
        assert (found == -(2**31)).all()
    unknown = GridKernel((Dim(2, "core_parallel", dynamic=True),), (), out).text()
    with pytest.raises(UserError, match="can't take turns where their number is dynamic"):
        run(unknown, Options(interleave=1), np.asarray(1, np.int32))
