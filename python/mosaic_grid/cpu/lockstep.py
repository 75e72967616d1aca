"""Cores that wait for each other: all of them run up to a wait, or a barrier, before one of them goes on.

All cores are at the same step. Its body is cut at the waits and barriers, and each part is run for one core after the
other. So a wait comes after all signals that are sent before it, as long as the cores run the same code,
which barriers between them take for granted. Loops and conditions around a wait are gone through together, where they
are the same on each core. The subcores of a core have its shared memory in common.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from jaxlib.mlir import ir

from mosaic_grid.cpu.build import Index
from mosaic_grid.cpu.grid import Core
from mosaic_grid.cpu.roots import Kind, Root
from mosaic_grid.cpu.together import Cores, OneCore, leave, operations_of, row_of
from mosaic_grid.cpu.types import lowered_element
from mosaic_grid.cpu.views import View
from mosaic_grid.dataflow.effects import named

_SHARED = "vmem_shared"


def meet(body: ir.Block) -> bool:
    """Whether the cores that run a kernel's body may signal each other, or have barriers."""
    return any(
        inner.name == "tpu.barrier" or (inner.name == "tpu.sem_signal" and named(inner, "core_id") is not None)
        for inner in operations_of(body)
    )


def can_meet(core: Core) -> bool:
    """Whether cores that do so are known how to run: their number is, and nobody watches them."""
    low = core.low
    counts = [n for axis, n in enumerate(low.bounds) if axis not in core.axes]
    return low.watch is None and low.late is None and all(isinstance(n, int) for n in counts)


def run_in_lockstep(core: Core, axes: Sequence[int], counts: Sequence[int]) -> None:
    """Runs the cores, `counts` of them along each of the grid's dimensions `axes`, through the steps that each has."""
    low = core.low
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
        for op in operations_of(core.body)
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
        rows = {root: row_of(stack, first[number] if root in common else number) for root, stack in stacks.items()}
        ones.append(_start(core, axes, place, rows, shared))
    cores = Cores(core, ones, shared, allocated)
    cores.steps()
    cores.each(lambda _: core.finish())
    low.memory.state = {root: value for root, value in low.memory.state.items() if root in shared}


def _start(
    core: Core,
    axes: Sequence[int],
    place: Sequence[int],
    rows: Mapping[Root, View],
    shared: set[Root],
) -> OneCore:
    low = core.low
    fixed: list[Index] = [0] * len(low.bounds)
    for axis, index in zip(axes, place, strict=True):
        fixed[axis] = index
    core.start(fixed)
    for argument, view in zip(list(core.body.arguments)[len(low.bounds) :], core.arguments, strict=True):
        low.define(argument, rows.get(view.root, view))
    one = OneCore(fixed)
    leave(core, one, shared)
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
