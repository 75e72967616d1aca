"""Reads a summary off a program: each kernel's grid, windows, memory, and what a chip's cores do with it."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterator

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from mosaic_grid import memory
from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.kernel import Opaque, grid_indices, index_map, moves, prefetch_names
from mosaic_grid.dataflow.outer import OuterScalars
from mosaic_grid.dataflow.unknowns import origin_of
from mosaic_grid.diagnostics import place_of
from mosaic_grid.errors import Place
from mosaic_grid.program import VERSION, Kernel, Launch, Program, Window
from mosaic_grid.summary_cores import cores_of, idle_cores_warning
from mosaic_grid.summary_facts import Array, Buffer, DimensionSummary, LaunchSummary, Summary, WindowSummary
from mosaic_grid.summary_plain import render_plain
from mosaic_grid.summary_rich import render_rich
from mosaic_grid.targets import Target

__all__ = ["LaunchSummary", "Summary", "idle_cores_warning", "render_plain", "render_rich", "summarize"]

ALIASES = "output_operand_aliases"
_TENSOR_CORE = "tc"
# the first operation of a kernel that has a place is near its beginning, or there is none
_LOOKED_AT = 1000
# an index of more nodes than this isn't read but skipped
_READABLE = 24


def summarize(
    program: Program, target: Target | None = None, selects: Callable[[str], bool] = lambda name: True
) -> Summary:
    """What there is to say of a program, `selects` picking kernels by name; without a target, for a chip with two cores.

    Launches that look alike are one. Raises `ProgramError` for a program whose parts don't fit together.
    """
    reader = _Reader(program, target)
    launches = [launch for launch in program.launches if selects(launch.kernel.name)]
    launched = {launch.kernel.symbol for launch in program.launches}
    others = [k for symbol, k in program.kernels.items() if symbol not in launched and selects(k.name)]
    alike: dict[LaunchSummary, list[LaunchSummary]] = {}
    for summary in (*map(reader.launch, launches), *map(reader.kernel, others)):
        alike.setdefault(summary, []).append(summary)
    return Summary(tuple(map(_merged, alike.values())), target, "" if alike else _found(program))


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

    def __init__(self, program: Program, target: Target | None) -> None:
        self._scalars = OuterScalars(program.module) if program.launches else None
        self._cores = target.cores if target else 2
        self._kernels: dict[str, LaunchSummary] = {}

    def kernel(self, kernel: Kernel) -> LaunchSummary:
        """What the kernel says by itself."""
        if kernel.symbol not in self._kernels:
            self._kernels[kernel.symbol] = _kernel_summary(kernel, self._cores)
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
            windows=_with_operands(summary.windows, launch),
            launches=1,
            launched_at=at,
            warn_at=(summary.warn_at or at) if in_dump else (at or summary.place),
        )

    def _bounded(self, axis: int, dimension: DimensionSummary, launch: Launch) -> DimensionSummary:
        value = launch.bounds.get(axis)
        if value is None or self._scalars is None:
            return dimension
        origin = origin_of(value)
        place = Place(origin.file, origin.line, origin.column) if origin.file else None
        return dataclasses.replace(dimension, values=(self._scalars.evaluate(value),), place=place)


def _kernel_summary(kernel: Kernel, cores: int) -> LaunchSummary:
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
    windows = [_window_summary(kernel, window, k, indices) for k, window in enumerate(kernel.windows)]
    return LaunchSummary(
        symbol=kernel.symbol,
        name=kernel.name,
        core_type=core_type,
        version=ir.IntegerAttr(attributes[VERSION]).value if VERSION in attributes else None,
        place=place,
        grid=grid,
        windows=tuple(windows),
        prefetch=tuple(map(_buffer, kernel.prefetch, prefetch_names(kernel))),
        scratch=tuple(_buffer(a, _name(a, f"scratch{k}")) for k, a in enumerate(kernel.scratch)),
        vmem=_bytes_in(memory.VMEM, kernel, windows),
        smem=_bytes_in(memory.SMEM, kernel, windows),
        cores=cores_of(grid, cores) if core_type == _TENSOR_CORE else None,
        warn_at=place if named else None,
    )


def _window_summary(kernel: Kernel, window: Window, number: int, indices: tuple[sym.Expr, ...]) -> WindowSummary:
    seen = _array(window.type)
    whole = window.shape is None
    return WindowSummary(
        role="window",
        number=number,
        name=_name(window.argument, f"arg{number}"),
        block=seen if window.shape is None else Array(seen.element, window.shape),
        seen=seen,
        space=memory.space_of(window.type),
        whole=whole,
        operand=None,
        index_map=() if whole else tuple(map(_index_text, index_map(kernel, window, indices) or ())),
        padding=None if window.kind is None else str(window.kind).partition("<")[2].removesuffix(">"),
        buffers=memory.buffers_of(window, not whole and moves(kernel, window)),
        alias="",
    )


def _with_operands(windows: tuple[WindowSummary, ...], launch: Launch) -> tuple[WindowSummary, ...]:
    """The windows as inputs and outputs of a launch; as they are where the numbers don't fit."""
    first = len(launch.bounds) + launch.kernel.prefetch_count
    inputs, outputs = list(launch.op.operands)[first:], list(launch.op.results)
    if len(inputs) + len(outputs) != len(windows):
        return windows
    roles = [("in", k, value, "") for k, value in enumerate(inputs)]
    aliases = _aliases(launch.op)
    for k, value in enumerate(outputs):
        operand = aliases.get(k)
        # the operands are bounds, then prefetch operands, then inputs
        alias = "" if operand is None else f"in {operand - first}" if operand >= first else f"operand {operand}"
        roles.append(("out", k, value, alias))
    return tuple(
        dataclasses.replace(window, role=role, number=number, operand=_array(value.type), alias=alias)
        for window, (role, number, value, alias) in zip(windows, roles, strict=True)
    )


