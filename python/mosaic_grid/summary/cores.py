"""How many cores run a kernel.

The rule was read from what libtpu 0.0.50 does with some three hundred kernels: where one device has two cores, both run
a kernel if some `parallel` or `core_parallel` dimension has a static bound of at least two. A `core_parallel` bound
that differs from the number of cores is refused by libtpu, and so is a second such dimension; a dynamic one by JAX.
"""

from __future__ import annotations

from collections.abc import Sequence

from mosaic_grid import symbolic as sym
from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.grid import Semantics
from mosaic_grid.summary.facts import Cores, DimensionSummary, LaunchSummary
from mosaic_grid.targets import Target
from mosaic_grid.ways import BY_FLAGS, Ways

IDLE_CORES = "idle-cores"
I32 = sym.type_range(32, True)
# of a kernel that is launched with many bounds, so many are written out
_SHOWN = 3


def chip_name(target: Target | None) -> str:
    """The chip as a person calls it."""
    return target.chip.device_kinds[-1] if target else "a chip with 2 cores"


def cores_of(grid: Sequence[DimensionSummary], available: int) -> Cores:
    """What a device with so many cores does with a grid."""
    split = [axis for axis, dimension in enumerate(grid) if dimension.semantics is Semantics.CORE_PARALLEL]
    if len(split) > 1:
        return Cores(None, available, f"{axes_text(split)} are core_parallel, and only one may be", waits=True)
    for axis in split:
        if grid[axis].bound != available:
            return Cores(None, available, _refusal(axis, grid[axis], available), waits=True)
    if available == 1:
        return Cores(1, 1, "")
    if split:
        return Cores(available, available, f"{axes_text(split)} is core_parallel")
    parallel = {axis: dimension for axis, dimension in enumerate(grid) if dimension.is_parallel}
    shared = [axis for axis, dimension in parallel.items() if (dimension.bound or 0) >= 2]
    if shared:
        return Cores(available, available, f"{axes_text(shared)} {_are(shared)} parallel")
    dynamic = [axis for axis, dimension in parallel.items() if dimension.bound is None]
    if dynamic:
        bounds = "its bound is dynamic" if len(dynamic) == 1 else "their bounds are dynamic"
        return Cores(1, available, f"{axes_text(dynamic)} {_are(dynamic)} parallel but {bounds}", waits=True)
    if parallel:
        steps = "has one step" if len(parallel) == 1 else "have one step each"
        return Cores(1, available, f"{axes_text(list(parallel))} {_are(list(parallel))} parallel but {steps}")
    if not grid:
        return Cores(1, available, "it has no grid")
    advice = "if the steps of a dimension are independent, say so with dimension_semantics"
    return Cores(1, available, "no dimension is parallel", advice)


def idle_cores_warning(launch: LaunchSummary, target: Target | None, ways: Ways = BY_FLAGS) -> Diagnostic | None:
    """The warning that cores idle because the bound of every parallel dimension is dynamic; `None` where they don't.

    They don't either in a launch that is another's fallback. `ways` are those that notes speak of.
    """
    cores = launch.cores
    dynamic = [axis for axis, dimension in enumerate(launch.grid) if dimension.is_parallel and dimension.bound is None]
    if cores is None or cores.used is None or cores.used == cores.available or not dynamic or launch.fallback:
        return None
    have = "has a dynamic bound" if len(dynamic) == 1 else "have dynamic bounds"
    runs = f"{chip_name(target)} runs this kernel on {cores.used} of its {cores.available} cores"
    notes = [
        note(f"the bound{f' of dimension {axis}' if len(dynamic) > 1 else ''} is {bound}", launch.grid[axis].place)
        for axis in dynamic
        if (bound := bound_text(launch.grid[axis]))
    ]
    steps = [note("; ".join(filter(None, (ways.done(cores.advice), cores.otherwise))))] if cores.advice else []
    message = f"parallel {axes_text(dynamic)} {have}: {runs}"
    return Diagnostic(
        Severity.WARNING, message, launch.warn_at, IDLE_CORES, (*notes, *steps), launch.name, axes_text(dynamic)
    )


def bound_text(dimension: DimensionSummary) -> str:
    """What is known of a dynamic bound: its expression and its range; empty where no launch passes one."""
    texts = list(dict.fromkeys(value_text(value) for value in dimension.values))
    more = [f"one of {len(texts) - _SHOWN} others"] if len(texts) > _SHOWN else []
    return " or ".join([*texts[:_SHOWN], *more])


def value_text(value: sym.Expr) -> str:
    """An expression with its range, where it has one that its type doesn't give."""
    constant = sym.constant_of(value)
    if constant is not None:
        # libtpu takes no static bound of 0 beside a dynamic one
        return f"{constant}, a constant: resolve-grid makes it static" if constant > 0 else f"{constant}, a constant"
    values = sym.range_of(value)
    return f"{value}, any i32" if values == I32 else f"{value}, in {values}"


def _refusal(axis: int, dimension: DimensionSummary, available: int) -> str:
    if dimension.bound is None:
        return f"core_parallel dimension {axis} has a dynamic bound"
    cores = f"{available} core{'s' if available > 1 else ''}"
    return f"core_parallel dimension {axis} has bound {dimension.bound}, which must be {available} for {cores}"


def axes_text(axes: Sequence[int]) -> str:
    """`dimension 0`, `dimensions 0, 1 and 2`."""
    names = [str(axis) for axis in axes]
    if len(names) == 1:
        return f"dimension {names[0]}"
    return f"dimensions {', '.join(names[:-1])} and {names[-1]}"


def _are(axes: Sequence[int]) -> str:
    return "is" if len(axes) == 1 else "are"
