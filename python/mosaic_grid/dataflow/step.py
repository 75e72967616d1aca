"""A walk over one step of a kernel: what it reads without having written it, what it writes, what it leaves under way.

Memory is only ever added to what is written, so one walk over a loop's body from the state before the loop answers for
all of its iterations: the first one has the least behind it. Loops of few iterations are walked one by one, with the
values their scalars then have.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.dataflow.effects import Effect, effect_of, is_memory, named
from mosaic_grid.dataflow.memory import PRNG, Box, Root, View, whole
from mosaic_grid.dataflow.scalars import Scalars
from mosaic_grid.dataflow.step_state import State, Transfer
from mosaic_grid.dataflow.uses import is_dead
from mosaic_grid.dataflow.views import access, amount_of, view_of
from mosaic_grid.ir_types import Value

_MOST_ITERATIONS = 32
_MOST_OPERATIONS = 40_000


@dataclasses.dataclass(frozen=True)
class Access:
    """A read or a write; `guards` are the undecided conditions around it (a loop that may not run is one)."""

    op: ir.Operation
    root: Root
    box: Box | None
    guards: tuple[sym.Expr, ...]


@dataclasses.dataclass
class Findings:
    """What walks over a step found.

    `uncovered` pairs a read with what the step had written conditionally of that buffer before it.
    """

    uncovered: list[tuple[Access, tuple[Access, ...]]] = dataclasses.field(default_factory=list)
    reads: list[Access] = dataclasses.field(default_factory=list[Access])
    writes: list[Access] = dataclasses.field(default_factory=list[Access])
    unmatched: list[tuple[Root, ir.Operation]] = dataclasses.field(default_factory=list)
    unknown: list[ir.Operation] = dataclasses.field(default_factory=list[ir.Operation])


class Step:
    """One walk; `state` is what is known before it and becomes what is known after it."""

    def __init__(self, scalars: Scalars, state: State, views: dict[Value, View]) -> None:
        self.scalars = scalars
        self.state = state
        self.found = Findings()
        self._views = views
        self._guards: tuple[sym.Expr, ...] = ()
        self._undecided: list[tuple[Access, tuple[Access, ...]]] = []
        self._walked = 0
        self._numbers = 0

    def walk(self, block: ir.Block) -> ir.Operation | None:
        """Runs the operations of a block in order and returns its terminator."""
        last: ir.Operation | None = None
        outside, self._undecided = self._undecided, []
        for view in block.operations:
            last = view.operation
            self._walked += 1
            _HANDLERS.get(effect_of(last), _unknown)(self, last)
        # now the scalars of this block are known, and with them which loads are selected away
        self.found.uncovered += [(access, b) for access, b in self._undecided if not is_dead(access.op, self._known)]
        self._undecided = outside
        return last

    def finish(self) -> None:
        """Notes what is still under way where the step ends."""
        self.found.unmatched += [(transfer.semaphore, transfer.op) for transfer in self.state.transfers]

    # -- memory

    def view(self, value: Value) -> View | None:
        """The view behind a memref; None where it can't be told what it shows."""
        return self._views.get(value)

    def show(self, value: Value, view: View) -> None:
        """Says what a memref shows."""
        self._views[value] = view

    def read(self, op: ir.Operation, root: Root, box: Box | None) -> None:
        """Notes a read, and whether the step has written all of it."""
        if is_dead(op) and len(op.results):
            return
        access = Access(op, root, box, self._guards)
        self.found.reads.append(access)
        if not self.state.has(root, box):
            before = tuple(write for write in self.found.writes if write.root == root)
            # a store that reads has no results, so nothing could show it dead
            (self._undecided if len(op.results) else self.found.uncovered).append((access, before))

    def write(self, op: ir.Operation, root: Root, box: Box | None, covers: bool) -> None:
        """Notes a write; one that `covers` leaves no element of the box as it was."""
        self.found.writes.append(Access(op, root, box, self._guards))
        if covers and box is not None:
            self.state.write(root, box)

    def start(self, op: ir.Operation, semaphore: View, amount: tuple[object, ...], target: View | None) -> None:
        """Notes a copy, or a signal, that will be waited for."""
        self._numbers += 1
        self.state.start(Transfer(semaphore.root, semaphore.box, amount, target, op, self._numbers))

    def wait(self, op: ir.Operation, semaphore: View, amount: tuple[object, ...]) -> None:
        """Notes a wait."""
        if not self.state.wait(semaphore.root, semaphore.box, amount):
            self.found.unmatched.append((semaphore.root, op))

    def private(self, value: Value) -> None:
        """Gives the result of an allocation a buffer of its own."""
        self._numbers += 1
        shape = tuple(value.type.shape) if isinstance(value.type, ir.MemRefType) else ()
        self.show(value, whole(Root(None, shape, self._numbers)))

    def _known(self, value: Value) -> int | None:
        return sym.constant_of(self.scalars.of(value)) if _is_scalar(value) else None

    # -- control

    def branch(self, op: ir.Operation) -> None:
        """`scf.if`: the arm that runs, or both where the condition isn't known."""
        condition = self.scalars.of(op.operands[0])
        arms = [region.blocks[0] if len(region.blocks) else None for region in op.regions]
        known = sym.constant_of(condition)
        if known is not None:
            self._pass_on(op, self._run(arms[0 if known else 1]))
            return
        before, ends, given = self.state, [], []
        for arm, guard in zip(arms, (condition, sym.negation(condition)), strict=True):
            self.state = before.under(guard)
            with self._guarded(guard):
                given.append(self._run(arm))
            ends.append(self.state)
        self.state = before
        self.state.join(condition, *ends)
        self.scalars.forget(op.results)
        for result, then, other in zip(op.results, given[0], given[1], strict=False):
            if _is_scalar(result):
                self.scalars.choose(result, condition, then, other)

    def counted_loop(self, op: ir.Operation) -> None:
        """`scf.for`."""
        low, high, step = (self.scalars.of(operand) for operand in list(op.operands)[:3])
        body = op.regions[0].blocks[0]
        bounds = [sym.constant_of(expr) for expr in (low, high, step)]
        match bounds:
            case [int(first), int(end), int(by)] if by > 0 and self._is_short(len(range(first, end, by))):
                self._unrolled(op, body, range(first, end, by))
                return
        runs = sym.comparison("<", low, high)
        if sym.constant_of(runs) == 0:
            self.scalars.forget(op.results)
            return
        index = body.arguments[0]
        values = sym.Range(sym.range_of(low).lo, max(sym.range_of(low).lo, sym.range_of(high).hi - 1))
        self.scalars.set({index: self.scalars.unknown(index.type, values if sym.constant_of(step) != 0 else None)})
        self.scalars.forget(list(body.arguments)[1:])
        self._once_for_all(runs, body)
        self.scalars.forget(op.results)

    def open_loop(self, op: ir.Operation) -> None:
        """`scf.while`: the first region runs at least once, the second as long as the first says so."""
        test, body = (region.blocks[0] for region in op.regions)
        before = self.state.copy()
        self.scalars.forget(test.arguments)
        end = self.walk(test)
        goes_on = self.scalars.of(end.operands[0]) if end is not None else self.scalars.unknown(op.results[0].type)
        self.scalars.forget(body.arguments)
        if sym.constant_of(goes_on) != 0:
            after_test = self.state
            self.state = after_test.under(goes_on)
            with self._guarded(goes_on):
                self._run(body)
            self._differ(self.state.unbalanced(before))
            # the transfers of the last test stay: it is the one that ends the loop
            ended = after_test.under(sym.negation(goes_on))
            after_test.join(goes_on, State(self.state.writes, ended.transfers, ()), ended)
            after_test.transfers = ended.transfers
            self.state = after_test
        self.scalars.forget(op.results)

    def region(self, op: ir.Operation) -> None:
        """Regions that run once."""
        for region in op.regions:
            self._pass_on(op, self._run(region.blocks[0]))

    def _run(self, block: ir.Block | None) -> list[Value]:
        """Runs a block and returns what it yields."""
        end = self.walk(block) if block is not None else None
        return list(end.operands) if end is not None else []

    def _pass_on(self, op: ir.Operation, given: Sequence[Value]) -> None:
        for result, value in zip(op.results, given, strict=False):
            if is_memory(result):
                view = self.view(value)
                if view is not None:
                    self.show(result, view)
            else:
                self.scalars.set({result: self.scalars.of(value)})

    @contextlib.contextmanager
    def _guarded(self, guard: sym.Expr) -> Iterator[None]:
        outside = self._guards
        self._guards = (*outside, guard)
        yield
        self._guards = outside

    def _is_short(self, iterations: int) -> bool:
        return iterations <= _MOST_ITERATIONS and self._walked < _MOST_OPERATIONS

    def _unrolled(self, op: ir.Operation, body: ir.Block, indices: range) -> None:
        carried = [self.scalars.of(value) for value in list(op.operands)[3:]]
        for index in indices:
            values = (sym.constant(index), *carried)
            self.scalars.set(dict(zip(body.arguments, values, strict=True)))
            carried = [self.scalars.of(value) for value in self._run(body)]
        self.scalars.set(dict(zip(op.results, carried, strict=True)))

    def _once_for_all(self, runs: sym.Expr, body: ir.Block) -> None:
        """One walk for every iteration of a loop that has some where `runs` is 1."""
        before = self.state
        start = before.under(runs)
        self.state = start.copy()
        with contextlib.nullcontext() if sym.constant_of(runs) else self._guarded(runs):
            self._run(body)
        self._differ(self.state.unbalanced(start))
        # as many are under way as before, but they need not be the same
        self.state.transfers = tuple(dataclasses.replace(t, target=None) for t in start.transfers)
        if sym.constant_of(runs) is None:
            after, self.state = self.state, before
            self.state.join(runs, after, before.under(sym.negation(runs)))

    def _differ(self, transfers: Sequence[Transfer]) -> None:
        self.found.unmatched += [(transfer.semaphore, transfer.op) for transfer in transfers]


