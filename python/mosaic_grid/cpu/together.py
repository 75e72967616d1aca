"""What cores do that wait for each other: each goes on when all have come to the wait.

A kernel's body is cut at its waits and barriers, and each part is run for one core after the other. The steps of the
grid, and loops and conditions around a wait, are gone through together where they are surely the same on each core.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.grid import Core
from mosaic_grid.cpu.lowering import Lowered, Unsupported
from mosaic_grid.cpu.one_core import OneCore, enter, leave
from mosaic_grid.cpu.roots import Root
from mosaic_grid.cpu.rules.semaphore import is_own_core
from mosaic_grid.cpu.touches import nested, source_of
from mosaic_grid.cpu.views import View
from mosaic_grid.cpu.writes import written_arguments, written_roots
from mosaic_grid.dataflow.effects import named
from mosaic_grid.ir_types import Value

BARRIER = "tpu.sem_barrier"
"""The operation that gives the barrier semaphore, the same one whenever it is asked for."""

_WAITS = ("tpu.sem_wait", "tpu.barrier")
_COPY_WAITS = ("tpu.wait_dma", "tpu.wait_dma2")


@dataclasses.dataclass
class Cores:
    """The cores on their way from wait to wait.

    `allocated` are the semaphores that the kernel makes, and the memory that others copy to, that of all cores as one.
    `alike` are the scalars of loops that are the same on each core.
    """

    core: Core
    ones: list[OneCore]
    shared: set[Root]
    allocated: Mapping[Value, Root]
    alike: set[Value] = dataclasses.field(default_factory=set)

    def steps(self) -> None:
        """All steps of the grid, each on all cores."""
        core = self.core
        if not core.axes:
            self._step()
            return
        self.alike.update(core.body.arguments[axis] for axis in core.axes)

        def more(_: Sequence[Value]) -> Value:
            enter(core, self.ones[0], self.shared)
            return core.more()

        def repeat(_: Sequence[Value]) -> list[Value]:
            self._step()
            self.each(lambda _: core.advance())
            return []

        self._while(lambda: [*core.written, *self.allocated.values()], [], more, repeat)

    def _step(self) -> None:
        self.each(self._begin)
        self.run(self.core.body)
        self.each(lambda one: self.core.leave(one.places))

    def _begin(self, one: OneCore) -> None:
        one.indices, one.places = self.core.enter(one.fixed)
        for argument, index in zip(self.core.body.arguments, one.indices, strict=False):
            self.core.low.define(argument, index)

    def each(self, act: Callable[[OneCore], None]) -> None:
        """Something that one core does after the other."""
        for one in self.ones:
            enter(self.core, one, self.shared)
            act(one)
            leave(self.core, one, self.shared)

    def run(self, block: ir.Block) -> None:
        """What a block does, on all cores; what it hands on is theirs to look up."""
        part: list[ir.Operation] = []
        for op in _straight(block):
            if self._waits(op):
                self._each(part)
                part = [op]
            elif not any(map(self._waits, _inside(op))):
                part.append(op)
            elif op.name == "scf.for" and all(map(self._is_alike, list(op.operands)[:3])):
                self._each(part)
                part = []
                self._loop(op)
            elif op.name == "scf.if" and not len(op.results) and self._is_alike(op.operands[0]):
                self._each(part)
                part = []
                self._choose(op)
            else:
                self._refuse(op)
                part.append(op)
        self._each(part)

    def _waits(self, op: ir.Operation) -> bool:
        """Whether an operation waits for what another core does, or for a copy that may be another's."""
        if op.name in _COPY_WAITS:
            return any(source_of(operand) in self._arrivals for operand in op.operands)
        return op.name in _WAITS

    @cached_property
    def _arrivals(self) -> set[Value]:
        """The semaphores that count what other cores copy."""
        found = [named(op, "target_semaphore") for op in copies_to_cores(self.core.body)]
        return {source_of(value) for value in found if value is not None}

    def _each(self, part: Sequence[ir.Operation]) -> None:
        """These operations, on one core after the other."""
        low = self.core.low
        for number, one in enumerate(self.ones):
            enter(self.core, one, self.shared)
            for op in part:
                made = self.allocated.get(op.results[0]) if len(op.results) else None
                if made is None:
                    low.operation(op)
                    continue
                if number == 0 and op.name != BARRIER:
                    low.forget(made)
                low.define(op.results[0], row_of(made, number))
            leave(self.core, one, self.shared)

    def _loop(self, op: ir.Operation) -> None:
        """Rounds that all cores make together: their number is the same on each."""
        values = self.ones[0].values
        start, stop, step = (_tensor(values[operand]) for operand in list(op.operands)[:3])
        body = op.regions[0].blocks[0]
        index, *carried = body.arguments
        self.alike.add(index)
        count = len(carried)

        def repeat(given: Sequence[Value]) -> list[Value]:
            round_, *handed = given
            for number, one in enumerate(self.ones):
                one.values[index] = round_
                one.values.update(zip(carried, handed[number * count :], strict=False))
            self.run(body)
            *_, end = body.operations
            after = [_tensor(one.values[result]) for one in self.ones for result in end.operation.operands]
            return [hlo.add(round_, step), *after]

        initial = [_tensor(one.values[operand]) for one in self.ones for operand in list(op.operands)[3:]]
        written = self._written_by(op)
        results = self._while(written, [start, *initial], lambda given: build.compare(given[0], stop, "LT"), repeat)[1:]
        for number, one in enumerate(self.ones):
            one.values.update(zip(op.results, results[number * count :], strict=False))

    def _choose(self, op: ir.Operation) -> None:
        """What all cores do, or none."""
        predicate = _tensor(self.ones[0].values[op.operands[0]])
        for region, holds in zip(op.regions, (predicate, hlo.not_(predicate)), strict=True):
            if not len(region.blocks):
                continue
            block = region.blocks[0]

            def once(_: Sequence[Value], block: ir.Block = block) -> list[Value]:
                self.run(block)
                return [build.constant(0, (), build.i1_type())]

            self._while(self._written_by(op), [holds], lambda given: given[0], once)

    def _written_by(self, op: ir.Operation) -> Callable[[], list[Root]]:
        """What an operation may write on a core, asked when the core's values are known."""
        made = [root for value, root in self.allocated.items() if any(value.owner == inner for inner in _inside(op))]
        return lambda: [*written_roots(self.core.low, [op]), *made]

    def _while(
        self,
        written: Callable[[], Sequence[Root]],
        initial: Sequence[Value],
        more: Callable[[Sequence[Value]], Value],
        body: Callable[[Sequence[Value]], Sequence[Value]],
    ) -> list[Value]:
        """`Lowering.while_` that carries the memory of each core beside what they share."""
        low, count = self.core.low, len(initial)
        common: dict[Root, None] = {}
        own: list[list[Root]] = []

        def look(_: OneCore) -> None:
            roots = dict.fromkeys(written())
            common.update((root, None) for root in roots if root in self.shared)
            own.append([root for root in roots if root not in self.shared and root in low.memory.state])

        self.each(look)
        low.memory.state = {root: value for root, value in low.memory.state.items() if root in self.shared}
        before = [dict(one.memory) for one in self.ones]

        def place(values: Sequence[Value]) -> None:
            rest = iter(values)
            for one, kept, roots in zip(self.ones, before, own, strict=True):
                one.memory = kept | {root: next(rest) for root in roots}

        def memory() -> list[Value]:
            return [one.memory[root] for one, roots in zip(self.ones, own, strict=True) for root in roots]

        def test(values: Sequence[Value]) -> Value:
            place(values[count:])
            return more(values[:count])

        def repeat(values: Sequence[Value]) -> list[Value]:
            place(values[count:])
            return [*body(values[:count]), *memory()]

        results = low.while_([*initial, *memory()], test, repeat, list(common))
        place(results[count:])
        return results[:count]

    def _is_alike(self, value: Value) -> bool:
        """Whether a scalar is surely the same on each core."""
        owner = value.owner
        if isinstance(owner, ir.Block):
            return value in self.alike
        if owner.name == "memref.load":
            memref, *indices = owner.operands
            tables = list(self.core.body.arguments)[len(self.core.low.bounds) :][: len(self.core.prefetch)]
            return memref in tables and memref not in self._written and all(map(self._is_alike, indices))
        if owner.name == "tpu.iteration_bound":
            return True
        return owner.name.startswith("arith.") and all(map(self._is_alike, owner.operands))

    @cached_property
    def _written(self) -> set[Value]:
        return written_arguments(self.core.body.owner.operation)

    def _refuse(self, op: ir.Operation) -> None:
        reason = (
            "a wait inside of a condition or a loop that isn't surely the same on all cores, which wait for each other"
        )
        self.core.low.unsupported.extend(
            Unsupported(inner.name, reason, inner.location) for inner in _inside(op) if self._waits(inner)
        )


