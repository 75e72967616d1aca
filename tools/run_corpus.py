"""Runs every dump of a directory on the CPU: `run_corpus.py DIR|FILE... [--timeout 300] [--memory 16] [--seed 0]`.

Each program is lowered to the CPU, compiled and run once on random inputs, in a process of its own with limits of time
(seconds) and memory (GiB). A line for each says whether it ran, what is in the way where it didn't, the seconds of each
part, and which results have NaN in them; then `N passed, N failed`. Exits with 1 if anything failed. That a kernel runs
says nothing of its numbers: `references.py` compares those.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import ml_dtypes
import numpy as np
from jaxlib.mlir import ir

from mosaic_grid.context import create_context
from mosaic_grid.cpu.arrays import Array, TensorSpec
from mosaic_grid.cpu.convert import UnsupportedKernelError, lower_to_cpu
from mosaic_grid.cpu.execute import compile_program
from mosaic_grid.cpu.options import Options
from mosaic_grid.dump import read_dump
from mosaic_grid.errors import UserError
from mosaic_grid.unpack import unpack

_Result = TypeVar("_Result")
_MANY = 1 << 16
"""Integers of this many elements or more are data in disguise, and not sizes, lengths or indices."""


@dataclasses.dataclass
class Run:
    """How it went with one program; `problem` is empty if it ran. Times are seconds, 0 for what wasn't reached."""

    name: str
    problem: str = ""
    lower: float = 0.0
    compile: float = 0.0
    run: float = 0.0
    nan: str = ""

    def __str__(self) -> str:
        status = "ok" if not self.problem else "FAILED"
        times = f"{self.lower:7.1f} {self.compile:7.1f} {self.run:7.2f}"
        return f"{self.name:48} {status:7}{times}  {self.problem or self.nan}".rstrip()


def random_input(spec: TensorSpec, rng: np.random.Generator) -> Array:
    """An array that a kernel can likely work with.

    Floats are a tenth of normally distributed ones, so that little overflows; narrow and unsigned integers take every
    value. Wider integers say how much or where: one number is from 1 to 4, a list never falls from its 0 on (which
    sizes, lengths, ends and ids may all do), and tables have indices below 8; unless there are so many that they must
    be data.
    """
    shape, dtype = spec.shape, spec.dtype
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if not dtype.name.removeprefix("u").startswith("int"):
        return (rng.standard_normal(shape, np.float32) / 10).astype(dtype)
    if dtype.itemsize == 1 or dtype.kind == "u" or math.prod(shape) >= _MANY:
        limits = ml_dtypes.iinfo(dtype)
        return rng.integers(int(limits.min), int(limits.max), shape, np.int64, endpoint=True).astype(dtype)
    if len(shape) == 1 and shape[0] > 1:
        numbers = np.sort(rng.integers(0, 17, shape))
        numbers[0] = 0
        return numbers.astype(dtype)
    return np.asarray(rng.integers(*((0, 8) if len(shape) > 1 else (1, 5)), shape)).astype(dtype)


def run_dump(path: Path, seed: int) -> Run:
    """Runs one dump in this process."""
    result = Run(path.stem)
    timed = _Timer(result)
    try:
        with create_context() as context, ir.Location.unknown():
            module = read_dump(path.read_bytes(), path.name, context).module
            unpack(module)
            timed("lower", lambda: lower_to_cpu(module, Options()))
            program = timed("compile", lambda: compile_program(module))
        rng = np.random.default_rng(seed)
        inputs = [random_input(spec, rng) for spec in program.arguments]
        outputs = timed("run", lambda: program(*inputs))
        result.nan = ", ".join(_nan_share(k, array) for k, array in enumerate(outputs) if _has_nan(array))
    except UnsupportedKernelError as error:
        found = dict.fromkeys(f"{each.op} ({each.reason})" if each.reason else each.op for each in error.unsupported)
        result.problem = f"unsupported: {', '.join(found)}"
    except UserError as error:
        result.problem = " ".join(str(error).split())[:300]
    return result


@dataclasses.dataclass
class _Timer:
    result: Run

    def __call__(self, field: str, work: Callable[[], _Result]) -> _Result:
        start = time.perf_counter()
        try:
            return work()
        finally:
            setattr(self.result, field, time.perf_counter() - start)


def _has_nan(array: Array) -> bool:
    return array.dtype.kind not in "iub" and bool(np.isnan(array.astype(np.float32)).any())


def _nan_share(number: int, array: Array) -> str:
    return f"NaN: {100 * np.isnan(array.astype(np.float32)).mean():.3g} % of result {number}"


def run_apart(path: Path, *, timeout: float, memory: int, seed: int) -> Run:
    """Runs one dump in a child process that must not take more than `timeout` seconds and `memory` GiB."""
    command = [sys.executable, __file__, str(path), "--here", f"--seed={seed}", f"--memory={memory}"]
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return Run(path.stem, f"not done after {timeout:.0f} s")
    lines = child.stdout.splitlines()
    if child.returncode == 0 and lines:
        return Run(**json.loads(lines[-1]))
    return Run(path.stem, f"died with {child.returncode}: {''.join(child.stderr.splitlines()[-1:])[:300]}")


def _dumps(paths: Sequence[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        yield from sorted(path.glob("*.mlir*"), key=lambda each: each.stat().st_size) if path.is_dir() else [path]


def main(arguments: Sequence[str]) -> int:
    """Runs everything; the smallest programs first."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="+", help="dumps, and directories of dumps")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for each program")
    parser.add_argument("--memory", type=int, default=16, help="GiB for each program")
    parser.add_argument("--seed", type=int, default=0, help="of the random inputs")
    parser.add_argument("--here", action="store_true", help="run the one dump in this process, and print JSON")
    options: Any = parser.parse_args(arguments)
    if options.here:
        resource.setrlimit(resource.RLIMIT_AS, (options.memory << 30,) * 2)
        print(json.dumps(dataclasses.asdict(run_dump(Path(options.paths[0]), options.seed))))
        return 0
    print(f"{'program':48} {'':7}{'lower':>7} {'compile':>7} {'run':>7}", flush=True)
    failed = passed = 0
    for path in _dumps(options.paths):
        result = run_apart(path, timeout=options.timeout, memory=options.memory, seed=options.seed)
        failed, passed = failed + bool(result.problem), passed + (not result.problem)
        print(result, flush=True)
    print(f"{passed} passed, {failed} failed")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
