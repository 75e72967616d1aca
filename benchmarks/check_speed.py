"""How long check-grid takes for a kernel, and how that compares with the time JAX needs to lower it.

Each program is lowered once, as a user's first call does, and checked some times, of which the least counts; both are
time of this process's own, so that a busy machine matters less. A kernel's share of its program's time is the time
divided by the number of kernels.

    python benchmarks/check_speed.py [DIR]     DIR: dumps to check besides, which nothing lowers
"""

from __future__ import annotations

import dataclasses
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

import shipped_kernels
from mosaic_grid.containers.text import parse
from mosaic_grid.context import create_context, unknown_location
from mosaic_grid.passes.check_grid import CheckGrid
from mosaic_grid.program import Program
from mosaic_grid.session import Session
from mosaic_grid.targets import parse_target
from mosaic_grid.unpack import unpack

ROUNDS = 5


@dataclasses.dataclass(frozen=True)
class Checked:
    """Seconds for each of the `kernels` of a program: of checking, and of lowering where it was lowered here."""

    name: str
    kernels: int
    check: float
    lower: float | None = None


def seconds(work: Callable[[], object]) -> float:
    """The processor time of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def check(name: str, text: str, lowering: float | None = None) -> Checked:
    """The least of some rounds, each in a context of its own: nothing is remembered from one to the next."""
    best, kernels = float("inf"), 1
    for _ in range(ROUNDS):
        with create_context() as context, unknown_location():
            program = parse(text, name, context)
            unpack(program)
            kernels = len(Program(program).kernels) or 1
            best = min(best, seconds(partial(CheckGrid().run, program, Session(parse_target("v5p")))))
    return Checked(name, kernels, best / kernels, None if lowering is None else lowering / kernels)


def lowered(name: str, lower: Callable[[], bytes]) -> Checked:
    """A kernel that ships with JAX."""
    texts: list[str] = []
    lowering = seconds(lambda: texts.append(lower().decode()))
    return check(name, texts[0], lowering)


def median(values: list[float]) -> str:
    """In milliseconds."""
    return f"{statistics.median(values) * 1e3:.1f} ms"


def report(title: str, programs: list[Checked]) -> None:
    """The median over kernels, and the slowest ones."""
    times = [program.check for program in programs for _ in range(program.kernels)]
    slowest = sorted(programs, key=lambda program: -program.check)[:3]
    listed = ", ".join(f"{program.name} {program.check * 1e3:.0f} ms" for program in slowest)
    print(f"{title}: {len(times)} kernels, median {median(times)} a kernel, at most {listed}")


def main() -> None:
    """Prints the medians, and the ratio to lowering."""
    # isl and what else is imported late is imported once
    check("first", shipped_kernels.KERNELS["example_double"]().decode())
    shipped = [lowered(name, lower) for name, lower in shipped_kernels.KERNELS.items()]
    report("check-grid of the kernels that ship with JAX", shipped)
    ratios = [program.check / program.lower for program in shipped if program.lower]
    lowering = median([program.lower for program in shipped if program.lower])
    share, most = statistics.median(ratios), max(ratios)
    print(f"JAX lowers one in {lowering}; checking takes {share:.1%} of that, {most:.1%} at most")
    if len(sys.argv) > 1:
        paths = sorted(Path(sys.argv[1]).glob("*.mlir"))
        report(f"check-grid of {sys.argv[1]}", [check(path.stem, path.read_text()) for path in paths])


if __name__ == "__main__":
    main()
