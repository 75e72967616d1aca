"""What becomes of a loop over a batch: decided, or refused with a reason, before anything is changed."""

from __future__ import annotations

import dataclasses
import math

from jaxlib.mlir import ir

from mosaic_grid import symbolic
from mosaic_grid.batching.body import NAME, Batched
from mosaic_grid.batching.fits import unfit
from mosaic_grid.batching.kernel import Form, batch_kernel
from mosaic_grid.batching.loop import Loop
from mosaic_grid.dataflow.freshness import follow
from mosaic_grid.dataflow.outer import OuterScalars
from mosaic_grid.grid import I32_MAX
from mosaic_grid.infer.order import printing
from mosaic_grid.ir_types import Value
from mosaic_grid.kernel_edit import iteration_bounds
from mosaic_grid.legality import examine
from mosaic_grid.legality.sharing import Sharing, has_blocks, is_own_memory
from mosaic_grid.objections import Objection
from mosaic_grid.partition.fitness import unfit_kernel, unfit_launch
from mosaic_grid.program import Kernel, Launch, Window

LARGEST_BATCH = 16384
"""The first steps of the elements of a larger one take more SMEM than a kernel should be asked for."""

MOST_TABLE_BYTES = 2**19
"""The most that the prefetch operands of all elements may take together: half of the SMEM of a core."""

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
    objection = unfit_launch([launch]) or unfit_kernel(launch.kernel) or unfit(launch)
    if objection is not None:
        return objection
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
        rows=tuple((number, blocks) for number in sorted(windows) if (blocks := _blocks(loop, number)) is not None),
        asked=frozenset(axis for _, axis in iteration_bounds(kernel.module)),
    )


def _blocks(loop: Loop, number: int) -> int | None:
    """How many places an index map gives an element of an array of one dimension: blocks, or elements of the array.

    `None` for an array of more dimensions; 0 where there is no layout for blocks, or they would straddle elements.
    """
    launch, kernel = loop.launch, loop.launch.kernel
    inputs = list(launch.op.operands)[len(kernel.dynamic_dimensions) + kernel.prefetch_count :]
    array = ir.RankedTensorType([*inputs, *launch.op.results][number].type)
    if array.rank != 1:
        return None
    window, length = kernel.windows[number], array.shape[0]
    if window.transform is None:
        return 1
    block = window.shape[0] if window.shape else length
    if length % block or not _has_layout(block, array.element_type):
        return 0
    if window.kind is None:
        return length // block
    return length if str(window.kind) == "#tpu.element_window<[0], [0]>" else 0


def _has_layout(block: int, element: ir.Type) -> bool:
    """Whether an array of one dimension may have such blocks; JAX's rule (`_check_block_mappings`)."""
    width = element.width if isinstance(element, ir.IntegerType | ir.FloatType) else 32
    least = 128 * (32 // min(max(width, 1), 32))
    return block % 1024 == 0 or (block >= least and block & (block - 1) == 0)


def _unlike(kernel: Kernel, form: Form) -> Objection | None:
    """A prefetch operand or a window that can't be given the batch."""
    shapes = [ir.MemRefType(kernel.prefetch[number].type).shape for number in form.prefetch]
    size = 4 * form.size * sum(math.prod(shape) for shape in shapes)
    if size > MOST_TABLE_BYTES:
        reason = f"the prefetch operands of all elements take {size} bytes of SMEM, more than {MOST_TABLE_BYTES}"
        return Objection(reason, kernel.body.location, False, NAME)
    for number in sorted(form.prefetch):
        maps = {window.transform for window in kernel.windows}
        for function in [kernel.body, *(each for name, each in kernel.functions.items() if name in maps)]:
            table = function.regions[0].blocks[0].arguments[len(kernel.grid) + number]
            for use in table.uses:
                user = use.owner.operation
                if user.name != "memref.load":
                    reason = f"prefetch operand {number} is used by {user.name}, not only read element by element"
                    return Objection(reason, user.location, False, NAME)
    for number in sorted(form.windows):
        window = kernel.windows[number]
        reason = _odd_window(window)
        if not reason and dict(form.rows).get(number) == 0:
            reason = "is a block of an array of one dimension, and there is no layout for a batch of them"
        if reason:
            return Objection(f"window {number} {reason}", window.argument.location, False, NAME)
    return None


def _odd_window(window: Window) -> str:
    """Why a window can't be given the batch, whatever its array; empty where it can."""
    if window.affine_map is not None:
        return "has an index map that isn't a function"
    if window.transform is None and is_own_memory(window.argument):
        return "is handed over whole, in a core's own memory"
    if window.transform is not None and not has_blocks(window):
        return "has an index map, and isn't in a core's own memory"
    return ""


def _dependence(launch: Launch, form: Form) -> Objection | None:
    """What an element's launch would find that another's has left; nothing is, where each starts afresh.

    The question is asked of the kernel with the batch as its outermost dimension: whether that one may be shared
    between cores. Its outputs, and what aliases them, are apart by construction: races are looked for in the inputs
    that all elements share only.
    """
    kernel = launch.kernel
    aliased = Sharing.of(kernel, (), [launch]).aliases
    if any(alias.input is None for alias in aliased):
        return Objection("an output is written over an operand that isn't a window", launch.op.location, False, NAME)
    model = Kernel(kernel.module.clone().operation)
    batch_kernel(model.module, dataclasses.replace(form, fused=0))
    model = Kernel(model.module)
    from mosaic_grid.legality.races import RACE  # isl is loaded only when a question needs it

    judgement = examine(model, (0,), [Launch(launch.op, model)])
    others = [objection for objection in judgement.objections if objection.name != RACE]
    if others:
        return others[0]
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
