"""How fast programs go through the passes, how that grows with their size, and how long the tool takes to start.

The baseline of the first number is jaxlib alone, in the same run: it parses the same programs and their kernels, brings
the kernels into the `tpu` dialect, and prints them all. Ours is the whole way from text to text: parse, unpack (with
locations), resolve-grid, partition-cores, pack, print.

    python benchmarks/opt_throughput.py [DIR]     DIR: dumps of your own instead of the kernels that ship with JAX
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from jaxlib.mlir import ir

import real_kernels
import shipped_kernels
from mosaic_grid import backend_config
from mosaic_grid.containers.text import parse
from mosaic_grid.context import create_context, unknown_location
from mosaic_grid.passes.partition_cores import PartitionCores
from mosaic_grid.passes.resolve_grid import ResolveGrid
from mosaic_grid.program import BACKEND_CONFIG, custom_calls
from mosaic_grid.session import Session
from mosaic_grid.unpack import deserialize, pack, unpack

ROUNDS = 3
SIZES = (250, 500, 1000, 2000)


def baseline(text: str, context: ir.Context) -> None:
    """jaxlib parses and prints the program and each of its distinct kernels."""
    program = parse(text, "program.mlir", context)
    bodies: set[bytes] = set()
    for call in custom_calls(program):
        _, payload = backend_config.split(ir.StringAttr(call.attributes[BACKEND_CONFIG]).value)
        bodies.add(payload.body)
    str(program)
    for body in bodies:
        kernel = ir.Module.parse(body)
        deserialize(kernel.operation)
        str(kernel)


def ours(text: str, context: ir.Context) -> None:
    """The program through the passes, from text to text."""
    program = parse(text, "program.mlir", context)
    session = Session()
    unpack(program)
    ResolveGrid().run(program, session)
    PartitionCores(cores=2).run(program, session)
    pack(program)
    str(program)


def seconds(work: Callable[[str, ir.Context], None], texts: list[str]) -> float:
    """The best of some rounds, each in a context of its own."""
    best = float("inf")
    for _ in range(ROUNDS):
        with create_context() as context, unknown_location():
            start = time.perf_counter()
            for text in texts:
                work(text, context)
            best = min(best, time.perf_counter() - start)
    return best


def many_launches(text: str, count: int) -> str:
    """A program that launches its one kernel `count` times, each on the result of the one before.

    `text` is a program with a single launch, of `%arg0` and `%arg1`, whose result is `%0`.
    """
    (launch,) = [line for line in text.splitlines() if "@tpu_custom_call" in line]
    chain = [launch.replace("%0 =", f"%{i} =").replace("%arg1)", f"%{i - 1})" if i else "%arg1)") for i in range(count)]
    return text.replace(launch, "\n".join(chain)).replace("return %0", f"return %{count - 1}")


def start_up() -> tuple[float, float]:
    """Seconds of `mosaic-opt --version`, and of Python importing MLIR's bindings: the least of some runs of each."""
    tool = [sys.executable, "-m", "mosaic_grid.opt", "--version"]
    bindings = [sys.executable, "-c", "import jaxlib.mlir.ir"]
    return _least(tool), _least(bindings)


def _least(command: list[str]) -> float:
    def once() -> float:
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start

    return min(once() for _ in range(7))


def main() -> None:
    """Prints the three measurements as ratios."""
    if len(sys.argv) > 1:
        texts = [path.read_text() for path in sorted(Path(sys.argv[1]).glob("*.mlir"))]
    else:
        shipped = [lower().decode() for lower in shipped_kernels.KERNELS.values()]
        texts = [*shipped, real_kernels.dynamic_gmm(), real_kernels.dynamic_flash_attention()]
    theirs, mine = seconds(baseline, texts), seconds(ours, texts)
    print(f"{len(texts)} programs: jaxlib parses and prints them in {theirs:.3f} s", end="")
    print(f", text to text through the passes takes {mine:.3f} s: {mine / theirs:.2f}x")

    copy = real_kernels.dynamic_copy()
    per_launch = {size: seconds(ours, [many_launches(copy, size)]) / size for size in SIZES}
    row = ", ".join(f"{size}: {cost * 1e6:.0f}" for size, cost in per_launch.items())
    growth = per_launch[SIZES[-1]] / per_launch[SIZES[0]]
    print(f"microseconds a launch of a program with so many launches: {row}: {growth:.2f}x from the first to the last")

    tool, bindings = start_up()
    print(f"mosaic-opt --version: {tool:.3f} s, import jaxlib.mlir.ir: {bindings:.3f} s: {tool / bindings:.2f}x")


if __name__ == "__main__":
    main()
