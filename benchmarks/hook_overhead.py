"""What the hook costs: the time JAX takes to trace and lower its own TPU kernels, with the flag on against off.

A row gives the milliseconds with the flag `off`, and the others as ratios to that: never set, measured before anything
else; `check` and `on`, in turns with `off`. They are medians of the processor time of this process, and nothing is
remembered between two turns. The program is made for a v5p. `hook_overhead.py [ROUNDS]`; 5 if it isn't said.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

import jax
from jax._src.mesh import AbstractDevice  # there is no public way to name a chip
from jax.sharding import AbstractMesh, AxisType, use_abstract_mesh

import mosaic_grid_startup
import shipped_kernels

CHIP = AbstractMesh((1,), ("d",), axis_types=(AxisType.Auto,), abstract_device=AbstractDevice("TPU v5", 2, "tpu"))
PACKAGE = Path(mosaic_grid_startup.__file__).parent
MODES = ("off", "check", "on")
SKIPPED = ("all_gather",)
"""It is lowered for devices of its own."""


def lower(function: Callable[..., Any], *arguments: Any) -> bytes:
    """Traces and lowers, and takes the time; no text is made."""
    with use_abstract_mesh(CHIP):
        start = time.process_time()  # of this process alone: what else the machine does doesn't count
        jax.jit(function).trace(*arguments).lower(lowering_platforms=("tpu",))
        _times.append(time.process_time() - start)
    return b""


_times: list[float] = []


def seconds(name: str) -> float:
    """How long one lowering takes."""
    jax.clear_caches()
    if "mosaic_grid.jax_hook.passes" in sys.modules:
        sys.modules["mosaic_grid.jax_hook.passes"].forget()
    _times.clear()
    shipped_kernels.KERNELS[name]()
    return sum(_times)


def main(rounds: int = 5) -> None:
    """Prints a row per kernel, and the medians."""
    warnings.simplefilter("ignore")
    vars(shipped_kernels).update(lower=lower, lower_for=lambda _, __, function, *rest: lower(function, *rest))
    names = [name for name in shipped_kernels.KERNELS if name not in SKIPPED]
    for name in names:
        seconds(name)  # what a process does once
    unset = {name: statistics.median(seconds(name) for _ in range(rounds)) for name in names}
    jax.config.update("jax_mosaic_grid", "on")
    for name in names:
        seconds(name)
    ratios: dict[str, list[float]] = {"unset": [], "check": [], "on": []}
    print(f"{'kernel':28}{'off, ms':>10}" + "".join(f"{column:>8}" for column in ratios))
    for name in names:
        turns: dict[str, list[float]] = {mode: [] for mode in MODES}
        for _ in range(rounds):
            for mode in MODES:
                jax.config.update("jax_mosaic_grid", mode)
                turns[mode].append(seconds(name))
        found = {mode: statistics.median(times) for mode, times in turns.items()} | {"unset": unset[name]}
        for column, listed in ratios.items():
            listed.append(found[column] / found["off"])
        print(
            f"{name:28}{found['off'] * 1e3:10.1f}" + "".join(f"{row[-1]:8.2f}" for row in ratios.values()), flush=True
        )
    print(f"{'median':38}" + "".join(f"{statistics.median(column):8.2f}" for column in ratios.values()))
    print(f"start of Python: {_start(False):.1f} ms, with the hook waiting {_start(True):.1f} ms")


def _start(waiting: bool, rounds: int = 30) -> float:
    """Milliseconds that a Python takes that does nothing, with our start-up module or without."""
    code = "import mosaic_grid_startup" if waiting else ""
    command = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(PACKAGE)!r}); {code}"]
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run(command, check=True)
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
