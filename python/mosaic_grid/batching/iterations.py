"""What the integer scalars of a loop's body are in each of its iterations, as numbers.

A loop over a batch runs a known number of times, and what it slices with depends on its counters only: so nothing has
to be proved of an expression, it is computed for every iteration.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from jaxlib.mlir import ir

from mosaic_grid.dataflow.control import Function, defining, operand
from mosaic_grid.dataflow.kernel_ops import scalar_type
from mosaic_grid.ir_types import Argument, Value

Numbers: TypeAlias = tuple[int, ...]

_DEPTH = 64
"""No index is computed in so many steps; what is deeper isn't followed."""

_LONGEST = 16
"""No array has more dimensions to be indexed by."""

_BINARY: dict[str, Callable[[int, int], int]] = {
    "stablehlo.add": operator.add,
    "stablehlo.subtract": operator.sub,
    "stablehlo.multiply": operator.mul,
    "stablehlo.minimum": min,
    "stablehlo.maximum": max,
}
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
    "EQ": operator.eq,
    "NE": operator.ne,
}
_SAME = frozenset({"stablehlo.convert", "stablehlo.reshape", "stablehlo.optimization_barrier"})


@dataclasses.dataclass(frozen=True)
class Place:
    """A value of the loop's body, or of a function that it calls: then `calls` are the calls, the innermost last."""

    value: Value
    calls: tuple[ir.Operation, ...] = ()


@dataclasses.dataclass(frozen=True)
class Iterations:
    """The iterations of a loop: how many, and the first value and the step of each counter that it carries."""

    body: ir.Block
    count: int
    counters: Mapping[int, tuple[int, int]]
    functions: Mapping[str, Function]

    def source(self, place: Place) -> Place:
        """Where a value comes from: the operation that computes it, or an argument of the body; calls are entered."""
        for _ in range(_DEPTH):
            value = place.value
            if isinstance(value, ir.BlockArgument):
                if not place.calls or value.owner == self.body:
                    return place
                *outer, call = place.calls
                place = Place(operand(call, value.arg_number), tuple(outer))
                continue
            op, number = defining(value)
            results = self._results(op)
            if results is None:
                return place
            place = Place(results[number], (*place.calls, op))
        return place

    def numbers(self, place: Place, depth: int = _DEPTH) -> tuple[Numbers, ...] | None:
        """The entries of an integer scalar, or of a tensor of one dimension, each in every iteration.

        `None` where something isn't followed.
        """
        place = self.source(place)
        tensor = ir.RankedTensorType(place.value.type)
        kind = scalar_type(tensor.element_type)
        if kind is None or not depth or tensor.rank > 1 or (size := math.prod(tensor.shape)) > _LONGEST:
            return None
        if isinstance(place.value, ir.BlockArgument):
            counter = self.counters.get(place.value.arg_number) if place.value.owner == self.body else None
            return None if counter is None else (tuple(counter[0] + counter[1] * k for k in range(self.count)),)
        op, _ = defining(place.value)
        if op.name == "stablehlo.constant":
            elements = op.attributes["value"]
            integers = entries_of(elements) if isinstance(elements, ir.DenseIntElementsAttr) else []
            return tuple((integer,) * self.count for integer in integers) if len(integers) == size else None
        parts: list[tuple[Numbers, ...]] = []
        for part in op.operands:
            numbers = self.numbers(Place(part, place.calls), depth - 1)
            if numbers is None:
                return None
            parts.append(numbers)
        computed = _compute(op, parts, size)
        fits = computed is not None and all(kind.range.lo <= n <= kind.range.hi for each in computed for n in each)
        return computed if fits else None

    def _results(self, op: ir.Operation) -> Sequence[Value] | None:
        if op.name != "func.call":
            return None
        function = self.functions.get(ir.FlatSymbolRefAttr(op.attributes["callee"]).value)
        return function.results if function is not None else None


def constant_of(value: Value) -> int | None:
    """The number that an integer constant of one element, or of equal ones, has."""
    if not isinstance(value, ir.OpResult) or defining(value)[0].name != "stablehlo.constant":
        return None
    elements = defining(value)[0].attributes["value"]
    if not isinstance(elements, ir.DenseIntElementsAttr) or not len(elements):
        return None
    return int(elements[0]) if len(elements) == 1 or elements.is_splat else None


def entries_of(elements: ir.DenseIntElementsAttr) -> list[int]:
    """The integers of an attribute, in order."""
    return [int(elements[k]) for k in range(len(elements))]


def counter_of(body: ir.Block, number: int) -> int | None:
    """By how much the body adds to what it carries as its argument `number`; `None` where it does something else."""
    argument: Argument = body.arguments[number]
    carried = operand(body.operations[-1].operation, number)
    if not isinstance(carried, ir.OpResult) or defining(carried)[0].name != "stablehlo.add":
        return None
    one, other = defining(carried)[0].operands
    if ir.RankedTensorType(argument.type).rank or argument not in (one, other):
        return None
    return constant_of(other if one == argument else one)


def _compute(op: ir.Operation, parts: Sequence[tuple[Numbers, ...]], size: int) -> tuple[Numbers, ...] | None:
    """The entries of an operation's result, of which there are `size`, from those of its operands."""
    if op.name == "stablehlo.concatenate":
        return tuple(numbers for part in parts for numbers in part)
    if op.name == "stablehlo.broadcast_in_dim":
        return parts[0] * size if len(parts[0]) == 1 else None
    if any(len(part) != size for part in parts):
        return None
    entries = [_computed(op, values) for values in zip(*parts, strict=True)]
    return tuple(numbers for numbers in entries if numbers is not None) if None not in entries else None


def _computed(op: ir.Operation, values: Sequence[Numbers]) -> Numbers | None:
    """One entry in every iteration."""
    if op.name in _SAME and len(values) == 1:
        return values[0]
    if op.name in _BINARY:
        return tuple(map(_BINARY[op.name], *values))
    if op.name == "stablehlo.select":
        return tuple(then if condition else other for condition, then, other in zip(*values, strict=True))
    if op.name == "stablehlo.clamp":
        return tuple(min(max(number, low), high) for low, number, high in zip(*values, strict=True))
    return _compared(op, values) if op.name == "stablehlo.compare" else None


def _compared(op: ir.Operation, values: Sequence[Numbers]) -> Numbers:
    direction = str(op.attributes["comparison_direction"]).removeprefix("#stablehlo<comparison_direction ")
    compare = _COMPARISONS[direction.removesuffix(">")]
    return tuple(int(compare(one, other)) for one, other in zip(*values, strict=True))
