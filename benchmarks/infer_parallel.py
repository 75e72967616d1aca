"""What `infer-parallel` gains: for each dump the kernels of one core that get two, by libtpu's own word for v5p.

    python benchmarks/infer_parallel.py DIR|FILE... [--seconds 120]

A row for each kernel that libtpu runs on one core before: its grid, the dimensions that are marked, the cores and
bundles before and after `infer-parallel,partition-cores`, and whether results are the same on the CPU, for each marked
dimension with two cores that take turns at random. Of a kernel in which nothing is marked the row has the first reason.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from jaxlib.mlir import ir

from mosaic_grid.context import create_context
from mosaic_grid.cpu.convert import lower_to_cpu
from mosaic_grid.cpu.execute import compile_program as compile_for_cpu
from mosaic_grid.cpu.options import Options
from mosaic_grid.dataflow.outer import OuterScalars
from mosaic_grid.dump import read_dump
from mosaic_grid.grid import Dimension, Semantics
from mosaic_grid.infer.plan import Plan, make_plan
from mosaic_grid.infer.remarks import reasons
from mosaic_grid.kernel_edit import set_grid
from mosaic_grid.legality.launches import launches_of
from mosaic_grid.libtpu import compile_program
from mosaic_grid.libtpu_report import LaunchReport
from mosaic_grid.passes.infer_parallel import InferParallel
from mosaic_grid.passes.partition_cores import PartitionCores
from mosaic_grid.program import Program
from mosaic_grid.session import Session
from mosaic_grid.summary import summarize
from mosaic_grid.targets import parse_target
from mosaic_grid.unpack import pack, unpack
from mosaic_grid.write import write_bytecode
from run_corpus import random_input

TARGET = parse_target("v5p")


def plans_of(module: ir.Operation) -> list[Plan]:
    """The plan of each kernel that runs on one core as it is."""
    program, scalars = Program(module), OuterScalars(module)
    launches = summarize(program, TARGET).launches
    single = {launch.symbol for launch in launches if launch.cores and launch.cores.used == 1}
    plans = []
    for symbol in sorted(single):
        kernel = program.kernels[symbol]
        plans.append(make_plan(kernel, launches_of(program, kernel), scalars))
    return plans


def compiled(module: ir.Operation) -> list[LaunchReport]:
    """What libtpu makes of the launches of an unpacked program, which stays as it is."""
    copy = module.clone().operation
    pack(copy)
    (report,) = compile_program(write_bytecode(copy), [TARGET])
    return list(report.launches)


def shared(module: ir.Operation) -> ir.Operation:
    """The program after the two passes."""
    copy = module.clone().operation
    session = Session(TARGET)
    InferParallel().run(copy, session)
    PartitionCores().run(copy, session)
    return copy


def split(module: ir.Operation, plan: Plan, axis: int) -> ir.Operation:
    """The program with one marked dimension on two cores, whichever dimension libtpu would take."""
    copy = module.clone().operation
    kernel = Program(copy).kernels[plan.kernel.symbol]
    grid = [Dimension(d.bound, Semantics.CORE_PARALLEL) if k == axis else d for k, d in enumerate(plan.grid)]
    set_grid(kernel.body, grid)
    PartitionCores(cores=2).run(copy, Session(TARGET))
    return copy


def run(module: ir.Operation, options: Options, seed: int) -> list[Any]:
    """The results of a program on random inputs."""
    copy = module.clone().operation
    lower_to_cpu(copy, options)
    program = compile_for_cpu(copy)
    rng = np.random.default_rng(seed)
    return list(program(*[random_input(spec, rng) for spec in program.arguments]))


def equal(module: ir.Operation, plan: Plan, seed: int) -> str:
    """Whether the results are the same with each marked dimension shared."""
    axes = [axis for axis in plan.axes if plan.kernel.grid[axis].bound not in (0, 1)]
    expected = run(module, Options(), seed)
    for axis in axes:
        found = run(split(module, plan, axis), Options(interleave=seed), seed)
        for one, other in zip(found, expected, strict=True):
            if one.tobytes() != other.tobytes():
                return f"DIFFERENT along {axis}"
    return f"equal ({', '.join(map(str, axes))})"


def of_launches(reports: Sequence[LaunchReport], numbers: Collection[int]) -> str:
    """Cores and bundles of some launches, by their numbers in the program, each once."""
    told = [f"{each.cores_used} ({each.bundles})" for each in reports if each.launch in numbers]
    return ", ".join(dict.fromkeys(told)) or "-"


def numbers_of(module: ir.Operation, name: str) -> list[int]:
    """The launches of the kernels that were made of the one with this symbol."""
    launches = Program(module).launches
    made = f"{name}_cores"
    symbols = [launch.kernel.symbol for launch in launches]
    return [k for k, symbol in enumerate(symbols) if symbol == name or symbol.startswith(made)]


def rows(path: Path) -> Iterator[str]:
    """The rows of one dump."""
    with create_context() as context, ir.Location.unknown():
        module = read_dump(path.read_bytes(), path.name, context).module
        unpack(module)
        plans = plans_of(module)
        before: list[LaunchReport] = []
        after: list[LaunchReport] = []
        result = shared(module)
        for plan in plans:
            kernel = plan.kernel
            grid = ", ".join(f"{d} {d.semantics.value[:3]}" for d in kernel.grid)
            head = f"{path.stem} | {kernel.name} | {grid}"
            if not plan.axes:
                told = next((text for refusal in plan.refusals for text, _ in reasons(kernel.grid, refusal)), plan.left)
                yield f"{head} | none | - | - | {told}"
                continue
            start = time.perf_counter()
            before = before or compiled(module)
            after = after or compiled(result)
            same = equal(module, plan, seed=1)
            marks = ", ".join(map(str, plan.axes))
            pairs = ((before, module), (after, result))
            cores = " | ".join(of_launches(each, numbers_of(program, kernel.symbol)) for each, program in pairs)
            yield f"{head} | {marks} | {cores} | {same} | {time.perf_counter() - start:.0f} s"


def main() -> int:
    """Prints the table, the smallest dumps first; 1 if results differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path, help="dumps, and directories of dumps")
    paths = [each for path in parser.parse_args().paths for each in (path.glob("*.mlir") if path.is_dir() else [path])]
    print("program | kernel | grid | marked | before: cores (bundles) | after | results")
    different = False
    for path in sorted(paths, key=lambda each: each.stat().st_size):
        for row in rows(path):
            different = different or "DIFFERENT" in row
            print(row, flush=True)
    return int(different)


if __name__ == "__main__":
    sys.exit(main())
