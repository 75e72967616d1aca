"""The body of a loop over a batch: which slices its operands are, and what its results are collected into.

Each iteration takes its element of the batched operands, launches the kernel once, and puts the results into the
outputs at the same place. It is told by what it does, whatever the operations that choose the places are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from jaxlib.mlir import ir

from mosaic_grid.batching.iterations import Iterations, Place, constant_of, counter_of
from mosaic_grid.batching.pieces import READS, UPDATES, axis_read, axis_updated, update_of
from mosaic_grid.dataflow.control import Function, defining, operand
from mosaic_grid.ir_types import Value
from mosaic_grid.objections import Objection
from mosaic_grid.program import CUSTOM_CALLS, allocates

NAME = "not-batched"
# what may stand in the loop, or in a function that it calls, besides the launch: it computes values and does no more
_NAMES = """
    abs add and broadcast_in_dim clamp compare concatenate constant convert divide floor iota maximum minimum multiply
    negate not optimization_barrier or pad remainder reshape return select sign slice subtract transpose
"""
PURE = frozenset(f"stablehlo.{name}" for name in _NAMES.split()) | READS | UPDATES
_CALLS = frozenset({"func.call", "func.return"})


@dataclasses.dataclass(frozen=True)
class Batched:
    """An operand of which the iterations take one slice after the other; `source` is the same in all of them.

    `axes` are those of the source along which the loops go, the outermost loop first; `None` where one of several loops
    has the same in each of its iterations.
    """

    source: Value
    axes: tuple[int | None, ...]


@dataclasses.dataclass(frozen=True)
class Shared:
    """An operand that is the same in every iteration. `value` is outside, or computed in the loop from such values."""

    value: Value


Operand: TypeAlias = Batched | Shared


class RefusalError(Exception):
    """Why a loop isn't one over a batch, as an `objection`."""

    def __init__(self, reason: str, op: ir.Operation) -> None:
        super().__init__(reason)
        self.objection = Objection(reason, op.location, False, NAME)


@dataclasses.dataclass(frozen=True)
class Body:
    """What `inner`, the launch or a loop over another batch around it, gets and gives in the iterations of a loop.

    `unchanged` are the values that the loop passes on, by number, and `last` those that its counters end with.
    """

    loop: ir.Operation
    inner: ir.Operation
    iterations: Iterations
    unchanged: Mapping[int, Value]
    last: Mapping[int, int]

    @classmethod
    def of(cls, loop: ir.Operation, inner: ir.Operation, functions: Mapping[str, Function]) -> Body:
        """Raises `RefusalError` where the loop does something else than running `inner`, or is of unknown length."""
        body = loop.regions[1].blocks[0]
        if inner.block != body:
            raise RefusalError("in the loop the launch depends on a condition", inner)
        _check_pure(body, inner, functions)
        yielded = list(body.operations[-1].operation.operands)
        unchanged = {k: operand(loop, k) for k, value in enumerate(yielded) if value == body.arguments[k]}
        counters = {
            k: (first, step)
            for k in range(len(yielded))
            if k not in unchanged
            and (first := constant_of(operand(loop, k))) is not None
            and (step := counter_of(body, k)) is not None
        }
        iterations = Iterations(body, _trips(loop, counters, unchanged), counters, functions)
        last = {k: first + step * iterations.count for k, (first, step) in counters.items()}
        return cls(loop, inner, iterations, unchanged, last)

    def outputs(self, results: Sequence[int]) -> list[tuple[int, int]]:
        """For each of these results of `inner` the number of the carried value that collects it, and along which axis.

        Raises `RefusalError` where one isn't collected, or a carried value is anything else.
        """
        collected: dict[int, tuple[int, int]] = {}
        for number in range(len(self.iterations.body.arguments)):
            if number in self.unchanged or number in self.last:
                continue
            found = self._collected(number)
            if found is None or found[0] not in results:
                reason = f"value {number} that the loop carries isn't a collection of results of the launch"
                raise RefusalError(f"{reason}, so an iteration may need what another has computed", self.inner)
            result, axis = found
            if result in collected:
                raise RefusalError(
                    f"two values that the loop carries collect result {result} of the launch", self.inner
                )
            collected[result] = number, axis
        if len(collected) < len(results):
            raise RefusalError("a result of the launch isn't collected by the loop", self.inner)
        return [collected[result] for result in results]

    def _collected(self, number: int) -> tuple[int, int] | None:
        """Which result of `inner` is put into a carried value, as its element along which axis; nothing else is."""
        body = self.iterations.body
        place = self.iterations.source(Place(operand(body.operations[-1].operation, number)))
        if not isinstance(place.value, ir.OpResult):
            return None
        update, _ = defining(place.value)
        axis = axis_updated(update, place.calls, self.iterations)
        if axis is None or self.iterations.source(Place(update.operands[0], place.calls)) != Place(
            body.arguments[number]
        ):  # fmt: skip
            return None
        piece = self.iterations.source(Place(update_of(update), place.calls))
        reshaped = _without_axis(piece, axis)
        source = self.iterations.source(reshaped) if reshaped is not None else piece
        shape = _shape(piece.value)
        if not isinstance(source.value, ir.OpResult) or defining(source.value)[0] != self.inner:
            return None
        return (defining(source.value)[1], axis) if _shape(source.value) == shape[:axis] + shape[axis + 1 :] else None

    def operand(self, value: Value) -> Operand | None:
        """How the iterations get a value; `None` where it is neither the same in each iteration nor its slice."""
        place = self.iterations.source(Place(value))
        sliced = self._slice(place, _shape(value))
        if sliced is not None:
            return sliced
        if not self._is_shared(place.value):
            return None
        outside = place.value
        if isinstance(outside, ir.BlockArgument) and outside.owner == self.iterations.body:
            outside = self.unchanged[outside.arg_number]
        return Shared(outside)

    def _slice(self, place: Place, shape: list[int]) -> Batched | None:
        """The array that a value is the iteration's element of."""
        if not isinstance(place.value, ir.OpResult) or defining(place.value)[0].name != "stablehlo.reshape":
            return None
        place = self.iterations.source(Place(defining(place.value)[0].operands[0], place.calls))
        if not isinstance(place.value, ir.OpResult):
            return None
        op, _ = defining(place.value)
        axis, part = axis_read(op, place.calls, self.iterations), _shape(place.value)
        if axis is None or part[:axis] + part[axis + 1 :] != shape:
            return None
        source = self.iterations.source(Place(op.operands[0], place.calls)).value
        if isinstance(source, ir.BlockArgument) and source.owner == self.iterations.body:
            return Batched(self.unchanged[source.arg_number], (axis,)) if source.arg_number in self.unchanged else None
        return Batched(source, (axis,)) if self._is_shared(source) else None

    def _is_shared(self, value: Value) -> bool:
        """Whether a value is outside of the loop, passed on unchanged, or computed from such values only."""
        waiting, seen = [value], set[Value]()
        while waiting:
            value = waiting.pop()
            if value in seen or self._is_outside(value):
                continue
            seen.add(value)
            if isinstance(value, ir.BlockArgument):
                if value.owner != self.iterations.body or value.arg_number not in self.unchanged:
                    return False
            elif defining(value)[0].name in PURE:
                waiting += defining(value)[0].operands
            else:
                return False
        return True

    def _is_outside(self, value: Value) -> bool:
        """Whether a value is computed before the loop, or is an argument of its function."""
        block = value.owner if isinstance(value, ir.BlockArgument) else defining(value)[0].block
        around: ir.OpView | ir.Operation | None = self.loop
        while around is not None and around.parent is not None:
            if around.operation.block == block:
                return True
            around = around.parent
        return False