def _tensor(value: Lowered) -> Value:
    assert not isinstance(value, View)
    return value


def row_of(stack: Root, number: int) -> View:
    """A core's part of what holds something of all cores."""
    shape = stack.shape[1:]
    return View(stack).slice([number, *[0] * len(shape)], [1, *shape]).reshape(shape)


def _straight(block: ir.Block) -> Iterator[ir.Operation]:
    """What each core does once, in order: a block's operations, and those of regions that hand on nothing."""
    *operations, _ = block.operations
    for view in operations:
        op = view.operation
        if op.name == "tpu.region" and not len(op.results):
            yield from _straight(op.regions[0].blocks[0])
        else:
            yield op


def operations_of(block: ir.Block) -> Iterator[ir.Operation]:
    """Those of a block, and all that are nested in them."""
    for op in block.operations:
        yield from nested(op.operation)


def copies_to_cores(block: ir.Block) -> Iterator[ir.Operation]:
    """The copies to what may be another core."""
    return (op for op in operations_of(block) if op.name == "tpu.enqueue_dma" and names_another(op))


def names_another(op: ir.Operation) -> bool:
    """Whether an operation names a core or a subcore that may be another than the one that it runs on."""
    return any(named(op, name) is not None and not is_own_core(op, name) for name in ("core_id", "subcore_id"))


def _inside(op: ir.Operation) -> Iterator[ir.Operation]:
    """What is nested in an operation, itself left out."""
    for region in op.regions:
        for block in region.blocks:
            yield from operations_of(block)
