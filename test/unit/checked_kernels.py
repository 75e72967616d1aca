"""Runs Pallas kernels that are watched: what the tests of the sanitizer share."""

from __future__ import annotations

import dataclasses
import linecache
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.mesh import AbstractDevice  # there is no public way to say it
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from mosaic_grid.context import create_context, unknown_location
from mosaic_grid.cpu.arrays import Array
from mosaic_grid.cpu.options import Options
from mosaic_grid.diagnostics import Diagnostic
from mosaic_grid.runner.check import Checked, check
from mosaic_grid.runner.programs import Source, open_source
from mosaic_grid.runner.recorded import compile_recorded, lower_recorded

F32, I32 = jnp.float32, jnp.int32
_V5P = jax.sharding.AbstractMesh((1,), ("d",), abstract_device=AbstractDevice("TPU v5", 2, "tpu"))
BLOCK = (8, 128)
"""The shape of every block, unless a test has its own."""


@dataclasses.dataclass(frozen=True)
class Said:
    """A diagnostic: its name, its severity, its message, and the line of source that it points to."""

    name: str
    severity: str
    message: str
    source: str
    notes: tuple[str, ...] = ()


def lowered(function: Callable[..., Any], *arrays: Any) -> str:
    """A function lowered for TPU, as text with locations."""
    shapes = [jax.ShapeDtypeStruct(np.shape(array), jnp.asarray(array).dtype) for array in arrays]
    with jax.sharding.use_abstract_mesh(_V5P):
        module = jax.jit(function, keep_unused=True).trace(*shapes).lower(lowering_platforms=("tpu",))
    return str(module.as_text(debug_info=True))


def run_checked(text: str, *arrays: Any, options: Options | None = None) -> Checked:
    """Runs a program whose kernels are watched."""
    with create_context() as context, unknown_location():
        opened = open_source(Source("program.mlir", text.encode()), context)
        program = compile_recorded(lower_recorded(opened, options or Options(), everything=True))
        return check(program, [np.asarray(array) for array in arrays])


def findings(function: Callable[..., Any], *arrays: Any, options: Options | None = None) -> list[Said]:
    """What is said of a function's kernels, run on these arrays."""
    return [said(each) for each in run_checked(lowered(function, *arrays), *arrays, options=options).diagnostics]


def said(diagnostic: Diagnostic) -> Said:
    """A diagnostic in the form of the tests."""
    place = diagnostic.place
    source = linecache.getline(place.file, place.line).strip() if place else ""
    notes = tuple(note.message for note in diagnostic.notes)
    return Said(diagnostic.name, diagnostic.severity.value, diagnostic.message, source, notes)


def call(
    kernel: Callable[..., None],
    out: tuple[int, ...],
    grid: tuple[Any, ...] = (),
    *,
    maps: tuple[Any, ...] = (),
    block: tuple[int, ...] = BLOCK,
    semantics: tuple[Any, ...] = (),
    scratch: tuple[Any, ...] = (),
    aliases: dict[int, int] | None = None,
    dtype: Any = F32,
) -> Callable[..., Any]:
    """A `pallas_call` of one result, whose windows are blocks at `maps`; the last of these is the result's.

    Where a map is `None`, the kernel gets the array in HBM.
    """
    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    specs = [anywhere if each is None else pl.BlockSpec(block, each) for each in maps]
    return pl.pallas_call(
        kernel,
        grid=grid,
        in_specs=specs[:-1],
        out_specs=specs[-1],
        out_shape=jax.ShapeDtypeStruct(out, dtype),
        scratch_shapes=scratch,
        input_output_aliases=aliases or {},
        compiler_params=pltpu.CompilerParams(dimension_semantics=semantics or None),
        name="kernel",
    )


def rows(count: int, columns: int = 128) -> Array:
    """Different numbers in every place."""
    return np.arange(count * columns, dtype=np.float32).reshape(count, columns)
