"""Translating the operations of one kernel: values by rules, regions with the state of memory threaded through."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from jaxlib.mlir import ir

from mosaic_grid.cpu import build
from mosaic_grid.cpu.build import Index
from mosaic_grid.cpu.fill import fresh
from mosaic_grid.cpu.memory import Memory
from mosaic_grid.cpu.options import Options
from mosaic_grid.cpu.roots import Root
from mosaic_grid.cpu.types import lowered
from mosaic_grid.cpu.views import View
from mosaic_grid.ir_types import Value

if TYPE_CHECKING:
    from mosaic_grid.cpu.faults import Faults
    from mosaic_grid.cpu.late import Late
    from mosaic_grid.cpu.prints import Prints
    from mosaic_grid.cpu.watch import Watch

Lowered: TypeAlias = Value | View
Result: TypeAlias = Lowered | Sequence[Lowered] | None
Rule: TypeAlias = Callable[["Lowering", ir.Operation], Result]


class UnsupportedError(Exception):
    """A form of an operation that has no rule; the message is a clause that says what about it."""


@dataclasses.dataclass(frozen=True)
class Unsupported:
    """An operation without a rule, and why; an empty reason means that there is none for any form of it."""

    op: str
    reason: str
    location: ir.Location


class Lowering:
    """The translation of one kernel's body and index maps, at one place of the function that is being built.

    `indices` and `bounds` are the grid's at the step that is being translated. `faults` records what goes wrong at run
    time, if that is wanted; `late` are the copies in flight, if they land when they are waited for; `prints` takes what
    the kernel prints, if it is to be seen. `op` is the operation that is being translated, `None` between those of a
    block. `semaphores_of_cores` are roots with a row for each core, where cores can wait for each other; `subcores` of
    them after each other are those of one core.
    """

    def __init__(self, rules: Mapping[str, Rule], options: Options) -> None:
        self.rules = rules
        self.options = options
        self.memory = Memory()
        self.faults: Faults | None = None
        self.late: Late | None = None
        self.prints: Prints | None = None
        self.op: ir.Operation | None = None
        self.indices: list[Value] = []
        self.bounds: list[Index] = []
        self.semaphores_of_cores: frozenset[Root] | None = None
        self.apart: str | None = None
        """Why cores that signal each other can't go on together, if they can't."""
        self.subcores = 1
        self.unsupported: list[Unsupported] = []
        self._values: dict[Value, Lowered] = {}

    @property
    def watch(self) -> Watch | None:
        """Who is told of what the kernel does, if anybody."""
        return self.memory.watch

    def forget(self, root: Root) -> None:
        """Makes the contents of a root those of memory that nobody wrote."""
        watch = self.watch
        self.memory.state[root] = fresh(root, self.options) if watch is None else watch.fresh(root)

    def define(self, value: Value, lowered: Lowered) -> None:
        """Says what a value of the kernel is."""
        self._values[value] = lowered

    def translated(self, others: dict[Value, Lowered]) -> dict[Value, Lowered]:
        """What the kernel's values are at this place; from now on, those of another place."""
        found, self._values = self._values, others
        return found

    def value(self, value: Value) -> Value:
        """The tensor that stands for a scalar or vector."""
        found = self._values[value]
        assert not isinstance(found, View), f"{value} is memory"
        return found

    def view(self, value: Value) -> View:
        """The view that stands for a memref."""
        found = self._values[value]
        assert isinstance(found, View), f"{value} is not memory"
        return found

    def knows(self, value: Value) -> bool:
        """Whether a value has been translated."""
        return value in self._values

    def operands(self, op: ir.Operation) -> list[Value]:
        """The tensors of all operands."""
        return [self.value(operand) for operand in op.operands]

    def index(self, value: Value) -> Index:
        """A scalar integer, as a Python integer where it is a constant."""
        known = constant_of(value)
        return known if known is not None else self.value(value)

    def block(self, block: ir.Block, arguments: Sequence[Lowered] = ()) -> list[Lowered]:
        """Translates a block, and returns what its terminator hands on."""
        for argument, value in zip(block.arguments, arguments, strict=True):
            self.define(argument, value)
        *operations, end = block.operations
        for op in operations:
            self.operation(op.operation)
        return [self._values[operand] for operand in end.operation.operands]

    def operation(self, op: ir.Operation) -> None:
        """Translates one operation; what has no rule is noted, and its results are zeros from then on."""
        outer, self.op = self.op, op
        with op.location:
            rule = self.rules.get(op.name)
            try:
                if rule is None:
                    raise UnsupportedError("")
                results = rule(self, op)
            except UnsupportedError as error:
                self.unsupported.append(Unsupported(op.name, str(error), op.location))
                results = [self.placeholder(result.type) for result in op.results]
        self.op = outer
        if results is None:
            return
        for result, value in zip(op.results, _listed(results), strict=True):
            self.define(result, value)

    def placeholder(self, kind: ir.Type) -> Lowered:
        """Something of a type, so that translation can go on and find what else is wrong."""
        shape = kind.shape if isinstance(kind, ir.VectorType | ir.MemRefType) else ()
        if any(size < 0 for size in shape):
            raise UnsupportedError("")
        like = lowered(kind)
        value = build.constant(0, like.shape, like.element_type)
        if not isinstance(kind, ir.MemRefType):
            return value
        from mosaic_grid.cpu.roots import Kind

        root = Root("unsupported", tuple(shape), like.element_type, Kind.SCRATCH)
        self.memory.state[root] = value
        return View(root)

    def if_(
        self,
        predicate: Value,
        types: Sequence[ir.Type],
        then: Callable[[], Sequence[Value]],
        other: Callable[[], Sequence[Value]],
        written: Sequence[Root],
    ) -> list[Value]:
        """`stablehlo.if` whose branches may write the roots `written`; returns the branches' values."""
        memory = self.memory
        before = dict(memory.state)
        roots = [root for root in memory.with_shadows(written) if root in before]

        def branch(translate: Callable[[], Sequence[Value]]) -> list[Value]:
            memory.state = dict(before)
            values = list(translate())
            return [*values, *(memory.state[root] for root in roots)]

        kinds = [*types, *(before[root].type for root in roots)]
        results = build.if_(predicate, kinds, lambda: branch(then), lambda: branch(other))
        memory.state = before | dict(zip(roots, results[len(types) :], strict=True))
        return results[: len(types)]

    def when(self, predicate: Value, act: Callable[[], None], written: Sequence[Root]) -> None:
        """Does something to memory if the predicate holds.

        That is a loop of one round or none: what a loop carries XLA updates in place, but what one branch of a
        conditional leaves alone it may copy. It takes no more time.
        """

        def once(_: Sequence[Value]) -> list[Value]:
            act()
            return [build.constant(0, (), build.i1_type())]

        self.while_([predicate], lambda values: values[0], once, written)

    def while_(
        self,
        initial: Sequence[Value],
        condition: Callable[[Sequence[Value]], Value],
        body: Callable[[Sequence[Value]], Sequence[Value]],
        written: Sequence[Root],
    ) -> list[Value]:
        """`stablehlo.while` whose body may write the roots `written`; returns the carried values."""
        memory = self.memory
        before = dict(memory.state)
        roots = [root for root in memory.with_shadows(written) if root in before]
        count = len(initial)

        def enter(values: Sequence[Value]) -> list[Value]:
            memory.state = before | dict(zip(roots, values[count:], strict=True))
            return list(values[:count])

        def repeat(values: Sequence[Value]) -> list[Value]:
            after = list(body(enter(values)))
            return [*after, *(memory.state[root] for root in roots)]

        carried = [*initial, *(before[root] for root in roots)]
        results = build.while_(carried, lambda values: condition(enter(values)), repeat)
        enter(results)
        return results[:count]


def constant_of(value: Value) -> int | None:
    """The integer that a value is by its definition, `None` where it is no constant."""
    owner = value.owner
    if not isinstance(owner, ir.Operation | ir.OpView) or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def _listed(results: Lowered | Sequence[Lowered]) -> Sequence[Lowered]:
    return [results] if isinstance(results, View | ir.Value) else list(results)
