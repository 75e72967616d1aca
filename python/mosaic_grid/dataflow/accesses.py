"""What a step loads, stores and copies: each access with the box that it touches and the conditions around it.

A walk over any step, as for `freshness`, that also keeps what is read of tables and which iteration a loop is in.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias, cast

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.control import defining
from mosaic_grid.dataflow.effects import Effect
from mosaic_grid.dataflow.events import Event
from mosaic_grid.dataflow.freshness import walk_step
from mosaic_grid.dataflow.kernel_ops import scalar_type
from mosaic_grid.dataflow.memory import ZERO, Box, Root, View, whole
from mosaic_grid.dataflow.step import is_scalar
from mosaic_grid.dataflow.step_state import State
from mosaic_grid.dataflow.unknowns import origin_of
from mosaic_grid.dataflow.walk import Walk
from mosaic_grid.ir_types import Value
from mosaic_grid.program import Kernel

TABLE = "argument "
"""The first word of the name of a load from an argument that the kernel only reads: `argument 3`."""
ITERATION = "iteration "
"""The first word of the name of a loop's index."""


@dataclasses.dataclass(frozen=True)
class Touch:
    """One run of an access to a buffer of `root`; `box` is None where nobody knows which part of it.

    `starts` is where the access begins in the view that it is given, a number for each of its dimensions; `assumed` are
    truth values that the author promises of them with `pl.multiple_of`. `masked` says that elements may be left out.
    """

    op: ir.Operation
    writes: bool
    root: Root
    box: Box | None
    guards: tuple[sym.Expr, ...]
    starts: tuple[sym.Expr, ...] = ()
    assumed: tuple[sym.Expr, ...] = ()
    masked: bool = False


@dataclasses.dataclass(frozen=True)
class Accesses:
    """All accesses of any step, in order. `inside` are views that others were made of: a box of the first root has to
    be in bounds where the second, the same memory in another shape, is touched. `shapes` are the operations that gave
    that shape. `unknown` can't be followed. `origins` are where unknowns of the step, by name, come from.
    """

    touches: tuple[Touch, ...]
    inside: dict[Root, tuple[Root, Box]]
    shapes: Mapping[Root, ir.Operation]
    unknown: tuple[ir.Operation, ...]
    origins: Mapping[str, sym.Origin]


def accesses_of(kernel: Kernel) -> Accesses:
    """The accesses of a kernel whose body is one block."""
    if accesses_of not in kernel.memo:
        step = walk_step(kernel, State(), {}, _Recorder)
        unknown = tuple(dict.fromkeys(step.found.unknown))
        kernel.memo[accesses_of] = Accesses(tuple(step.touches), step.inside, step.shapes, unknown, step.origins)
    return cast("Accesses", kernel.memo[accesses_of])


def is_table(argument: Value) -> bool:
    """Whether the kernel only reads from an argument, element by element."""
    return all(use.owner.name == "memref.load" for use in argument.uses)


_Source: TypeAlias = tuple[Value, int | None]
"""A scalar, and what its author says with `pl.multiple_of` that it is a multiple of."""


