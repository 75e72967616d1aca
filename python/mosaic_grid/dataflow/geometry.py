"""The windows of one launch over its grid, as the proofs take them.

An index map speaks of grid indices and of prefetch operands; here these are what the program around the launch makes of
them: bounds, tables and arrays are expressions of its inputs.
"""

from __future__ import annotations

import dataclasses
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.kernel import index_map, prefetch_names
from mosaic_grid.dataflow.outer import OuterScalars
from mosaic_grid.dataflow.scalars import BOUND, GRID_INDEX
from mosaic_grid.dataflow.tables import Table, table_of
from mosaic_grid.grid import I32_MAX, is_placeholder
from mosaic_grid.ir_types import Value
from mosaic_grid.program import Kernel, Launch
from mosaic_grid.program import Window as KernelWindow
from mosaic_grid.symbolic.contracts import Contract
from mosaic_grid.symbolic.problem import Grid, Window

_ANY_BOUND = sym.type_range(32, True)
_ANY_SIZE = sym.Range(0, I32_MAX)


@dataclasses.dataclass(frozen=True)
class Geometry:
    """`grid` with what is known of its bounds; a window is None where the pipeline moves no blocks of it.

    `grid.opaque` are the unknowns that aren't inputs of the program, or whose values may not reach the launch.
    `readable` are the inputs that may reach it, those among them of which no contract speaks.
    """

    grid: Grid
    windows: tuple[Window | None, ...]
    readable: frozenset[str] = frozenset()

    @property
    def whatever_the_inputs(self) -> Grid:
        """The grid whenever it has steps: what is refuted of it fails for all inputs with which the kernel runs."""
        runs = [Contract("the kernel runs", sym.comparison(">=", bound, sym.constant(1))) for bound in self.grid.bounds]
        contracts = (*self.grid.contracts, *(each for each in runs if each.condition != sym.constant(1)))
        every = _names(self.grid, self.windows)
        return dataclasses.replace(self.grid, contracts=contracts, opaque=every, arrays=frozenset())

    @property
    def has_inputs(self) -> bool:
        """Whether the launch depends on inputs that may be anything that contracts allow."""
        return bool(self.grid.arrays or _names(self.grid, self.windows) - self.grid.opaque)

    def of_a_step(self, expr: sym.Expr) -> sym.Expr | None:
        """An expression of a walk over a step in the grid's terms; None where it depends on more."""
        known = {f"{GRID_INDEX}{axis}": name for axis, name in enumerate(self.grid.indices)}
        bounds = {f"{BOUND}{axis}": bound for axis, bound in enumerate(self.grid.bounds)}
        if any(leaf.text not in known and leaf.text not in bounds for leaf in sym.leaves_of(expr)):
            return None

        def renamed(part: sym.Expr) -> sym.Expr | None:
            match part:
                case sym.Param(name, values) if name in known:
                    return sym.parameter(known[name], values)
                case sym.Param(name) if name in bounds:
                    return sym.maximum(bounds[name], sym.constant(1))
            return None

        return sym.substitute(expr, renamed)


def geometry_of(kernel: Kernel, launch: Launch, scalars: OuterScalars) -> Geometry:
    """The windows of a launch; raises `ProgramError` where an index map is missing."""
    bounds = tuple(_bounds(kernel, launch, scalars))
    operands = list(launch.op.operands)[len(launch.bounds) :]
    tables = {name: _table(kernel, k, name, operands[k], scalars) for k, name in enumerate(prefetch_names(kernel))}
    arrays = [*operands[len(tables) :], *launch.op.results]
    names = tuple(_index_names(len(bounds), {*tables, *_leaves(bounds), *scalars.inputs}))
    indices = [
        sym.parameter(name, sym.Range(0, max(bound.range.hi, 1) - 1)) for name, bound in zip(names, bounds, strict=True)
    ]
    reading = _Reading(tables, bounds, scalars)
    fits = len(arrays) == len(kernel.windows)
    windows = tuple(
        _window(kernel, window, arrays[k], indices, reading) if fits else None
        for k, window in enumerate(kernel.windows)
    )
    semantics = tuple(dimension.semantics.value for dimension in kernel.grid)
    grid = Grid(bounds, semantics, scalars.promises.contracts, indices=names)
    inputs = frozenset(known.name for known in scalars.inputs.values())
    reached = inputs if scalars.runs_always(launch.op) else frozenset[str]()
    opaque = _names(grid, windows) - reached
    grid = dataclasses.replace(grid, opaque=opaque, arrays=scalars.promises.arrays & reached)
    return Geometry(grid, windows, reached)


def _bounds(kernel: Kernel, launch: Launch, scalars: OuterScalars) -> Iterator[sym.Expr]:
    operands = launch.bounds
    for axis, dimension in enumerate(kernel.grid):
        if dimension.bound is not None and not is_placeholder(dimension.bound):
            yield sym.constant(dimension.bound)
        elif axis in operands:
            yield scalars.evaluate(operands[axis])
        else:
            yield sym.parameter(f"%bound{axis}", _ANY_BOUND)