def _is_scalar(value: Value) -> bool:
    return isinstance(value.type, ir.IntegerType | ir.IndexType)


Handler = Callable[[Step, ir.Operation], None]


def _pure(step: Step, op: ir.Operation) -> None:
    step.scalars.evaluate(op)


def _nothing(step: Step, op: ir.Operation) -> None:
    """Nothing to follow."""


def _unknown(step: Step, op: ir.Operation) -> None:
    step.found.unknown.append(op)
    step.scalars.forget(op.results)


def _control(step: Step, op: ir.Operation) -> None:
    if any(len(region.blocks) > 1 for region in op.regions):
        _unknown(step, op)
        return
    handlers = {"scf.if": Step.branch, "scf.for": Step.counted_loop, "scf.while": Step.open_loop}
    handlers.get(op.name, Step.region)(step, op)


def _private(step: Step, op: ir.Operation) -> None:
    step.private(op.results[0])


def _view(step: Step, op: ir.Operation) -> None:
    base = step.view(op.operands[0])
    for result in op.results:
        if base is not None:
            step.show(result, view_of(op, base, step.scalars))


def _read(step: Step, op: ir.Operation) -> None:
    step.scalars.forget(op.results)
    base = step.view(op.operands[0])
    if base is None:
        _unknown(step, op)
        return
    box = access(op, base, 1, step.scalars).box if effect_of(op) is Effect.READ else None
    step.read(op, base.root, box)


