"""What becomes of a loop over a batch: decided, or refused with a reason, before anything is changed."""

from __future__ import annotations

import dataclasses
import math

from mosaic_grid import symbolic
from mosaic_grid.batching.kernel import Form, batch_kernel
from mosaic_grid.batching.loop import NAME, Batched, Loop
from mosaic_grid.dataflow.freshness import follow
from mosaic_grid.dataflow.outer import OuterScalars
from mosaic_grid.grid import I32_MAX, Semantics
from mosaic_grid.infer.order import printing
from mosaic_grid.ir_types import Value
from mosaic_grid.kernel_edit import iteration_bounds
from mosaic_grid.launch_edit import SHAPE_OPERANDS
from mosaic_grid.legality import examine
from mosaic_grid.legality.sharing import Sharing, has_blocks, is_own_memory
from mosaic_grid.objections import Objection
from mosaic_grid.partition.fitness import unfit_kernel, unfit_launch
from mosaic_grid.program import Kernel, Launch, Window

LARGEST_BATCH = 16384
"""The first steps of the elements of a larger one take more SMEM than a kernel should be asked for."""

MOST_STEPS = 16384
"""How many steps a table has the elements of at most: 64 KiB of SMEM."""

WORTH_A_LAUNCH = 64
"""With so many steps an element, a launch for each of them costs little, and the loop may as well stay."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """One launch for a loop.

    `guarded` says that the steps aren't proved to fit in the table, or in 32 bits: the loop stays for when they don't.
    """

    loop: Loop
    form: Form
    guarded: bool


def make_plan(loop: Loop, scalars: OuterScalars) -> Plan | Objection:
    """The plan for a loop, or why its launches have to stay apart.

    Raises `ProgramError` for a launch that doesn't fit its kernel.
    """
    launch = loop.launch
    unfit = _unfit(launch) or unfit_launch([launch]) or unfit_kernel(launch.kernel)
    if unfit is not None:
        return unfit
    form = _form(loop)
    objection = _unlike(launch.kernel, form) or _dependence(launch, form)
    if objection is not None:
        return objection
    if loop.size > LARGEST_BATCH:
        return Objection(f"the batch is larger than {LARGEST_BATCH}", launch.op.location, False, NAME)
    grid = launch.kernel.grid
    most = _most_steps(loop, range(len(grid)), scalars)
    if most > I32_MAX and not launch.bounds:
        return Objection("all steps together are more than 32 bits can count", launch.op.location, False, NAME)
    counted = _most_steps(loop, range(form.fused), scalars)
    form = dataclasses.replace(form, steps=_table_steps(form, counted), parallel=_is_parallel(launch.kernel, form))
    return Plan(loop, form, most > I32_MAX or 0 < form.steps < counted)


def _table_steps(form: Form, most: int) -> int:
    """How many steps a table is to have the elements of: all there can be, as many as matter, or none."""
    if not form.fused:
        return 0
    if most <= MOST_STEPS:
        return max(most, 1)
    enough = form.size * WORTH_A_LAUNCH
    return enough if enough <= MOST_STEPS else 0


def _unfit(launch: Launch) -> Objection | None:
    """What the rewrite has no form for, whatever the kernel does."""
    kernel = launch.kernel
    words = {dimension.semantics for dimension in kernel.grid}
    reason = ""
    if not kernel.on_tensor_core:
        reason = "the kernel runs on the SparseCores"
    elif words & {Semantics.CORE_PARALLEL, Semantics.SUBCORE_PARALLEL}:
        reason = "the kernel's grid has a dimension for the cores"
    elif SHAPE_OPERANDS in launch.op.attributes:
        reason = "the launch has operands for the shapes of its results"
    elif len(kernel.body.regions[0].blocks) != 1:
        reason = "the kernel's body has several blocks"
    return Objection(reason, launch.op.location, False, NAME) if reason else None


def _form(loop: Loop) -> Form:
    """Which operands, windows and dimensions get the batch; an aliased input always does, for an output is."""
    kernel = loop.launch.kernel
    dynamic = kernel.dynamic_dimensions
    batched = {number for number, operand in enumerate(loop.operands) if isinstance(operand, Batched)}
    ragged = [axis for number, axis in enumerate(dynamic) if number in batched]
    first_input = len(dynamic) + kernel.prefetch_count
    inputs = len(loop.operands) - first_input
    sharing = Sharing.of(kernel, (), [loop.launch])
    windows = {number - first_input for number in batched if number >= first_input}
    windows |= {alias.input for alias in sharing.aliases if alias.input is not None}
    windows |= set(range(inputs, inputs + len(loop.outputs)))
    return Form(
        size=loop.size,
        fused=max(ragged, default=-1) + 1,
        prefetch=frozenset(number - len(dynamic) for number in batched if len(dynamic) <= number < first_input),
        windows=frozenset(windows),
        asked=frozenset(axis for _, axis in iteration_bounds(kernel.module)),
    )


def _unlike(kernel: Kernel, form: Form) -> Objection | None:
    """A prefetch operand or a window that can't be given the batch."""
    for number in sorted(form.prefetch):
        for name, function in kernel.functions.items():
            if function != kernel.body and all(window.transform != name for window in kernel.windows):
                reason = f"the kernel has a function @{name} that isn't an index map"
                return Objection(reason, function.location, False, NAME)
            table = function.regions[0].blocks[0].arguments[len(kernel.grid) + number]
            for use in table.uses:
                user = use.owner.operation
                if user.name != "memref.load":
                    reason = f"prefetch operand {number} is used by {user.name}, not only read element by element"
                    return Objection(reason, user.location, False, NAME)
    for number in sorted(form.windows):
        window = kernel.windows[number]
        if (reason := _odd_window(window)) is not None:
            return Objection(f"window {number} {reason}", window.argument.location, False, NAME)
    return None


