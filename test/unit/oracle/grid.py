"""A launch: the kernel's body at every point of its grid, core by core where the grid says so."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from mosaic_grid.grid import Semantics
from mosaic_grid.program import Kernel
from oracle.code import Code, Compiler, Frame
from oracle.kernel_ops import RULES
from oracle.machine import Machine, OracleError
from oracle.values import Array, shape_of
from oracle.windows import Buffer, Whole, scratch_of, shape_of_window


@dataclasses.dataclass(frozen=True)
class CompiledKernel:
    """A kernel made ready to run."""

    kernel: Kernel
    functions: dict[str, Code]

    @property
    def body(self) -> Code:
        """The kernel's function, its arguments in order."""
        return self.functions[self.kernel.name]


def compile_kernel(kernel: Kernel) -> CompiledKernel:
    """Compiles a kernel's body and index maps."""
    compiler = Compiler(RULES)
    functions = {name: compiler.block(op.regions[0].blocks[0]) for name, op in kernel.functions.items()}
    return CompiledKernel(kernel, functions)


def launch(compiled: CompiledKernel, operands: Sequence[Array], outputs: Sequence[Array], machine: Machine) -> None:
    """Runs a kernel. `operands` are bounds, prefetch operands and inputs; `outputs` are written in place."""
    kernel = compiled.kernel
    given = iter(operands)
    bounds = tuple(int(next(given)) if dimension.bound is None else dimension.bound for dimension in kernel.grid)
    prefetch = [next(given).reshape(shape_of(argument.type)) for argument in kernel.prefetch]
    arrays = [*given, *outputs]
    machine.run(
        [
            _steps(compiled, bounds, points, prefetch, arrays, len(outputs), machine)
            for points in _shares(kernel, bounds, machine)
        ]
    )


def _shares(kernel: Kernel, bounds: tuple[int, ...], machine: Machine) -> list[list[tuple[int, ...]]]:
    """The grid points of each core, in its order. A bound below zero runs no step, as zero does."""
    points = list(itertools.product(*(range(bound) for bound in bounds)))
    axes = [axis for axis, dimension in enumerate(kernel.grid) if dimension.semantics is Semantics.CORE_PARALLEL]
    if machine.cores is None or not axes:
        return [points]
    if len(axes) > 1 or kernel.grid[axes[0]].bound is None or bounds[axes[0]] != machine.cores:
        raise OracleError(f"a chip of {machine.cores} cores can't run core_parallel dimensions {axes} of {kernel.grid}")
    return [[point for point in points if point[axes[0]] == core] for core in range(bounds[axes[0]])]


def _steps(
    compiled: CompiledKernel,
    bounds: tuple[int, ...],
    points: Sequence[tuple[int, ...]],
    prefetch: Sequence[Array],
    arrays: Sequence[Array],
    outputs: int,
    machine: Machine,
) -> Iterator[None]:
    """One core: its own scratch and buffers, the arrays shared with the others."""
    kernel = compiled.kernel
    windows = _windows(compiled, arrays, outputs, machine)
    scratch = [scratch_of(argument) for argument in kernel.scratch]
    memory = [*prefetch, *(window.memref for window in windows), *scratch]
    for point in points:
        indices = tuple(np.asarray(index, np.int32) for index in point)
        for window in windows:
            window.move_to((*indices, *prefetch), bounds)
        yield
        compiled.body.run(Frame({}, bounds), (*indices, *memory))
        yield
    for window in windows:
        window.flush()


def _windows(compiled: CompiledKernel, arrays: Sequence[Array], outputs: int, machine: Machine) -> list[Buffer | Whole]:
    """A core's windows of the arrays, of which the last ones are outputs."""
    found: list[Buffer | Whole] = []
    for number, (window, array) in enumerate(zip(compiled.kernel.windows, arrays, strict=True)):
        if window.transform is None:
            found.append(Whole(array, window.type))
        else:
            shape = shape_of_window(window, compiled.functions[window.transform])
            found.append(Buffer(shape, array, number >= len(arrays) - outputs, machine))
    return found
