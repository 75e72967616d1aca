"""Reads a summary off a program: each kernel's grid, windows, memory, and what a chip's cores do with it."""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator

from jaxlib.mlir import ir

from mosaic_grid import memory
from mosaic_grid.dataflow.kernel import grid_indices, prefetch_names
from mosaic_grid.dataflow.outer import OuterScalars
from mosaic_grid.dataflow.unknowns import origin_of
from mosaic_grid.diagnostics import place_of
from mosaic_grid.errors import Place
from mosaic_grid.program import VERSION, Kernel, Launch, Program
from mosaic_grid.summary.advice import Advisor
from mosaic_grid.summary.branches import with_fallbacks
from mosaic_grid.summary.cores import cores_of
from mosaic_grid.summary.facts import DimensionSummary, LaunchSummary, Summary
from mosaic_grid.summary.windows import buffer_of, name_of, window_summary, with_operands
from mosaic_grid.targets import Target

_TENSOR_CORE = "tc"
# the first operation of a kernel that has a place is near its beginning, or there is none
_LOOKED_AT = 1000


def summarize(
    program: Program,
    target: Target | None = None,
    selects: Callable[[str], bool] = lambda name: True,
    scalars: OuterScalars | None = None,
    maps: bool = True,
) -> Summary:
    """What there is to say of a program, `selects` picking kernels by name; no target stands for a chip with two cores.

    `scalars` are the program's, where they are known already. Without `maps` no index map is told. Launches that look
    alike are one. Raises `ProgramError` for a program whose parts don't fit together.
    """
    with program.module.context, ir.Location.unknown():
        return _summary(program, target, selects, scalars or OuterScalars(program.module), maps)


def _summary(
    program: Program, target: Target | None, selects: Callable[[str], bool], scalars: OuterScalars, maps: bool
) -> Summary:
    reader = _Reader(program, target, scalars, maps)
    launches = [launch for launch in program.launches if selects(launch.kernel.name)]
    launched = {launch.kernel.symbol for launch in program.launches}
    others = [k for symbol, k in program.kernels.items() if symbol not in launched and selects(k.name)]
    launched_ones = with_fallbacks([(launch, reader.launch(launch)) for launch in launches])
    advised = [reader.advised(s, launch.kernel, launch) for launch, s in zip(launches, launched_ones, strict=True)]
    advised += [reader.advised(reader.kernel(kernel), kernel) for kernel in others]
    return Summary(tuple(map(_merged, _alike(advised))), target, "" if advised else _found(program))


def _alike(summaries: list[LaunchSummary]) -> Iterable[list[LaunchSummary]]:
    """Those that are equal together; one of its kernel is alone, and equality of summaries takes long to ask."""
    count = collections.Counter(summary.symbol for summary in summaries)
    alike: dict[LaunchSummary | str, list[LaunchSummary]] = {}
    for summary in summaries:
        alike.setdefault(summary.symbol if count[summary.symbol] == 1 else summary, []).append(summary)
    return alike.values()


def _merged(alike: list[LaunchSummary]) -> LaunchSummary:
    """One for all, with the bounds that each passes."""
    first = alike[0]
    if len(alike) == 1:
        return first
    values = [tuple(dict.fromkeys(v for dimension in axis for v in dimension.values)) for axis in _columns(alike)]
    grid = tuple(dataclasses.replace(d, values=v) for d, v in zip(first.grid, values, strict=True))
    return dataclasses.replace(first, grid=grid, launches=sum(summary.launches for summary in alike))


def _columns(alike: list[LaunchSummary]) -> Iterator[tuple[DimensionSummary, ...]]:
    return zip(*(summary.grid for summary in alike), strict=True)


