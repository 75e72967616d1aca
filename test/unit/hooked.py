"""What tests of the JAX hook share: the options, and Pythons that start as one does where the package is installed."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
from jax._src.mesh import AbstractDevice

import mosaic_grid_startup
from mosaic_grid.context import create_context, unknown_location
from mosaic_grid.dump import read_dump
from mosaic_grid.grid import Dimension, Semantics
from mosaic_grid.jax_hook import options  # a start of Python makes them where the package is installed
from mosaic_grid.program import Program
from mosaic_grid.unpack import unpack

SITE = Path(mosaic_grid_startup.__file__).parent
"""Where the start-up file is, as in a site-packages."""


@contextlib.contextmanager
def hooked(grid: str = "off", cpu: str = "", report: str = "", contracts: str = "") -> Iterator[None]:
    """The options as given."""
    with options.grid(grid), options.cpu(cpu), options.report(report), options.contracts(contracts):
        yield


def quietly(function: Any, *arguments: Any) -> Any:
    """The function's result; what the checks find is not what the test is about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments)


def lowered(function: Any, *arguments: Any, device: str = "TPU v5", cores: int = 2, debug: bool = False) -> str:
    """StableHLO text for a TPU that isn't there, made anew, with locations if they are asked for."""

    @functools.wraps(function)
    def fresh(*arguments: Any) -> Any:
        return function(*arguments)

    axes = (jax.sharding.AxisType.Auto,)
    mesh = jax.sharding.AbstractMesh(
        (1,), ("d",), axis_types=axes, abstract_device=AbstractDevice(device, cores, "tpu")
    )
    with jax.sharding.use_abstract_mesh(mesh):
        program = jax.jit(fresh).trace(*arguments).lower(lowering_platforms=("tpu",))
        return str(program.as_text(debug_info=debug))


def grids(text: str) -> list[str]:
    """The bounds of each launch of a lowered program, a core_parallel one with a star."""
    with create_context() as context, unknown_location():
        module = read_dump(text.encode(), "program", context).module
        unpack(module)
        return [" ".join(map(_dimension, launch.kernel.grid)) for launch in Program(module).launches]


def _dimension(dimension: Dimension) -> str:
    return f"{dimension}{'*' * (dimension.semantics is Semantics.CORE_PARALLEL)}"


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A fresh Python that has read our start-up file from a site directory, and runs `code`."""
    start = f"import site; site.addsitedir({str(SITE)!r})\n"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JAX_MOSAIC")}
    return subprocess.run(
        [sys.executable, "-c", start + code],
        env={**kept, "JAX_PLATFORMS": "cpu", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def output(code: str, **environment: str) -> str:
    """What such a Python prints; it must end well."""
    done = python(code, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
