"""A kernel's index maps as functions, and what they say of all steps: which blocks each core has, in which order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from jaxlib.mlir import ir
from launched import Launched

from mosaic_grid.cpu import build
from mosaic_grid.cpu.execute import Executable, compile_program
from mosaic_grid.cpu.lowering import Lowering, Result
from mosaic_grid.cpu.options import Options
from mosaic_grid.cpu.roots import Kind, Root
from mosaic_grid.cpu.rules import RULES
from mosaic_grid.cpu.types import lowered
from mosaic_grid.cpu.views import View
from mosaic_grid.grid import Semantics
from mosaic_grid.ir_types import Value
from mosaic_grid.program import Kernel

Block: TypeAlias = tuple[int, ...]


class IndexMaps:
    """The index maps of all windows of a kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.ranks = [len(window.shape or ()) for window in kernel.windows]
        self._executable = _compiled(kernel)

    def blocks(self, launched: Launched, *point: int) -> list[Block]:
        """Each window's block at a point of the grid. A look beyond the end of a table is an error."""
        numbers = [np.asarray(n, np.int32) for n in (*point, *launched.bounds)]
        *components, inside = self._executable(*numbers, *launched.tables)
        assert inside, f"an index map looks beyond a table at {point}"
        values = iter(int(component) for component in components)
        return [tuple(itertools.islice(values, rank)) for rank in self.ranks]


Walk: TypeAlias = list[list[Block]]
"""The windows' blocks at each step of a core."""


def walks(launched: Launched, maps: IndexMaps) -> list[Walk]:
    """Which blocks each core has, step by step."""
    grid = launched.kernel.grid
    ranges = [range(bound) for bound in launched.bounds]
    cores = [axis for axis, dimension in enumerate(grid) if dimension.semantics is Semantics.CORE_PARALLEL]
    places = itertools.product(*(ranges[axis] for axis in cores))
    points = [
        [point for point in itertools.product(*ranges) if tuple(point[axis] for axis in cores) == place]
        for place in places
    ]
    return [[maps.blocks(launched, *point) for point in mine] for mine in points]


def moves(walks: Sequence[Walk]) -> list[list[Block]]:
    """The blocks that each window goes to, sorted; a block counts each time that a core's window goes to it."""
    windows = max((len(walk[0]) for walk in walks if walk), default=0)
    return [
        sorted(block for walk in walks for block, _ in itertools.groupby(blocks[window] for blocks in walk))
        for window in range(windows)
    ]


def _compiled(kernel: Kernel) -> Executable:
    """A program from a point, all bounds and the tables to the windows' block indices, and whether all looks are in."""
    i32 = build.tensor((), build.i32_type())
    tables = [lowered(argument.type) for argument in kernel.prefetch]
    types = [*[i32] * (2 * len(kernel.grid)), *tables]
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        main = ir.Operation.create("func.func", regions=1, attributes={"sym_name": ir.StringAttr.get("main")})
    entry = main.regions[0].blocks.append(*types, arg_locs=[ir.Location.unknown()] * len(types))
    values, count = list(entry.arguments), len(kernel.grid)
    with ir.InsertionPoint(entry):
        looks: list[Value] = []

        def load(low: Lowering, op: ir.Operation) -> Result:
            """A look into a table, and whether it is inside of it."""
            assert op.parent is not None
            assert op.parent.name == "func.func", "a look that isn't taken at every step"
            looks.extend(_inside(low, op))
            return RULES["memref.load"](low, op)

        low = Lowering({**RULES, "memref.load": load}, Options())
        low.bounds = values[count : 2 * count]
        roots = [Root(f"table {k}", tuple(t.shape), t.element_type, Kind.ARRAY) for k, t in enumerate(tables)]
        low.memory.state.update(zip(roots, values[2 * count :], strict=True))
        results = list(_components(kernel, low, [*values[:count], *map(View, roots)]))
        results.append(build.all_of(looks))
        ir.Operation.create("func.return", operands=results)
    assert not low.unsupported, low.unsupported
    main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, [each.type for each in results]))
    return compile_program(module.operation)


def _components(kernel: Kernel, low: Lowering, arguments: Sequence[Value | View]) -> Iterator[Value]:
    for window in kernel.windows:
        if window.transform is not None:
            for value in low.block(kernel.functions[window.transform].regions[0].blocks[0], arguments):
                assert not isinstance(value, View)
                yield value


def _inside(low: Lowering, op: ir.Operation) -> Iterator[Value]:
    memref, *places = op.operands
    for place, size in zip(places, low.view(memref).shape, strict=True):
        index = build.as_value(low.index(place))
        yield build.compare(index, build.i32(0), "GE")
        yield build.compare(index, build.i32(size), "LT")
