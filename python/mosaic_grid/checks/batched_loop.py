"""`vmap-became-loop`: a loop of the outer program that launches a kernel on one element of a batch after the other.

It is told by what it does: the launch takes a slice that the loop's counter chooses as a bound or a prefetch operand,
its results go into an output with `dynamic_update_slice`, and no iteration uses what another has computed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from jaxlib.mlir import ir

from mosaic_grid.checks.subject import Subject
from mosaic_grid.dataflow.control import Function, functions_of
from mosaic_grid.dataflow.outer import OuterScalars
from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.ir_types import Value
from mosaic_grid.objections import Objection
from mosaic_grid.program import Launch
from mosaic_grid.summary.cores import axes_text

NAME = "vmap-became-loop"
_BOUND = "make the batch a dimension of the grid, the largest bound its bound, and skip what is beyond it"
_TABLE = "make the batch a dimension of the grid, and let the index maps look at its entry of the prefetch operand"
_WHILE, _UPDATE, _CALL = "stablehlo.while", "stablehlo.dynamic_update_slice", "func.call"


def batched_loop(subject: Subject) -> Iterator[Diagnostic]:
    """A warning for each launch in such a loop."""
    launches = [launch for launch in subject.joined.launches if launch.kernel.symbol == subject.kernel.symbol]
    if not any(_enclosing_loop(launch.op) for launch in launches):
        return
    functions = functions_of(subject.joined.module)
    for launch in launches:
        loop = _enclosing_loop(launch.op)
        if loop is None:
            continue
        carried = _Carried.of(loop, functions)
        sliced = [number for number, value in enumerate(launch.op.operands) if carried.steps(value)]
        table = [number for number in sliced if number < len(launch.bounds) + launch.kernel.prefetch_count]
        if table and carried.collects(launch.op):
            count = _iterations(loop)
            times = f"{count} times" if count else "in each iteration"
            cause = _cause(subject, launch, table)
            message = f"a loop launches this kernel {times}, for one element of a batch each: {cause}"
            by_hand = _BOUND if table[0] < len(launch.bounds) else _TABLE
            notes = [note(text) for text in _advice(subject, launch, functions, by_hand)]
            yield subject.say(NAME, Severity.WARNING, message, "loop", at=launch.op.location, notes=notes)


def _advice(subject: Subject, launch: Launch, functions: dict[str, Function], by_hand: str) -> Iterator[str]:
    """What to do about a loop: asked of the pass itself, so that what it refuses isn't advised."""
    from mosaic_grid.batching.loop import recognize
    from mosaic_grid.batching.plan import make_plan

    loop = recognize(launch, functions)
    contracts = [contract.text for contract in subject.scalars.promises.contracts]
    plan = loop if isinstance(loop, Objection) else make_plan(loop, OuterScalars(subject.joined.module, contracts))
    if isinstance(plan, Objection):
        yield f"batch-grid leaves the loop as it is: {plan.reason}"
        yield by_hand
    else:
        yield f"{subject.ways.done('batch-grid makes one launch of the loop')}; or {by_hand}"


def _cause(subject: Subject, launch: Launch, numbers: list[int]) -> str:
    """What it is that a grid has no dimension for."""
    dynamic = launch.kernel.dynamic_dimensions
    axes = [dynamic[number] for number in numbers if number < len(dynamic)]
    if axes:
        return f"the bound of {axes_text(axes)} differs, and a vmapped bound becomes a loop"
    table = subject.operand(len(launch.kernel.grid) + numbers[0] - len(dynamic))
    return f"{table} differs, and a vmapped prefetch operand becomes a loop"


def _enclosing_loop(op: ir.Operation) -> ir.Operation | None:
    """The innermost loop of the function around an operation that has it in its body."""
    while op.parent is not None:
        inside, op = op.block.region, op.parent.operation
        if op.name == _WHILE:
            return op if inside == op.regions[1] else None
    return None