class _Reader:
    """Reads each kernel once, whatever the number of its launches."""

    def __init__(self, program: Program, target: Target | None, scalars: OuterScalars, maps: bool) -> None:
        self._maps = maps
        self._scalars = scalars
        self._cores = target.cores if target else 2
        self._advisor = Advisor(program, self._scalars, self._cores)
        self._kernels: dict[str, LaunchSummary] = {}

    def kernel(self, kernel: Kernel) -> LaunchSummary:
        """What the kernel says by itself."""
        if kernel.symbol not in self._kernels:
            self._kernels[kernel.symbol] = _kernel_summary(kernel, self._cores, self._maps)
        return self._kernels[kernel.symbol]

    def launch(self, launch: Launch) -> LaunchSummary:
        """What a launch adds: bounds, operands, aliases, a place."""
        summary = self.kernel(launch.kernel)
        location = launch.op.location
        at = place_of(location)
        # a bare position is most often that of the dump's text; the user's line comes with a name around it
        in_dump = isinstance(location, ir.FileLineColLoc)
        return dataclasses.replace(
            summary,
            grid=tuple(self._bounded(axis, d, launch) for axis, d in enumerate(summary.grid)),
            windows=with_operands(summary.windows, launch),
            launches=1,
            launched_at=at,
            warn_at=(summary.warn_at or at) if in_dump else (at or summary.place),
        )

    def advised(self, summary: LaunchSummary, kernel: Kernel, launch: Launch | None = None) -> LaunchSummary:
        """The summary with what to do about idle cores; a fallback is left to its fate."""
        if summary.cores is None or summary.fallback:
            return summary
        return dataclasses.replace(summary, cores=self._advisor.advise(summary.cores, kernel, launch))

    def _bounded(self, axis: int, dimension: DimensionSummary, launch: Launch) -> DimensionSummary:
        value = launch.bounds.get(axis)
        if value is None:
            return dimension
        origin = origin_of(value)
        place = Place(origin.file, origin.line, origin.column) if origin.file else None
        return dataclasses.replace(dimension, values=(self._scalars.evaluate(value),), place=place)


def _kernel_summary(kernel: Kernel, cores: int, maps: bool) -> LaunchSummary:
    indices = grid_indices(kernel, exact=False)
    grid = tuple(
        DimensionSummary(str(index), dimension.bound, dimension.semantics)
        for index, dimension in zip(indices, kernel.grid, strict=True)
    )
    core_type = _core_type(kernel)
    location = _first_location(kernel)
    place = place_of(location) if location else None
    named = location is not None and not isinstance(location, ir.FileLineColLoc)
    attributes = kernel.module.attributes
    windows = [window_summary(kernel, window, k, indices if maps else None) for k, window in enumerate(kernel.windows)]
    prefetch = tuple(map(functools.partial(buffer_of, kernel), kernel.prefetch, prefetch_names(kernel)))
    scratch = tuple(buffer_of(kernel, a, name_of(a, f"scratch{k}")) for k, a in enumerate(kernel.scratch))
    held = collections.Counter[str]()
    for window, summary in zip(kernel.windows, windows, strict=True):
        held[summary.space] += memory.bytes_of(window.type) * summary.buffers
    for argument, buffer in zip((*kernel.prefetch, *kernel.scratch), (*prefetch, *scratch), strict=True):
        held[buffer.space] += memory.bytes_of(ir.MemRefType(argument.type))
    return LaunchSummary(
        symbol=kernel.symbol,
        name=kernel.name,
        core_type=core_type,
        version=ir.IntegerAttr(attributes[VERSION]).value if VERSION in attributes else None,
        place=place,
        grid=grid,
        windows=tuple(windows),
        prefetch=prefetch,
        scratch=scratch,
        vmem=held[memory.VMEM],
        smem=held[memory.SMEM],
        cores=cores_of(grid, cores) if core_type == _TENSOR_CORE else None,
        warn_at=place if named else None,
    )


def _core_type(kernel: Kernel) -> str:
    attributes = kernel.body.attributes
    text = str(attributes["tpu.core_type"]) if "tpu.core_type" in attributes else _TENSOR_CORE
    return text.removeprefix("#tpu.core_type<").removesuffix(">")


def _first_location(kernel: Kernel) -> ir.Location | None:
    """The location of the first operation that says where it comes from, else that of the function."""
    found: list[ir.Location] = []
    looked_at = 0

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal looked_at
        looked_at += 1
        if op != kernel.body and place_of(op.location):
            found.append(op.location)
        return ir.WalkResult.INTERRUPT if found or looked_at == _LOOKED_AT else ir.WalkResult.ADVANCE

    kernel.body.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found[0] if found else kernel.body.location if place_of(kernel.body.location) else None


def _found(program: Program) -> str:
    """What a program without a kernel holds: functions and custom calls."""
    if program.kernels:
        return f"kernels of other names: {', '.join(dict.fromkeys(k.name for k in program.kernels.values()))}"
    functions, calls = 0, collections.Counter[str]()

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal functions
        functions += op.name == "func.func"
        if "call_target_name" in op.attributes:
            calls[ir.StringAttr(op.attributes["call_target_name"]).value] += 1
        return ir.WalkResult.ADVANCE

    program.module.walk(visit)
    told = ", ".join(f"{name} ({count})" for name, count in calls.items())
    return f"{functions} function{'' if functions == 1 else 's'}, " + (
        f"custom calls: {told}" if told else "no custom call"
    )
