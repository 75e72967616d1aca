"""Which bounds kernels are launched with while a program runs, counted by the program itself.

Each launch returns how often it had which bounds, and the counts take the way that records of faults take: through
loops, branches and calls, to results of `@main`. So it works wherever the program runs, without calling the host.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.arrays import Array
from mosaic_grid.cpu.outer_records import Callee, OuterRecords
from mosaic_grid.errors import Place, UserError
from mosaic_grid.ir_types import Value
from mosaic_grid.program import Launch, Program, block_of, symbol_of
from mosaic_grid.unpack import unique_symbol
from mosaic_grid.variants.wishes import wishes_of

MOST = 4096
"""Greater bounds are not told apart, nor recorded."""


@dataclasses.dataclass(frozen=True)
class Counted:
    """What one of the results of `@main` counts: bounds of these dimensions of a kernel."""

    kernel: str
    axes: tuple[int, ...]

    def seen(self, counts: Array) -> Iterator[tuple[str, int, int]]:
        """The key of a bound as `values=` takes it, its value, and how often a launch had it."""
        rows = counts[:, 0].reshape(len(self.axes), MOST + 2)
        for axis, row in zip(self.axes, rows, strict=True):
            for value in np.flatnonzero(row[1:-1]):
                yield f"{self.kernel}:{axis}", int(value) + 1, int(row[value + 1])


def count_bounds(program: ir.Operation) -> list[Counted]:
    """Has `@main` of an unpacked program return what its launches count, behind its results, in this order. In place.

    Launches in regions that can't hand anything on, as in the comparator of a sort, count nothing.
    """
    records = OuterRecords(program)
    taken = {name for op in block_of(program) if (name := symbol_of(op.operation))}
    launches = [launch for launch in Program(program).launches if launch.bounds]
    callees: dict[ir.Operation, Callee] = {}
    counted: dict[str, Counted] = {}
    for launch in launches:
        symbol = unique_symbol(f"{launch.kernel.symbol}.counted", taken)
        taken.add(symbol)
        callees[launch.op] = Callee(symbol, _wrapper(program, launch, symbol), takes_codes=False)
        counted[symbol] = Counted(launch.kernel.name, launch.kernel.dynamic_dimensions)
    return [counted[symbol] for symbol in records.thread(callees)]


def _wrapper(program: ir.Operation, launch: Launch, symbol: str) -> ir.RankedTensorType:
    """Makes a function that launches, and counts the bounds; returns the type of the counts."""
    op = launch.op
    types = [operand.type for operand in op.operands]
    with op.location, ir.InsertionPoint.at_block_begin(program.regions[0].blocks[0]):
        function = ir.Operation.create("func.func", regions=1, attributes={"sym_name": ir.StringAttr.get(symbol)})
        block = function.regions[0].blocks.append(*types, arg_locs=[ir.Location.unknown()] * len(types))
        with ir.InsertionPoint(block):
            call = ir.Operation.create(
                op.name,
                results=[result.type for result in op.results],
                operands=list(block.arguments),
                attributes={name: op.attributes[name] for name in op.attributes},
            )
            bounds = list(block.arguments)[: len(launch.bounds)]
            counts = build.concatenate([_row_of(bound) for bound in bounds], 0)
            ir.Operation.create("func.return", operands=[*call.results, counts])
    results = [*(result.type for result in op.results), counts.type]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, results))
    function.attributes["sym_visibility"] = ir.StringAttr.get("private")
    return ir.RankedTensorType(counts.type)


def _row_of(bound: Value) -> Value:
    """A row for each bound up to `MOST`, one for what is less than 1 and one for what is more: 1 for this bound.

    Records have a second column, for what happened first; there is nothing to say in it.
    """
    kept = hlo.clamp(build.i32(0), build.convert(build.reshape(bound, ()), build.i32_type()), build.i32(MOST + 1))
    shape = (MOST + 2, 1)
    rows = hlo.iota(build.tensor(shape, build.i32_type()), 0)
    one = build.convert(build.compare(rows, build.splat(kept, shape), "EQ"), build.i32_type())
    return build.concatenate([one, build.zeros_like(one)], 1)


class Seen:
    """How often which bounds have been seen, and the file that tells it."""

    def __init__(self, path: Path) -> None:
        """Nothing has been seen; what is in the file already is kept there. Raises `UserError` for a bad file."""
        self._path = path
        self._counts: dict[str, collections.Counter[int]] = {}
        self._before = wishes_of([f"@{path}"]) if path.exists() else ()

    def add(self, counted: Iterable[Counted], results: Sequence[Array]) -> None:
        """Takes what a run has counted into account, and writes the file: what was seen most comes first."""
        for each, counts in zip(counted, results, strict=True):
            for key, value, number in each.seen(counts):
                self._counts.setdefault(key, collections.Counter())[value] += number
        lines: dict[str, list[int]] = {}
        for key, counter in self._counts.items():
            lines[key] = [value for value, _ in counter.most_common()]
        for wish in self._before:
            known = lines.setdefault(str(wish), [])
            known += [value for value in wish.values if value not in known]
        text = "".join(f"{key + '=' if key else ''}{','.join(map(str, values))}\n" for key, values in lines.items())
        try:
            self._path.write_text(text, encoding="utf-8")
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UserError(f"can't record bounds: {reason}", Place(str(self._path))) from None