@dataclasses.dataclass(frozen=True)
class _Carried:
    """What a loop carries from one iteration to the next, by number.

    `counters` depend on themselves and on constants only, `unchanged` are passed on as they are, `outputs` are only
    updated, with what `updates` has for them.
    """

    body: ir.Block
    counters: frozenset[int]
    unchanged: frozenset[int]
    outputs: frozenset[int]
    updates: dict[int, list[Value]]

    @classmethod
    def of(cls, loop: ir.Operation, functions: dict[str, Function]) -> _Carried:
        body = loop.regions[1].blocks[0]
        yielded = list(body.operations[-1].operation.operands)
        arguments = list(body.arguments)
        unchanged = frozenset(k for k, value in enumerate(yielded) if value == arguments[k])
        needs = {k: _depends_on(value, body) for k, value in enumerate(yielded) if k not in unchanged}
        updates = {k: update for k in needs if (update := _update(yielded[k], arguments[k], functions)) is not None}
        counters = set(needs) - set(updates)
        # a counter that needs something else is none; then neither is one that needs that
        while bad := {k for k in counters if not needs[k] <= counters or _holds_arrays(arguments[k])}:
            counters -= bad
        return cls(body, frozenset(counters), unchanged, frozenset(updates), updates)

    def steps(self, value: Value) -> bool:
        """Whether a value of the body is chosen by the counters, from what no iteration changes."""
        needs = _depends_on(value, self.body)
        return bool(needs & self.counters) and needs <= self.counters | self.unchanged

    def collects(self, launch: ir.Operation) -> bool:
        """Whether the launch's results only go into outputs, and nothing of one iteration into another."""
        every = self.counters | self.unchanged | self.outputs
        if len(every) < len(list(self.body.arguments)):
            return False
        free = self.counters | self.unchanged
        updates = [value for values in self.updates.values() for value in values]
        independent = all(_depends_on(value, self.body) <= free for value in updates)
        needed = all(_depends_on(operand, self.body) <= free for operand in launch.operands)
        return independent and needed and any(_uses(value, launch) for value in updates)


def _holds_arrays(value: Value) -> bool:
    return bool(ir.ShapedType(value.type).rank)


def _depends_on(value: Value, body: ir.Block) -> set[int]:
    """The numbers of the loop-carried values that a value of the body is computed from."""
    return {v.arg_number for v in _behind(value) if isinstance(v, ir.BlockArgument) and v.owner == body}


def _uses(value: Value, op: ir.Operation) -> bool:
    return any(isinstance(v, ir.OpResult) and v.owner.operation == op for v in _behind(value))


def _behind(value: Value) -> Iterator[Value]:
    """All that a value is computed from, itself included; an operation with regions uses what they use."""
    seen: set[Value] = set()
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        yield value
        if isinstance(value, ir.OpResult):
            waiting += _used_by(value.owner.operation)


def _used_by(op: ir.Operation) -> list[Value]:
    if not len(op.regions):
        return list(op.operands)
    used: list[Value] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        used.extend(inner.operands)
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return used


def _update(value: Value, argument: Value, functions: dict[str, Function]) -> list[Value] | None:
    """What is put into the carried array `argument`, and where, if `value` is that with a slice replaced and no more.

    Nothing else may look at the array.
    """
    if not isinstance(value, ir.OpResult) or sum(1 for _ in argument.uses) != 1:
        return None
    op = value.owner.operation
    if op.name == _UPDATE and op.operands[0] == argument:
        return list(op.operands)[1:]
    if op.name == _CALL:
        function = functions.get(ir.FlatSymbolRefAttr(op.attributes["callee"]).value)
        results = function.results if function else None
        numbers = [number for number, operand in enumerate(op.operands) if operand == argument]
        if function and results and len(results) == len(numbers) == 1:
            inner = function.op.regions[0].blocks[0].arguments
            if _update(results[0], inner[numbers[0]], functions) is not None:
                return [operand for operand in op.operands if operand != argument]
    return None


def _iterations(loop: ir.Operation) -> int | None:
    """How often a loop runs that counts from 0 to a constant."""
    test = loop.regions[0].blocks[0].operations[-1].operation.operands[0]
    if not isinstance(test, ir.OpResult) or test.owner.operation.name != "stablehlo.compare":
        return None
    compare = test.owner.operation
    limit, start = compare.operands[1], compare.operands[0]
    if "LT" not in str(compare.attributes["comparison_direction"]) or not isinstance(start, ir.BlockArgument):
        return None
    return _constant(limit) if _constant(loop.operands[start.arg_number]) == 0 else None


def _constant(value: Value) -> int | None:
    if not isinstance(value, ir.OpResult) or value.owner.operation.name != "stablehlo.constant":
        return None
    elements = value.owner.operation.attributes["value"]
    if not isinstance(elements, ir.DenseIntElementsAttr) or len(elements) != 1:
        return None
    return int(elements[0])
