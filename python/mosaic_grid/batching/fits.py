"""Launches and kernels that the rewrite has no form for, whatever the kernel computes; and those that don't fit."""

from __future__ import annotations

from mosaic_grid import backend_config
from mosaic_grid.batching.body import NAME
from mosaic_grid.grid import Semantics
from mosaic_grid.launch_edit import SHAPE_OPERANDS
from mosaic_grid.objections import Objection
from mosaic_grid.program import Kernel, Launch, ProgramError

_SHARDING = "mhlo.sharding"


def unfit(launch: Launch) -> Objection | None:
    """Why a launch can't be given a batch; `None` where it can.

    Raises `ProgramError` where the launch and its kernel don't fit together.
    """
    kernel = launch.kernel
    words = {dimension.semantics for dimension in kernel.grid}
    reason = ""
    if not kernel.on_tensor_core:
        reason = "the kernel runs on the SparseCores"
    elif words & {Semantics.CORE_PARALLEL, Semantics.SUBCORE_PARALLEL}:
        reason = "the kernel's grid has a dimension for the cores"
    elif SHAPE_OPERANDS in launch.op.attributes:
        reason = "the launch has operands for the shapes of its results"
    elif any(len(function.regions[0].blocks) != 1 for function in kernel.functions.values()):
        reason = "the kernel has a function of several blocks"
    elif _SHARDING in launch.op.attributes and "devices" in str(launch.op.attributes[_SHARDING]):
        reason = "the launch is shared between devices"
    elif _is_placed(launch):
        reason = "the launch says in which memory its arrays are, and those of all elements may not fit there"
    if reason:
        return Objection(reason, launch.op.location, False, NAME)
    _check_windows(launch, kernel)
    return None


def _is_placed(launch: Launch) -> bool:
    """Whether the launch asks for arrays in another memory than HBM, which has the color 0."""
    try:
        section = backend_config.parse(launch.config)[backend_config.SECTION]
    except backend_config.ConfigError as error:
        raise ProgramError(str(error), launch.op) from None
    fields = [section.get(f"{side}_memory_space_colors") or [] for side in ("input", "output")]
    colors = [color for field in fields if isinstance(field, list) for color in field]
    return any(color.get("color") if isinstance(color, dict) else color for color in colors)


def _check_windows(launch: Launch, kernel: Kernel) -> None:
    """Raises `ProgramError` where windows and operands differ in number, or an index map isn't one of its window."""
    op, windows = launch.op, kernel.windows
    inputs = len(op.operands) - len(kernel.dynamic_dimensions) - kernel.prefetch_count
    if len(windows) != inputs + len(op.results):
        found = f"{inputs} inputs and {len(op.results)} results for {len(windows)} windows"
        raise ProgramError(f"this launch doesn't fit @{kernel.symbol}: {found}", op)
    for window in windows:
        if window.transform is None:
            continue
        function = kernel.functions.get(window.transform)
        if function is None:
            raise ProgramError(f"@{kernel.symbol} has no index map @{window.transform}", kernel.body)
        block = function.regions[0].blocks[0]
        takes, gives = len(list(block.arguments)), len(block.operations[-1].operation.operands)
        if takes != len(kernel.grid) + kernel.prefetch_count or gives != len(window.shape or ()):
            raise ProgramError(f"the index map @{window.transform} doesn't fit its window", function)
