"""One launch as a function: its operands become roots, its cores run, and the arrays it wrote are returned."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property

from jaxlib.mlir import ir

from mosaic_grid.cpu import build
from mosaic_grid.cpu.buffers import Buffer, buffer_for
from mosaic_grid.cpu.cores import run_cores
from mosaic_grid.cpu.fits import check_fit
from mosaic_grid.cpu.grid import Core
from mosaic_grid.cpu.late import Late
from mosaic_grid.cpu.lockstep import meet
from mosaic_grid.cpu.lowering import Lowering, UnsupportedError
from mosaic_grid.cpu.operands import Array, aliases_of, array_for, placed
from mosaic_grid.cpu.outer import is_blank
from mosaic_grid.cpu.overwritten import is_overwritten
from mosaic_grid.cpu.programs import meetings
from mosaic_grid.cpu.roots import Kind, Root
from mosaic_grid.cpu.rules import mxu, random, semaphore
from mosaic_grid.cpu.types import is_semaphore, lowered_element
from mosaic_grid.cpu.views import View
from mosaic_grid.cpu.windows import Operand, block_of_window
from mosaic_grid.cpu.writes import written_arguments
from mosaic_grid.errors import UserError
from mosaic_grid.grid import Dimension, Semantics
from mosaic_grid.ir_types import Value
from mosaic_grid.program import Kernel, Launch

_CORES = (Semantics.CORE_PARALLEL, Semantics.SUBCORE_PARALLEL)


@dataclasses.dataclass(frozen=True)
class Assignment:
    """Which array each window of a kernel is one of."""

    arrays: tuple[Array, ...]
    prefetch: tuple[Array, ...]
    operands: tuple[Operand, ...]
    results: tuple[Array, ...]


@dataclasses.dataclass(frozen=True)
class LaunchBody:
    """The body of the function that a launch becomes.

    `kernel` may be a copy of the launch's own. `others` are its further programs, if it has several.
    """

    launch: Launch
    kernel: Kernel
    low: Lowering
    others: tuple[Kernel, ...] = ()

    @cached_property
    def assignment(self) -> Assignment:
        """Raises `ProgramError` where operands, results and the kernel's arguments don't fit together."""
        kernel, op = self.kernel, self.launch.op
        check_fit(self.launch, kernel)
        dynamic, prefetch = len(kernel.dynamic_dimensions), kernel.prefetch_count
        inputs = range(dynamic + prefetch, len(op.operands))
        windows = kernel.windows
        aliases, given = aliases_of(op), len(op.operands)
        # what each window's array is: the operand of this number, or a result behind all of them
        keys = [*inputs, *(aliases.get(k, given + k) for k in range(len(op.results)))]
        types = [value.type for value in (*list(op.operands)[inputs.start :], *op.results)]
        stays = self._placed(keys)
        blocks = [
            block_of_window(kernel, window, kind.shape, placed=each)
            for window, kind, each in zip(windows, types, stays, strict=True)
        ]
        arrays: dict[int, Array] = {}
        for key, window, kind in zip(keys, windows, types, strict=True):
            if key not in arrays:
                members = [block for other, block in zip(keys, blocks, strict=True) if other == key]
                last = windows[len(keys) - 1 - keys[::-1].index(key)]  # an output, if there is one
                name = f"input {key - inputs.start}" if key in inputs else f"output {keys.index(key) - len(inputs)}"
                source = key if key < given else None
                element, location = window.type.element_type, last.argument.location
                arrays[key] = array_for(name, kind, members, source, element, location)
        operands = tuple(
            Operand(window.argument, arrays[key].root, arrays[key].origin(block), block, number >= len(inputs))
            for number, (window, key, block) in enumerate(zip(windows, keys, blocks, strict=True))
        )
        scalars = tuple(
            array_for(
                f"prefetch operand {k}", op.operands[dynamic + k].type, (), dynamic + k, argument.type.element_type
            )
            for k, argument in enumerate(kernel.prefetch)
        )
        results = tuple(arrays[key] for key in keys[len(inputs) :])
        return Assignment(tuple(arrays.values()), scalars, operands, results)

    def _placed(self, keys: Sequence[int]) -> list[bool]:
        """Of each window, whether the program has placed its array in the memory that the kernel wants it in."""
        operands, results = placed(self.launch)
        first = len(keys) - len(self.launch.op.results)
        return [key in operands or number - first in results for number, key in enumerate(keys)]

    def build(self, operands: Sequence[Value]) -> list[Value]:
        """The function's results, from its arguments."""
        low, kernel, assignment = self.low, self.kernel, self.assignment
        self._refuse_meetings()
        self._start_grid(kernel, operands)
        low.memory.rewritten = set()
        for array in (*assignment.arrays, *assignment.prefetch):
            array.bring_in(low.memory, operands, low.options)
        for each in (kernel, *self.others):
            if low.prints is not None:
                low.prints.start(low, each.body)
        core = self._core(kernel)
        if low.options.dma == "late":
            low.late = Late(kernel.body)
            for argument in kernel.arguments[len(kernel.grid) :]:
                low.late.prepare(low.memory, argument, low.view(argument).root)
        if low.watch is not None:
            low.watch.prepare(assignment.arrays, self._blank, core, kernel.arguments[len(kernel.grid) :])
        run_cores(core)
        self._run_others(operands)
        if low.watch is not None:
            low.watch.results(assignment.results)
        types = [build.element_of(result) for result in self.launch.op.results]
        return [array.take_out(low.memory, kind) for array, kind in zip(assignment.results, types, strict=True)]

    def _registers(self, kernel: Kernel) -> dict[Root, Value]:
        """What operations of a core keep beside memory, with what that is at first."""
        state = self.low.memory.state
        for root in [root for root in state if root.kind is Kind.REGISTER]:
            del state[root]  # those of another program
        random.start(self.low, kernel.body)
        mxu.start(self.low, kernel.body)
        semaphore.start(self.low, kernel.body)
        return {root: value for root, value in state.items() if root.kind is Kind.REGISTER}

    def _start_grid(self, kernel: Kernel, operands: Sequence[Value]) -> None:
        """Makes the grid's bounds those of a program."""
        given_bounds = operands[: len(kernel.dynamic_dimensions)]
        bounds = [build.reshape(build.convert(operand, build.i32_type()), ()) for operand in given_bounds]
        given = dict(zip(kernel.dynamic_dimensions, bounds, strict=True))
        self.low.bounds = [given[axis] if d.bound is None else d.bound for axis, d in enumerate(kernel.grid)]

    def _run_others(self, operands: Sequence[Value]) -> None:
        """The further programs, on the same arrays. Nobody looks for faults in them: their grids are others."""
        low = self.low
        faults, low.faults = low.faults, None
        for other in self.others:
            self._start_grid(other, operands)
            run_cores(self._core(other))
        low.faults = faults

    def _refuse_meetings(self) -> None:
        """Raises `UnsupportedError` or `UserError` for programs that can't run one after the other."""
        low = self.low
        if not self.others:
            return
        if found := meetings((self.kernel, *self.others)):
            low.unsupported.extend(found)
            raise UnsupportedError("programs that signal each other")
        if low.watch is not None or low.late is not None or low.options.dma == "late":
            raise UserError(f"'{self.kernel.name}' has several programs: it can only be run as it is, unchecked")

    @property
    def _blank(self) -> list[Array]:
        """The arrays that nobody has written before the launch."""
        operands = self.launch.op.operands
        return [a for a in self.assignment.arrays if a.operand is None or is_blank(operands[a.operand])]

    def _core(self, kernel: Kernel) -> Core:
        low, assignment = self.low, self.assignment
        assigned = [
            dataclasses.replace(operand, argument=window.argument)
            for operand, window in zip(assignment.operands, kernel.windows, strict=True)
        ]
        block = kernel.body.regions[0].blocks[0]
        cores: tuple[Semantics, ...] = _CORES
        if meet(block) and all(d.semantics in (*_CORES, Semantics.PARALLEL) for d in kernel.grid):
            cores = (*_CORES, Semantics.PARALLEL)  # a mesh of cores is lowered to one, with a step for each core
        axes = tuple(axis for axis, d in enumerate(kernel.grid) if d.semantics not in cores)
        written = written_arguments(kernel.body)
        fastest = _fastest(kernel.grid, axes)
        changed = {o.array for o in assigned if o.is_output or (o.block is None and o.argument in written)}
        views: list[View] = [View(array.root) for array in assignment.prefetch]
        prefetch = tuple(views)
        buffers: list[Buffer] = []
        for operand, window in zip(assigned, kernel.windows, strict=True):
            if operand.block is None:
                whole = View(operand.array)
                within = tuple(window.type.shape) != whole.shape
                views.append(whole.slice(operand.origin, window.type.shape) if within else whole)
                continue
            writers = [other for other in assigned if other.array is operand.array and other is not operand]
            shared = bool(writers) if operand.is_output else operand.array in changed or operand.argument in written
            buffer = buffer_for(
                operand,
                tuple(window.type.shape),
                fastest,
                shared=shared,
                restores=window.restores,
                fresh=operand.is_output and is_overwritten(block, operand.argument),
            )
            buffers.append(buffer)
            views.append(View(buffer.root))
        scratch = tuple(_scratch_root(number, argument) for number, argument in enumerate(kernel.scratch))
        views.extend(View(root) for root in scratch)
        for argument, view in zip(list(block.arguments)[len(kernel.grid) :], views, strict=True):
            low.define(argument, view)
            if argument in written:
                low.memory.rewritten.add(view.root)
        low.memory.rewritten.update(changed)
        counters = tuple(Root(f"grid index {axis}", (), build.i32_type(), Kind.GRID) for axis in axes)
        tables = {
            array.root: low.memory.state[array.root]
            for array, argument in zip(assignment.prefetch, kernel.prefetch, strict=True)
            if argument in written
        }
        tables |= self._registers(kernel)
        return Core(low, block, axes, counters, tuple(views), prefetch, tuple(buffers), scratch, tables)


def _fastest(grid: Sequence[Dimension], axes: Sequence[int]) -> tuple[int, ...]:
    """The dimensions one of which changes at every step, the innermost last.

    That is the innermost one alone where it has two steps or more; one whose bound may be 1 changes nothing.
    """
    moving = [axis for axis in axes if grid[axis].bound != 1]
    known = [n for n, axis in enumerate(moving) if grid[axis].bound is not None]
    return tuple(moving[known[-1] if known else 0 :])


def _scratch_root(number: int, argument: Value) -> Root:
    kind = ir.MemRefType(argument.type)
    what = Kind.SEMAPHORE if is_semaphore(kind.element_type) else Kind.SCRATCH
    return Root(f"scratch {number}", tuple(kind.shape), lowered_element(kind.element_type), what, argument.location)