class _Recorder(Walk):
    """The walk."""

    touches: list[Touch]
    inside: dict[Root, tuple[Root, Box]]
    shapes: dict[Root, ir.Operation]
    origins: dict[str, sym.Origin]

    def walk(self, block: ir.Block) -> tuple[Value, ...]:
        """Runs a block; the first one is the body."""
        if not hasattr(self, "touches"):
            self.touches, self.inside, self.shapes, self.origins = [], {}, {}, {}
            self._sources: dict[Event, tuple[_Source, ...]] = {}
            self._tables = {k for k, argument in enumerate(block.arguments) if is_table(argument)}
        return super().walk(block)

    def show(self, value: Value, view: View) -> None:
        """Says what a memref shows. In another shape the same memory is a buffer of its own, within the first."""
        sizes = [sym.constant_of(size) for size in view.shape]
        known = [size for size in sizes if size is not None]
        if view.box is not None and view.dims is None and len(known) == len(sizes):
            self._numbers += 1
            root = Root(view.root.argument, tuple(known), self._numbers)
            self.inside[root] = (view.root, view.box)
            self.shapes[root] = defining(value)[0]
            view = whole(root)
        super().show(value, view)

    def read(self, event: Event, root: Root, box: Box | None) -> None:
        """Notes a read, and what a table's element is called."""
        self._touch(event, False, root, box)
        table = root.argument if root.argument in self._tables else None
        if event.name == "memref.load" and table is not None and box is not None:
            (result,) = event.results
            kind = scalar_type(result.type)
            if kind is not None:
                element = sym.load(f"{TABLE}{table}", [span.start for span in box], kind.range, origin_of(result))
                self.scalars.set({result: element})
        super().read(event, root, box)

    def write(self, event: Event, root: Root, box: Box | None, covers: bool) -> None:
        """Notes a write."""
        self._touch(event, True, root, box)
        super().write(event, root, box, covers)

    def _touch(self, event: Event, writes: bool, root: Root, box: Box | None) -> None:
        starts: tuple[sym.Expr, ...] = ()
        assumed: tuple[sym.Expr, ...] = ()
        masked = False
        sources = self._sources_of(event)
        if event.effect in (Effect.READ, Effect.WRITE):
            indices = event.touch.indices
            starts = tuple(self.scalars.of(index) for index in indices)
            assumed = tuple(self._assumed(sources))
            masked = len(event.operands) > len(indices) + (2 if event.effect is Effect.WRITE else 1)
        self.touches.append(Touch(event.op, writes, root, box, self._guards, starts, assumed, masked))
        for value, _ in sources:
            match self.scalars.of(value):
                case sym.Param(name) if name.startswith("?") and name not in self.origins:
                    self.origins[name] = origin_of(value)

    def _assumed(self, sources: Iterable[_Source]) -> Iterator[sym.Expr]:
        """What the author says of the numbers that the indices are computed from: that they are multiples."""
        for value, multiple in sources:
            if multiple is not None:
                yield sym.comparison("==", sym.mod(self.scalars.of(value), sym.constant(multiple)), ZERO)

    def _sources_of(self, event: Event) -> tuple[_Source, ...]:
        """The integer scalars that the indices of an access are computed from, those of its views included."""
        if event not in self._sources:
            self._sources[event] = tuple(_sources(event.op))
        return self._sources[event]

    def _once_for_all(self, runs: sym.Expr, body: ir.Block) -> None:
        """One walk for every iteration, in which the loop's index is within its bounds."""
        loop = body.owner
        low, high, step = (self.scalars.of(operand) for operand in list(loop.operands)[:3])
        by = sym.constant_of(step)
        guards: list[sym.Expr] = []
        if by is not None and by > 0:
            values = self.scalars.of(body.arguments[0])
            self._numbers += 1
            index = sym.parameter(f"{ITERATION}{self._numbers}", sym.range_of(values))
            self.scalars.set({body.arguments[0]: index})
            guards = [sym.comparison("<=", low, index), sym.comparison("<", index, high)]
            guards.append(sym.comparison("==", sym.mod(sym.sub(index, low), sym.constant(by)), ZERO))
        with contextlib.ExitStack() as stack:
            for guard in guards:
                if sym.constant_of(guard) is None:
                    stack.enter_context(self.guarded(guard))
            super()._once_for_all(runs, body)


def _sources(op: ir.Operation) -> Iterator[_Source]:
    waiting, seen = list(op.operands), set[Value]()
    while waiting:
        value = waiting.pop()
        scalar = is_scalar(value)
        if value in seen or not (scalar or isinstance(value.type, ir.MemRefType)):
            continue
        seen.add(value)
        origin = defining(value)[0] if not isinstance(value, ir.BlockArgument) else None
        if scalar:
            promised = origin is not None and origin.name == "tpu.assume_multiple"
            yield value, ir.IntegerAttr(origin.attributes["multiple"]).value if origin and promised else None
        if origin is not None and not len(origin.regions):
            waiting.extend(origin.operands)