def _index_names(count: int, taken: set[str]) -> Iterator[str]:
    names = (*string.ascii_lowercase[8:], *(f"i{n}" for n in range(count + len(taken))))
    free = (name for name in names if name not in taken)
    return (next(free) for _ in range(count))


def _table(kernel: Kernel, number: int, name: str, operand: Value, scalars: OuterScalars) -> Table | None:
    """What a prefetch operand holds; None where the kernel may change it, so that nobody knows."""
    uses = (use.owner.name for use in kernel.prefetch[number].uses)
    return table_of(name, operand, scalars) if all(user == "memref.load" for user in uses) else None


def _window(
    kernel: Kernel, window: KernelWindow, array: Value, indices: Sequence[sym.Expr], reading: _Reading
) -> Window | None:
    kind, block = array.type, window.shape
    if block is None or not isinstance(kind, ir.ShapedType) or kind.rank != len(block):
        return None
    if any(size < 1 or is_placeholder(size) for size in block):
        return None
    blocks = index_map(kernel, window, indices)
    padding = padding_of(window)
    if blocks is None or len(blocks) != len(block) or padding is None:
        return None
    sizes = map(sym.constant, kind.shape) if kind.has_static_shape else (_size(kind, axis) for axis in range(kind.rank))
    strides = block
    if window.kind is not None:
        # it counts elements, from the beginning of the padding
        sizes = (sym.add(size, sym.constant(sum(around))) for size, around in zip(sizes, padding, strict=True))
        strides = (1,) * len(block)
    return Window(tuple(map(reading.outside, blocks)), block, tuple(sizes), strides)


def _size(kind: ir.ShapedType, axis: int) -> sym.Expr:
    if kind.is_dynamic_dim(axis):
        return sym.parameter(f"%shape{axis}", _ANY_SIZE)
    return sym.constant(kind.get_dim_size(axis))


def padding_of(window: KernelWindow) -> tuple[tuple[int, int], ...] | None:
    """The padding before and behind each dimension; the bindings have only the text of `#tpu.element_window`."""
    rank = len(window.shape or ())
    if window.kind is None:
        return ((0, 0),) * rank
    prefix, text = "#tpu.element_window<[", str(window.kind)
    if not text.startswith(prefix) or not text.endswith("]>"):
        return None
    low, _, high = text.removeprefix(prefix).removesuffix("]>").partition("],")
    ends = [[int(word) for word in part.strip(" [").split(",") if word.strip()] for part in (low, high)]
    return tuple(zip(*ends, strict=True)) if len(ends[0]) == len(ends[1]) == rank else None


@dataclasses.dataclass(frozen=True)
class _Reading:
    """What an index map's expressions are to the program around it."""

    tables: Mapping[str, Table | None]
    bounds: Sequence[sym.Expr]
    scalars: OuterScalars
    known: dict[sym.Expr, sym.Expr] = dataclasses.field(default_factory=dict[sym.Expr, sym.Expr])
    """What `outside` has found: windows are at the same places of the same tables."""

    def outside(self, expr: sym.Expr) -> sym.Expr:
        """The expression with numbers of steps, and reads from tables, as the program has them."""
        if isinstance(expr, sym.Const):
            return expr
        if expr not in self.known:
            self.known[expr] = sym.substitute(expr, self._replaced)
        return self.known[expr]

    def _replaced(self, part: sym.Expr) -> sym.Expr | None:
        match part:
            case sym.Param(name) if name.startswith("num_programs("):
                axis = int(name.removeprefix("num_programs(").removesuffix(")"))
                # whoever asks is at a step, so there is one
                return sym.maximum(self.bounds[axis], sym.constant(1))
            case sym.Load(name, index, values):
                places = tuple(map(self.outside, index))
                table = self.tables.get(name)
                if type(part) is sym.Load and table is not None:
                    return table.element(places, values)
                # no contract speaks of it, even if it has the name of an input
                return sym.load(f"{name}'" if name in self.scalars.inputs else name, places, values)
        return None


def _names(grid: Grid, windows: Iterable[Window | None]) -> frozenset[str]:
    """All unknowns but the grid's indices and elements of tables."""
    exprs = [*grid.bounds, *(contract.condition for contract in grid.contracts)]
    exprs += [expr for window in windows if window is not None for expr in (*window.index, *window.array)]
    return frozenset(_leaves(exprs)) - frozenset(grid.indices)


def _leaves(exprs: Iterable[sym.Expr]) -> set[str]:
    """The names of the parameters in the expressions, those in the indices of tables included."""
    found: set[str] = set()
    waiting = list(exprs)
    while waiting:
        part = waiting.pop()
        if isinstance(part, sym.Const):
            continue
        # a sum is as much of an input as its array is
        if isinstance(part, sym.Param) and not isinstance(part, sym.Total):
            found.add(part.name)
        waiting.extend(part.args)
    return found
