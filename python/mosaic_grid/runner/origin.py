"""Which launch an element of a program's result comes from: back from what `@main` returns to what a launch does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from jaxlib.mlir import ir

from mosaic_grid.dataflow.control import defining
from mosaic_grid.program import KERNEL, Launch, Program
from mosaic_grid.runner.inline import inline_call

Element: TypeAlias = tuple[int, ...]


class NotKnownError(Exception):
    """Where an element was written can't be told; the message is a clause that says why."""


def origin(program: ir.Operation, main: ir.Operation, result: int, element: Element) -> tuple[Launch, int, Element]:
    """The launch, in the block of `@main`, that an element of a result comes from, in which of its results and where.

    Calls on the way are replaced by what they call. Raises `NotKnownError` where something is computed on the way.
    """
    value = main.regions[0].blocks[0].operations[-1].operation.operands[result]
    while True:
        if isinstance(value, ir.BlockArgument):
            raise NotKnownError("the program returns an argument as it is")
        op, number = defining(value)
        if op.name == "func.call":
            inlined = inline_call(op, program)
            if inlined is None:
                raise NotKnownError("it comes out of a function without a body")
            value = inlined[number].maybe_downcast()
        elif op.name in _MOVING:
            value, element = op.operands[0].maybe_downcast(), _MOVING[op.name](op, element)
        elif op.name == "stablehlo.optimization_barrier":
            value = op.operands[number].maybe_downcast()
        elif KERNEL in op.attributes:
            launch = next(launch for launch in Program(program).launches if launch.op == op)
            return launch, number, element
        else:
            raise NotKnownError(f"no launch wrote it: {op.name} computed it")


def _reshape(op: ir.Operation, element: Element) -> Element:
    before, after = (list(ir.RankedTensorType(value.type).shape) for value in (op.operands[0], op.results[0]))
    flat = int(np.ravel_multi_index(element, after)) if after else 0
    return tuple(int(k) for k in np.unravel_index(flat, before)) if before else ()


def _transpose(op: ir.Operation, element: Element) -> Element:
    order = _numbers(op, "permutation")
    return tuple(element[order.index(axis)] for axis in range(len(order)))


def _slice(op: ir.Operation, element: Element) -> Element:
    starts, strides = _numbers(op, "start_indices"), _numbers(op, "strides")
    return tuple(start + k * stride for start, k, stride in zip(starts, element, strides, strict=True))


def _numbers(op: ir.Operation, name: str) -> list[int]:
    return list(ir.DenseI64ArrayAttr(op.attributes[name]))


_MOVING: dict[str, Callable[[Any, Element], Element]] = {
    "stablehlo.reshape": _reshape,
    "stablehlo.transpose": _transpose,
    "stablehlo.slice": _slice,
    "stablehlo.convert": lambda op, element: element,
}
"""Operations whose result is their operand with its elements elsewhere, or as another type."""
