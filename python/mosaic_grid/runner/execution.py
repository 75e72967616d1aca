"""A program that was lowered and compiled, how long that took, and how long it runs."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any

from mosaic_grid import supervisor
from mosaic_grid.cpu.arrays import Array
from mosaic_grid.cpu.options import Options
from mosaic_grid.runner.programs import Opened
from mosaic_grid.runner.recorded import Recorded, compile_recorded, lower_recorded


@dataclasses.dataclass(frozen=True)
class Run:
    """A program ready to run. `opened` is what was lowered, its launches still in it; times are in seconds."""

    opened: Opened
    executable: Recorded
    lowering_seconds: float
    compile_seconds: float


@dataclasses.dataclass(frozen=True)
class Times:
    """Seconds of several runs on the same inputs."""

    seconds: tuple[float, ...]

    @property
    def best(self) -> float:
        """The least."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """The one in the middle."""
        return statistics.median(self.seconds)


def prepare(opened: Opened, options: Options, *, everything: bool = False) -> Run:
    """Lowers and compiles a program, with `everything` to be checked. Raises `UserError`."""
    begin = time.perf_counter()
    lowered = lower_recorded(opened, options, everything=everything)
    between = time.perf_counter()
    with uninterrupted():
        executable = compile_recorded(lowered)
    return Run(opened, executable, between - begin, time.perf_counter() - between)


def execute(run: Run, inputs: Sequence[Array]) -> list[Array]:
    """Runs it once. Raises `KernelError` where a kernel waits in vain."""
    with uninterrupted():
        return run.executable(*inputs)


def measure(run: Run, inputs: Sequence[Array], count: int) -> Times:
    """Runs it `count` times, after it has run once."""
    seconds = []
    for _ in range(count):
        begin = time.perf_counter()
        execute(run, inputs)
        seconds.append(time.perf_counter() - begin)
    return Times(tuple(seconds))


def time_facts(run: Run, times: Times) -> dict[str, Any]:
    """Seconds, for scripts."""
    return {
        "lowering": run.lowering_seconds,
        "compile": run.compile_seconds,
        "runs": len(times.seconds),
        "best": times.best,
        "median": times.median,
    }


def time_told(run: Run, times: Times) -> str:
    """The same in two lines for people."""
    parts = f"lowering {_shown(run.lowering_seconds)}, XLA {_shown(run.compile_seconds)}"
    count = len(times.seconds)
    runs = f"{count} run{'s' if count > 1 else ''}"
    return (
        f"compile: {_shown(run.lowering_seconds + run.compile_seconds)} ({parts})\n"
        f"run: best {_shown(times.best)}, median {_shown(times.median)} of {runs}\n"
    )


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Around work in C++ that never looks at Python's signals: an interrupt of a supervised tool ends it at once.

    One that ignores interrupts goes on ignoring them.
    """
    if not supervisor.active() or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _shown(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"