def _odd_window(window: Window) -> str | None:
    if window.affine_map is not None:
        return "has an index map that isn't a function"
    if window.transform is None and is_own_memory(window.argument):
        return "is handed over whole, in a core's own memory"
    if window.transform is not None and not has_blocks(window):
        return "has an index map, and isn't in a core's own memory"
    return None


def _dependence(launch: Launch, form: Form) -> Objection | None:
    """What an element's launch would find that another's has left; nothing is, where each starts afresh.

    The question is asked of the kernel with the batch as its outermost dimension: whether that one may be shared
    between cores. Its outputs, and what aliases them, are apart by construction.
    """
    kernel = launch.kernel
    aliased = Sharing.of(kernel, (), [launch]).aliases
    if any(alias.input is None for alias in aliased):
        return Objection("an output is written over an operand that isn't a window", launch.op.location, False, NAME)
    model = Kernel(kernel.module.clone().operation)
    batch_kernel(model.module, dataclasses.replace(form, fused=0))
    model = Kernel(model.module)
    judgement = examine(model, (0,), [Launch(launch.op, model)])
    if judgement.objections:
        return judgement.objections[0]
    first = len(model.grid) + model.prefetch_count
    inputs = len(model.windows) - len(launch.op.results)
    for access in (access for walk in follow(model, 0).walks for access in walk.writes):
        window = (access.root.argument if access.root.argument is not None else first) - first
        if 0 <= window < inputs and window not in form.windows and not is_own_memory(model.windows[window].argument):
            reason = f"the kernel writes input {window}, which all elements share"
            return Objection(reason, access.op.location, False, NAME)
    return None


def _is_parallel(kernel: Kernel, form: Form) -> bool:
    """Whether the batch, and what is counted with it, may be called parallel.

    Elements are independent. The dimensions counted with them are as independent as their author says.
    """
    fused = kernel.grid[: form.fused]
    return all(dimension.is_parallel for dimension in fused) and not any(True for _ in printing(kernel))


def _most_steps(loop: Loop, axes: range, scalars: OuterScalars) -> int:
    """The most steps that all elements together can have in some dimensions."""
    bounds = loop.launch.bounds

    def most(axis: int, bound: int | None) -> int:
        operand: Value | None = bounds.get(axis)
        if operand is None:
            return max(bound or 0, 0)
        return max(symbolic.range_of(scalars.evaluate(operand)).hi, 0)

    grid = loop.launch.kernel.grid
    return loop.size * math.prod(most(axis, grid[axis].bound) for axis in axes)
