"""Recognising the loop that `jax.vmap` makes of a kernel whose grid it can't batch.

A loop around such a loop that goes over a second batch is one with it: of `jax.vmap` of `jax.vmap` there are two.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from jaxlib.mlir import ir

from mosaic_grid.batching.body import Batched, Body, Operand, RefusalError, Shared
from mosaic_grid.dataflow.control import Function
from mosaic_grid.dataflow.loop_bodies import loop_around
from mosaic_grid.ir_types import Value
from mosaic_grid.objections import Objection
from mosaic_grid.program import Launch

_COMPUTED = "operand {} of the launch is neither the same in each iteration nor its slice"
_REPEATED = "each iteration of the loop launches the kernel with the same operands"


@dataclasses.dataclass(frozen=True)
class Loop:
    """A loop over a batch, or several in each other: `op` is the outermost, `sizes` how often each runs, it first.

    `outputs` has the result of the loop that collects each of the launch's, and `axes` the axes of it along which the
    loops do. `rest` are the loop's other results: what it passes on, or the last values of counters.
    """

    op: ir.Operation
    launch: Launch
    sizes: tuple[int, ...]
    operands: tuple[Operand, ...]
    outputs: tuple[int, ...]
    axes: tuple[tuple[int, ...], ...]
    rest: Mapping[int, Value | int]

    @property
    def size(self) -> int:
        """How many elements there are: one for each launch."""
        return math.prod(self.sizes)


def recognize(launch: Launch, functions: Mapping[str, Function]) -> Loop | Objection:
    """The loop around a launch, or why it isn't one over a batch. Nothing is changed. The launch is in a loop."""
    try:
        return _recognized(launch, functions)
    except RefusalError as refusal:
        return refusal.objection


def _recognized(launch: Launch, functions: Mapping[str, Function]) -> Loop:
    around = loop_around(launch.op)
    assert around is not None, "the launch is in no loop"
    body = Body.of(around, launch.op, functions)
    collected = body.outputs(range(len(launch.op.results)))
    operands: list[Operand] = []
    for number, value in enumerate(launch.op.operands):
        found = body.operand(value)
        if found is None:
            raise RefusalError(_COMPUTED.format(number), launch.op)
        operands.append(found)
    if not any(isinstance(each, Batched) for each in operands):
        raise RefusalError(_REPEATED, launch.op)
    outputs, axes = tuple(number for number, _ in collected), tuple((axis,) for _, axis in collected)
    sizes = (body.iterations.count,)
    return Loop(around, launch, sizes, tuple(operands), outputs, axes, {**body.unchanged, **body.last})


def widened(loop: Loop, functions: Mapping[str, Function]) -> Loop | Objection | None:
    """The loop together with the one around it, if that one goes over elements of a batch too, else why it doesn't.

    `None` where there is no loop around it. Nothing is changed.
    """
    around = loop_around(loop.op)
    if around is None:
        return None
    try:
        return _widened(loop, around, functions)
    except RefusalError as refusal:
        return refusal.objection


def _widened(loop: Loop, around: ir.Operation, functions: Mapping[str, Function]) -> Loop:
    body = Body.of(around, loop.op, functions)
    collected = body.outputs(loop.outputs)
    found: list[Operand] = []
    for number, each in enumerate(loop.operands):
        joined = _joined(each, body, len(loop.sizes))
        if joined is None:
            raise RefusalError(_COMPUTED.format(number), loop.launch.op)
        found.append(joined)
    if not any(isinstance(each, Batched) and each.axes[0] is not None for each in found):
        raise RefusalError(_REPEATED, loop.launch.op)
    outputs = tuple(number for number, _ in collected)
    axes = tuple((axis, *_behind(axis, inner)) for (_, axis), inner in zip(collected, loop.axes, strict=True))
    sizes = (body.iterations.count, *loop.sizes)
    return Loop(around, loop.launch, sizes, tuple(found), outputs, axes, {**body.unchanged, **body.last})


def _joined(inner: Operand, body: Body, depth: int) -> Operand | None:
    """How the loops around a launch get an operand, `inner` being how the `depth` inner ones do."""
    value = inner.source if isinstance(inner, Batched) else inner.value
    axes: tuple[int | None, ...] = inner.axes if isinstance(inner, Batched) else (None,) * depth
    outer = body.operand(value)
    if isinstance(outer, Batched):
        (axis,) = outer.axes
        assert axis is not None, "a slice is along an axis"
        return Batched(outer.source, (axis, *(each if each is None else _moved(axis, each) for each in axes)))
    if outer is None or isinstance(inner, Shared):
        return outer
    return Batched(outer.value, (None, *axes))


def _behind(axis: int, inner: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(_moved(axis, each) for each in inner)


def _moved(axis: int, inner: int) -> int:
    """The number that an axis of an element has in the array of which the element is a slice along `axis`."""
    return inner if inner < axis else inner + 1