def _aliases(call: ir.Operation) -> dict[int, int]:
    """The operand whose memory each output reuses, by number of output."""
    listed = list(ir.ArrayAttr(call.attributes[ALIASES])) if ALIASES in call.attributes else []
    aliases = [stablehlo.OutputOperandAlias(alias) for alias in listed]
    return {next(iter(alias.output_tuple_indices), 0): alias.operand_index for alias in aliases}


def _bytes_in(space: str, kernel: Kernel, windows: list[WindowSummary]) -> int:
    copies = [(window.type, summary.buffers) for window, summary in zip(kernel.windows, windows, strict=True)]
    others = [(ir.MemRefType(argument.type), 1) for argument in (*kernel.prefetch, *kernel.scratch)]
    return sum(memory.bytes_of(kind) * count for kind, count in copies + others if memory.space_of(kind) == space)


def _buffer(argument: ir.BlockArgument, name: str) -> Buffer:
    kind = ir.MemRefType(argument.type)
    return Buffer(name, _array(kind), memory.space_of(kind))


def _array(kind: ir.Type) -> Array:
    if not isinstance(kind, ir.ShapedType):
        return Array(str(kind), ())
    shape = [None if kind.is_dynamic_dim(axis) else kind.get_dim_size(axis) for axis in range(kind.rank)]
    return Array(str(kind.element_type).removeprefix("!tpu."), tuple(shape))


def _name(argument: ir.BlockArgument, otherwise: str) -> str:
    """The argument's name in the user's function."""
    location = argument.location
    return location.name_str if isinstance(location, ir.NameLoc) and location.name_str else otherwise


def _index_text(index: sym.Expr) -> str:
    """An index as text; `f(i, table[j])` for a function of these that can't be told, or is too long to be read."""
    if index.size <= _READABLE and not any(isinstance(node, Opaque) for node in _nodes(index)):
        return str(index)
    return f"f({', '.join(dict.fromkeys(map(str, _sources(index))))})"


def _nodes(expr: sym.Expr) -> Iterator[sym.Expr]:
    yield expr
    for arg in expr.args:
        yield from _nodes(arg)


def _sources(expr: sym.Expr) -> Iterator[sym.Expr]:
    """The grid indices and loads that an expression is made of."""
    if isinstance(expr, sym.Param) or (isinstance(expr, sym.Load) and not isinstance(expr, Opaque)):
        yield expr
        return
    for arg in expr.args:
        yield from _sources(arg)


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
        return f"{len(program.kernels)} kernel(s), none of this name: {', '.join(k.name for k in program.kernels.values())}"
    functions, calls = 0, collections.Counter[str]()

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal functions
        functions += op.name == "func.func"
        if "call_target_name" in op.attributes:
            calls[ir.StringAttr(op.attributes["call_target_name"]).value] += 1
        return ir.WalkResult.ADVANCE

    program.module.walk(visit)
    told = ", ".join(f"{name} ({count})" for name, count in calls.items())
    return f"{functions} function{'' if functions == 1 else 's'}, {f'custom calls: {told}' if told else 'no custom call'}"
