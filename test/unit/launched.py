"""Which kernel a program launches, and with which numbers, for given arguments. No step of its grid is run."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.arrays import Array
from mosaic_grid.cpu.execute import Executable, compile_program
from mosaic_grid.grid import Semantics
from mosaic_grid.ir_types import Value
from mosaic_grid.program import Kernel, Launch, Program


@dataclasses.dataclass(frozen=True)
class Launched:
    """A launch: its kernel, the bounds of all dimensions, and the prefetch operands."""

    kernel: Kernel
    bounds: tuple[int, ...]
    tables: tuple[Array, ...]

    @property
    def cores(self) -> int:
        """How many cores it runs on."""
        pairs = zip(self.kernel.grid, self.bounds, strict=True)
        return int(np.prod([n for dimension, n in pairs if dimension.semantics is Semantics.CORE_PARALLEL]))


class Launches:
    """A program of which only the outer function is run: a launch does nothing but tell its operands.

    The program's first result has to be that of the one launch that is carried out, of 32-bit elements, at least as
    many as there are bounds, numbers in prefetch operands, and one.
    """

    def __init__(self, program: ir.Operation) -> None:
        self._program = program  # keeps the kernels alive
        self.kernels = [launch.kernel for launch in Program(program).launches]
        copy = program.clone().operation
        view = Program(copy)
        for number, launch in enumerate(view.launches):
            _tell(launch, number)
        for kernel in view.kernels.values():
            kernel.module.erase()
        self._executable: Executable = compile_program(copy)

    def __call__(self, *arguments: Array) -> Launched:
        """The launch that these arguments lead to."""
        number, *told = (int(n) for n in self._executable(*arguments)[0].reshape(-1).view(np.int32))
        kernel = self.kernels[number]
        numbers = iter(told)
        bounds = tuple(next(numbers) if d.bound is None else d.bound for d in kernel.grid)
        shapes = [tuple(ir.MemRefType(argument.type).shape) for argument in kernel.prefetch]
        tables = [np.array([next(numbers) for _ in range(int(np.prod(s)))], np.int32).reshape(s) for s in shapes]
        return Launched(kernel, bounds, tuple(tables))


def _tell(launch: Launch, number: int) -> None:
    """Replaces a launch by its number and its operands, as much of its result as they fill."""
    op, kernel = launch.op, launch.kernel
    told = list(op.operands)[: len(kernel.dynamic_dimensions) + kernel.prefetch_count]
    with op.location, ir.InsertionPoint(op):
        flat: list[Value] = [build.i32(number), *told]
        values = [build.reshape(value, [int(np.prod(build.shape_of(value)))]) for value in flat]
        joined = hlo.concatenate(values, ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0))
        (kind,) = [ir.RankedTensorType(result.type) for result in op.results]
        room = int(np.prod(kind.shape)) - build.shape_of(joined)[0]
        assert room >= 0, "there is no room for all operands"
        padded = build.pad(joined, [0], [room], build.i32(0))
        result = build.bitcast(build.reshape(padded, kind.shape), kind.element_type)
    op.results[0].replace_all_uses_with(result)
    op.erase()
