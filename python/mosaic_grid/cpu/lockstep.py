"""Cores that wait for each other: all of them run up to a wait, or a barrier, before one of them goes on.

All cores are at the same step. Its body is cut at the waits and barriers, and each part is run for one core after the
other. So a wait comes after all signals that are sent before it, as long as the cores run the same code, which barriers
between them take for granted. Loops and conditions around a wait are gone through together, where they are the same on
each core. The subcores of a core have its shared memory in common. Semaphores, and the memory that other cores copy to,
have a row for each core.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from jaxlib.mlir import ir

from mosaic_grid.cpu import build
from mosaic_grid.cpu.build import Index
from mosaic_grid.cpu.grid import Core
from mosaic_grid.cpu.one_core import OneCore, leave
from mosaic_grid.cpu.roots import Kind, Root
from mosaic_grid.cpu.together import BARRIER, Cores, copies_to_cores, names_another, operations_of, row_of
from mosaic_grid.cpu.touches import source_of
from mosaic_grid.cpu.types import lowered_element
from mosaic_grid.cpu.views import View
from mosaic_grid.dataflow.effects import named
from mosaic_grid.ir_types import Value

_REACHES = ("tpu.sem_signal", "tpu.enqueue_dma")
_COUNT = "tpu.fetch_and_add_sync"
_SHARED = "vmem_shared"


def meet(body: ir.Block) -> bool:
    """Whether the cores that run a kernel's body may signal each other or copy to each other, or have barriers."""
    return any(
        inner.name == "tpu.barrier" or (inner.name in _REACHES and names_another(inner)) or _counts_elsewhere(inner)
        for inner in operations_of(body)
    )


def why_apart(core: Core) -> str | None:
    """Why cores that do so can't go on together; None where they can."""
    low = core.low
    axes = [axis for axis in range(len(low.bounds)) if axis not in core.axes]
    kinds = [_is_subcore(core, axis) for axis in axes]
    if low.watch is not None:
        return "cores are checked one after the other"
    if low.late is not None:
        return "cores whose copies land late run one after the other"
    if not all(isinstance(low.bounds[axis], int) for axis in axes):
        return "the number of cores is only known at run time"
    return None if kinds == sorted(kinds) else "a dimension of subcores comes before one of cores"


def run_in_lockstep(core: Core, axes: Sequence[int], counts: Sequence[int]) -> None:
    """Runs the cores, `counts` of them along each of the grid's dimensions `axes`, through the steps that each has."""
    low = core.low
    places = list(itertools.product(*map(range, counts)))
    common, reached = _common_scratch(core), _reached(core.body)
    stacks = {
        view.root: _stack(view.root, len(places))
        for argument, view in zip(list(core.body.arguments)[len(low.bounds) :], core.arguments, strict=True)
        if view.root in core.scratch
        and (view.root.kind is Kind.SEMAPHORE or view.root in common or argument in reached)
    }
    allocated = _allocated(core.body, reached, len(places))
    for stack in (*stacks.values(), *allocated.values()):
        low.forget(stack)
        low.memory.rewritten.add(stack)
    low.subcores = math.prod(count for axis, count in zip(axes, counts, strict=True) if _is_subcore(core, axis))
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


def _is_subcore(core: Core, axis: int) -> bool:
    """Whether a dimension of the grid is that of a core's subcores, which is the last one of them."""
    return "subcore_parallel" in str(ir.ArrayAttr(core.body.owner.attributes["dimension_semantics"])[axis])


def _counts_elsewhere(op: ir.Operation) -> bool:
    """Whether an operation may add to a counter of another subcore."""
    if op.name != _COUNT:
        return False
    owner = op.operands[len(op.operands) - 1].owner
    return not isinstance(owner, ir.Operation | ir.OpView) or owner.name != "tpu.subcore_id"


def _stack(root: Root, count: int) -> Root:
    return Root(f"every core's {root.name}", (count, *root.shape), root.element, root.kind, root.location)


def _reached(body: ir.Block) -> set[Value]:
    """The memory of a core that copies of other cores go to, and what other subcores count in."""
    targets = [named(op, "target") for op in copies_to_cores(body)]
    targets += [op.operands[0] for op in operations_of(body) if _counts_elsewhere(op)]
    return {source_of(target) for target in targets if target is not None}


def _allocated(body: ir.Block, reached: set[Value], count: int) -> dict[Value, Root]:
    """What the kernel makes that other cores may reach, that of all cores as one."""
    found: dict[Value, Root] = {}
    barrier = Root("every core's barrier semaphore", (count,), build.i32_type(), Kind.SEMAPHORE)
    for op in operations_of(body):
        if op.name == BARRIER:
            found[op.results[0]] = barrier
        elif op.name == "tpu.sem_alloc" or (op.name == "memref.alloca" and op.results[0] in reached):
            kind = ir.MemRefType(op.results[0].type)
            if kind.has_static_shape:
                what = Kind.SEMAPHORE if op.name == "tpu.sem_alloc" else Kind.SCRATCH
                made = Root(what.value, tuple(kind.shape), lowered_element(kind.element_type), what, op.location)
                found[op.results[0]] = _stack(made, count)
    return found


def _common_scratch(core: Core) -> set[Root]:
    """The scratch that the subcores of a core have in common."""
    arguments = list(core.body.arguments)[-len(core.arguments) :]
    spaces = zip(arguments, core.arguments, strict=True)
    return {view.root for argument, view in spaces if _SHARED in str(ir.MemRefType(argument.type).memory_space)}


def _first_of_core(core: Core, axes: Sequence[int], places: Sequence[Sequence[int]]) -> list[int]:
    """Of each place, the number of the first one that is on the same core: they differ in the subcore alone."""
    cores = [n for n, axis in enumerate(axes) if not _is_subcore(core, axis)]
    seen: dict[tuple[int, ...], int] = {}
    return [seen.setdefault(tuple(place[n] for n in cores), number) for number, place in enumerate(places)]
