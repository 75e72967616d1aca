"""Cores that wait for each other: all of them run up to a wait, or a barrier, before one of them goes on.

A kernel that does so has one step for each core. Its body is cut at the waits and barriers that it has outside of
conditions and loops, and each part is run for one core after the other. So a wait comes after all signals that are sent
before it, as long as the cores run the same code, which barriers between them take for granted. The subcores of a core
have its shared memory in common.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence

from jaxlib.mlir import ir

from mosaic_grid.cpu.build import Index
from mosaic_grid.cpu.grid import Core
from mosaic_grid.cpu.lowering import Lowered, Unsupported
from mosaic_grid.cpu.roots import Kind, Root
from mosaic_grid.cpu.touches import nested
from mosaic_grid.cpu.types import lowered_element
from mosaic_grid.cpu.views import View
from mosaic_grid.dataflow.effects import named
from mosaic_grid.ir_types import Value

_WAITS = ("tpu.sem_wait", "tpu.barrier")
_SHARED = "vmem_shared"


def meet(body: ir.Block) -> bool:
    """Whether the cores that run a kernel's body may signal each other, or have barriers."""
    return any(
        inner.name == "tpu.barrier" or (inner.name == "tpu.sem_signal" and named(inner, "core_id") is not None)
        for inner in _all(body)
    )


def can_meet(core: Core) -> bool:
    """Whether cores that do so are known how to run: they have one step each, and nobody watches them."""
    low = core.low
    return not core.axes and low.watch is None and low.late is None and all(isinstance(n, int) for n in low.bounds)


@dataclasses.dataclass
class _One:
    """One of the cores: its indices, what it has computed, and the memory that is its own."""

    fixed: list[Index]
    values: dict[Value, Lowered]
    memory: dict[Root, Value]
    indices: list[Value]
    places: list[list[Index]]


def run_in_lockstep(core: Core, axes: Sequence[int], counts: Sequence[int]) -> None:
    """Runs the cores, `counts` of them along each of the grid's dimensions `axes`; each has one step."""
    low = core.low
    operations = list(_straight(core.body))
    for op in operations:
        for inner in _all_in(op):
            if inner.name in _WAITS:
                reason = "a wait inside of a condition or a loop, in a kernel whose cores wait for each other"
                low.unsupported.append(Unsupported(inner.name, reason, inner.location))
    places = list(itertools.product(*map(range, counts)))
    common = _common_scratch(core)
    stacks = {
        root: Root(f"every core's {root.name}", (len(places), *root.shape), root.element, root.kind, root.location)
        for root in core.scratch
        if root.kind is Kind.SEMAPHORE or root in common
    }
    allocated = {
        op.results[0]: Root("every core's semaphore", (len(places), *kind.shape), lowered_element(kind.element_type),
                            Kind.SEMAPHORE, op.location)
        for op in operations
        if op.name == "tpu.sem_alloc" and (kind := ir.MemRefType(op.results[0].type)).has_static_shape
    }  # fmt: skip
    for stack in (*stacks.values(), *allocated.values()):
        low.forget(stack)
        low.memory.rewritten.add(stack)
    low.semaphores_of_cores = frozenset([*stacks.values(), *allocated.values()])
    shared = set(low.memory.state) - set(core.carried)
    first = _first_of_core(core, axes, places)
    ones = []
    for number, place in enumerate(places):
        rows = {root: _row(stack, first[number] if root in common else number) for root, stack in stacks.items()}
        ones.append(_start(core, axes, place, rows, shared))
    for part in _parts(operations):
        for number, one in enumerate(ones):
            _enter(core, one, shared)
            for op in part:
                made = allocated.get(op.results[0]) if len(op.results) else None
                if made is None:
                    low.operation(op)
                else:
                    low.define(op.results[0], _row(made, number))
            _leave(core, one, shared)
    for one in ones:
        _enter(core, one, shared)
        core.leave(one.places)
        core.finish()
        _leave(core, one, shared)
    low.memory.state = {root: value for root, value in low.memory.state.items() if root in shared}


def _start(
    core: Core,
    axes: Sequence[int],
    place: Sequence[int],
    rows: Mapping[Root, View],
    shared: set[Root],
) -> _One:
    low = core.low
    fixed: list[Index] = [0] * len(low.bounds)
    for axis, index in zip(axes, place, strict=True):
        fixed[axis] = index
    core.start(fixed)
    indices, places = core.enter(fixed)
    arguments: list[Lowered] = [*indices, *(rows.get(view.root, view) for view in core.arguments)]
    for argument, value in zip(core.body.arguments, arguments, strict=True):
        low.define(argument, value)
    one = _One(fixed, {}, {}, indices, places)
    _leave(core, one, shared)
    return one


def _common_scratch(core: Core) -> set[Root]:
    """The scratch that the subcores of a core have in common."""
    arguments = list(core.body.arguments)[-len(core.arguments) :]
    spaces = zip(arguments, core.arguments, strict=True)
    return {view.root for argument, view in spaces if _SHARED in str(ir.MemRefType(argument.type).memory_space)}


def _first_of_core(core: Core, axes: Sequence[int], places: Sequence[Sequence[int]]) -> list[int]:
    """Of each place, the number of the first one that is on the same core: they differ in the subcore alone."""
    words = ir.ArrayAttr(core.body.owner.attributes["dimension_semantics"])
    cores = [n for n, axis in enumerate(axes) if "subcore_parallel" not in str(words[axis])]
    seen: dict[tuple[int, ...], int] = {}
    return [seen.setdefault(tuple(place[n] for n in cores), number) for number, place in enumerate(places)]


def _row(stack: Root, number: int) -> View:
    """A core's part of what holds something of all cores."""
    shape = stack.shape[1:]
    return View(stack).slice([number, *[0] * len(shape)], [1, *shape]).reshape(shape)


def _enter(core: Core, one: _One, shared: set[Root]) -> None:
    low = core.low
    low.translated(one.values)
    low.indices = one.indices
    kept = {root: value for root, value in low.memory.state.items() if root in shared}
    low.memory.state = kept | one.memory


def _leave(core: Core, one: _One, shared: set[Root]) -> None:
    low = core.low
    one.values = low.translated({})
    one.memory = {root: value for root, value in low.memory.state.items() if root not in shared}


def _parts(operations: Sequence[ir.Operation]) -> Iterator[list[ir.Operation]]:
    """The operations in pieces, each of which begins with a wait or is the first."""
    part: list[ir.Operation] = []
    for op in operations:
        if op.name in _WAITS:
            yield part
            part = []
        part.append(op)
    yield part


def _straight(block: ir.Block) -> Iterator[ir.Operation]:
    """What each core does once, in order: a block's operations, and those of regions that hand on nothing."""
    *operations, _ = block.operations
    for view in operations:
        op = view.operation
        if op.name == "tpu.region" and not len(op.results):
            yield from _straight(op.regions[0].blocks[0])
        else:
            yield op


def _all(block: ir.Block) -> Iterator[ir.Operation]:
    for op in block.operations:
        yield from nested(op.operation)


def _all_in(op: ir.Operation) -> Iterator[ir.Operation]:
    """What is nested in an operation, itself left out."""
    for region in op.regions:
        for block in region.blocks:
            yield from _all(block)