def _without_axis(piece: Place, axis: int) -> Place | None:
    """The value of which `piece` is the same with an `axis` of one element."""
    if not isinstance(piece.value, ir.OpResult):
        return None
    op, _ = defining(piece.value)
    others = [k for k in range(len(_shape(piece.value))) if k != axis]
    placed = op.name == "stablehlo.broadcast_in_dim" and others == list(
        ir.DenseI64ArrayAttr(op.attributes["broadcast_dimensions"])
    )
    return Place(op.operands[0], piece.calls) if placed or op.name == "stablehlo.reshape" else None


def _shape(value: Value) -> list[int]:
    return list(ir.RankedTensorType(value.type).shape)


def _check_pure(body: ir.Block, inner: ir.Operation, functions: Mapping[str, Function]) -> None:
    """Raises `RefusalError` where the body does something besides running `inner` and computing values."""
    waiting, seen = [body], set[str]()
    while waiting:
        for view in waiting.pop().operations:
            op = view.operation
            if op == inner or op.name in PURE or allocates(op):
                continue
            if op.name in CUSTOM_CALLS:
                raise RefusalError("the loop has another custom call than the launch", op)
            if op.name not in _CALLS:
                raise RefusalError(f"the loop has a {op.name}, which a loop over a batch has not", op)
            callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value if op.name == "func.call" else ""
            function = functions.get(callee)
            if function is not None and callee not in seen:
                seen.add(callee)
                waiting += function.op.regions[0].blocks


def _trips(loop: ir.Operation, counters: Mapping[int, tuple[int, int]], unchanged: Mapping[int, Value]) -> int:
    """How often a loop runs that counts up to a constant."""
    unknown = RefusalError("how often the loop runs isn't a constant", loop)
    condition = loop.regions[0].blocks[0]
    test = operand(condition.operations[-1].operation, 0)
    if not isinstance(test, ir.OpResult) or defining(test)[0].name != "stablehlo.compare":
        raise unknown
    compare, _ = defining(test)
    count, limit = compare.operands
    if isinstance(limit, ir.BlockArgument) and limit.owner == condition:
        limit = unchanged.get(limit.arg_number, limit)
    end = constant_of(limit)
    if "LT" not in str(compare.attributes["comparison_direction"]) or end is None:
        raise unknown
    if not isinstance(count, ir.BlockArgument) or count.owner != condition:
        raise unknown
    first, step = counters.get(count.arg_number, (end, 0))
    if step != 1 or end <= first:
        raise unknown
    return end - first