def _write(step: Step, op: ir.Operation) -> None:
    base = step.view(op.operands[1])
    if base is None:
        _unknown(step, op)
        return
    if effect_of(op) is Effect.WRITE_SCATTERED:
        step.write(op, base.root, None, covers=False)
        return
    part = access(op, base, 2, step.scalars)
    if part.accumulates:
        step.read(op, base.root, part.box)
    step.write(op, base.root, part.box, covers=part.complete)


def _copy_start(step: Step, op: ir.Operation) -> None:
    indirect = op.name == "tpu.enqueue_indirect_dma"
    source, target, offsets = (_named_view(step, op, name) for name in ("source", "target", "offsets"))
    counters = _semaphores(step, op)
    moved = named(op, "target")
    if source is None or target is None or moved is None or counters is None:
        _unknown(step, op)
        return
    step.read(op, source.root, None if indirect else source.box)
    if offsets is not None:
        step.read(op, offsets.root, offsets.box)
    adds = "add" in op.attributes and bool(ir.BoolAttr(op.attributes["add"]).value)
    if adds:
        step.read(op, target.root, None)
    step.write(op, target.root, None if indirect else target.box, covers=False)
    for counter in counters:
        step.start(op, counter, amount_of(moved, target), None if indirect else target)


def _copy_wait(step: Step, op: ir.Operation) -> None:
    moved = named(op, "target") or named(op, "dst")
    target = step.view(moved) if moved is not None else None
    counters = _semaphores(step, op)
    if moved is None or target is None or counters is None:
        _unknown(step, op)
        return
    for counter in counters:
        step.wait(op, counter, amount_of(moved, target))


def _named_view(step: Step, op: ir.Operation, name: str) -> View | None:
    value = named(op, name)
    return step.view(value) if value is not None else None


def _semaphores(step: Step, op: ir.Operation) -> list[View] | None:
    """The semaphores of a copy or a wait; None where one can't be told."""
    given = [named(op, name) for name in ("semaphore", "source_semaphore", "target_semaphore")]
    views = [step.view(value) for value in given if value is not None]
    known = [view for view in views if view is not None]
    return known if len(known) == len(views) else None


def _signal(step: Step, op: ir.Operation) -> None:
    counter = step.view(op.operands[0])
    if counter is None:
        _unknown(step, op)
        return
    amount = ("count", step.scalars.of(op.operands[1]))
    if effect_of(op) is Effect.SIGNAL:
        step.start(op, counter, amount, None)
    else:
        step.wait(op, counter, amount)


def _seed(step: Step, op: ir.Operation) -> None:
    step.write(op, PRNG, (), covers=True)


def _random(step: Step, op: ir.Operation) -> None:
    step.read(op, PRNG, ())
    step.write(op, PRNG, (), covers=False)


def _sem_read(step: Step, op: ir.Operation) -> None:
    step.scalars.forget(op.results)


_HANDLERS: dict[Effect, Handler] = {
    Effect.PURE: _pure,
    Effect.HINT: _nothing,
    Effect.CONTROL: _control,
    Effect.END: _nothing,
    Effect.PRIVATE: _private,
    Effect.VIEW: _view,
    Effect.READ: _read,
    Effect.READ_SCATTERED: _read,
    Effect.WRITE: _write,
    Effect.WRITE_SCATTERED: _write,
    Effect.COPY_START: _copy_start,
    Effect.COPY_WAIT: _copy_wait,
    Effect.SIGNAL: _signal,
    Effect.SEM_WAIT: _signal,
    Effect.SEM_READ: _sem_read,
    Effect.SEED: _seed,
    Effect.RANDOM: _random,
}
