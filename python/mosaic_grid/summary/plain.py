"""A summary as plain lines: nothing depends on the width of a terminal, and each fact is on a line of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mosaic_grid.summary.cores import bound_text, chip_name
from mosaic_grid.summary.facts import Buffer, Cores, DimensionSummary, LaunchSummary, Summary, WindowSummary
from mosaic_grid.targets import Target

_CORE_TYPES = {"tc": "TensorCore"}


def render_plain(summary: Summary, name: str = "") -> str:
    """The text of a summary with a line break at its end, after a heading with the program's name if it is given."""
    heading = [f"program {name}: {contents_text(summary)}{target_text(summary)}\n"] if name else []
    if not summary.launches:
        return heading[0] if name else f"{nothing_text(summary)}\n"
    kernels = ("".join(f"{line}\n" for line in _launch(launch, summary.target)) for launch in summary.launches)
    return "\n".join([*heading, *kernels])


def contents_text(summary: Summary) -> str:
    """How many kernels and launches a program has."""
    if not summary.launches:
        return nothing_text(summary)
    kernels = len({launch.symbol for launch in summary.launches})
    launches = sum(launch.launches for launch in summary.launches)
    return f"{_count(kernels, 'kernel')}, {_count(launches, 'launch', 'launches')}"


def target_text(summary: Summary) -> str:
    """For which chip the summary is, to go after what the program has."""
    if summary.target is None or not summary.launches:
        return ""
    other = "; --target=... for another" if summary.assumed else ""
    return f", for {chip_name(summary.target)}{other}"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def nothing_text(summary: Summary) -> str:
    """What to say of a program without kernels."""
    return f"no Mosaic kernel in this program: it has {summary.found}"


def _launch(launch: LaunchSummary, target: Target | None) -> Iterator[str]:
    yield f"{title_text(launch)}: {kind_text(launch)}"
    if launch.place:
        yield f"  from {launch.place}"
    yield f"  {launches_text(launch)}"
    yield f"  grid: {grid_text(launch)}"
    for axis, dimension in enumerate(launch.grid):
        yield f"    {dimension_text(axis, dimension)}"
    for window in launch.windows:
        yield f"  {window.role} {window.number}: {_window(window, launch)}"
    for kind, buffers in (("prefetch", launch.prefetch), ("scratch", launch.scratch)):
        for number, buffer in enumerate(buffers):
            yield f"  {kind} {number}: {buffer.name} {buffer_text(buffer)}"
    yield from (f"  {line}" for line in memory_texts(launch, target))
    yield f"  cores: {cores_text(launch.cores, target)}"
    if advice := advice_text(launch):
        yield f"    {advice}"


def title_text(launch: LaunchSummary) -> str:
    """The kernel's name, in quotes since many are called `kernel`, with its symbol where that is another."""
    symbol = "" if launch.symbol in ("", launch.name) else f" (@{launch.symbol})"
    return f"kernel '{launch.name}'{symbol}"


def kind_text(launch: LaunchSummary) -> str:
    """What the kernel is for, and the version of its serialized form."""
    kind = _CORE_TYPES.get(launch.core_type, f"SparseCore ({launch.core_type})")
    return kind if launch.version is None else f"{kind}, serialization version {launch.version}"


def launches_text(launch: LaunchSummary) -> str:
    """How often the program launches the kernel, and where first."""
    if not launch.launches:
        return "not launched here"
    if launch.launches == 1:
        text = f"launched at {launch.launched_at}" if launch.launched_at else "launched once"
    else:
        text = f"launched {launch.launches} times" + (f", first at {launch.launched_at}" if launch.launched_at else "")
    return f"{text}, {launch.branch}" if launch.branch else text


def grid_text(launch: LaunchSummary) -> str:
    """The bounds as a tuple, with what they come to where all of them are static."""
    if not launch.grid:
        return "none, the kernel runs once"
    bounds = [dimension.bound for dimension in launch.grid]
    text = f"({', '.join('?' if bound is None else str(bound) for bound in bounds)})"
    if None in bounds:
        return text
    steps = math.prod(bound or 0 for bound in bounds)
    return f"{text}, {_count(steps, 'step')}"


def dimension_text(axis: int, dimension: DimensionSummary) -> str:
    """A dimension's number, index, semantics and bound."""
    head = f"dimension {axis}: {dimension.index}, {dimension.semantics.value}, "
    if dimension.bound is not None:
        return f"{head}{_count(dimension.bound, 'step')}"
    bound = bound_text(dimension)
    return f"{head}dynamic: {bound}" if bound else f"{head}dynamic"


def _window(window: WindowSummary, launch: LaunchSummary) -> str:
    parts = [f"{window.name} {' '.join(shape_texts(window))}", window.space]
    if window.whole:
        parts.append("whole")
    else:
        parts.append(index_map_text(window, launch))
        parts.append(copies_text(window))
    if window.alias:
        parts.append(f"in place of {window.alias}")
    return ", ".join(parts)


def shape_texts(window: WindowSummary) -> list[str]:
    """The block, what the kernel sees of it where that differs, and the operand it is a block of."""
    texts = [str(window.block)]
    if window.seen != window.block:
        texts.append(f"seen as {window.seen}")
    if not window.whole and window.operand is not None:
        texts.append(f"of {window.operand}")
    return texts


def index_map_text(window: WindowSummary, launch: LaunchSummary) -> str:
    """The index map: the grid's indices and its results, as tuples."""
    indices = ", ".join(dimension.index for dimension in launch.grid)
    text = f"({indices}) -> ({', '.join(window.index_map)})"
    return text if window.padding is None else f"{text} in elements (padding {window.padding})"


def copies_text(window: WindowSummary) -> str:
    """How many buffers the window has."""
    return _count(window.buffers, "buffer")


def buffer_text(buffer: Buffer) -> str:
    """Type and memory of a prefetch operand or scratch buffer."""
    return f"{buffer.array}, {buffer.space}"


def memory_texts(launch: LaunchSummary, target: Target | None) -> Iterator[str]:
    """What the kernel needs of each memory of one core, and what there is."""
    if launch.cores is None:
        # the memories of a SparseCore are others
        target = None
    limits = {"vmem": target.vmem_bytes, "smem": target.smem_bytes} if target else {}
    for space, needed in (("vmem", launch.vmem), ("smem", launch.smem)):
        if needed or space == "vmem":
            limit = limits.get(space)
            of = f" of the {size_text(limit)} of a {chip_name(target)} core" if limit else ""
            excess = ": more than there is" if limit and needed > limit else ""
            yield f"{space}: {f'at least {size_text(needed)}' if needed else 'none'}{of if needed else ''}{excess}"


def size_text(count: int) -> str:
    """Bytes in the largest unit that leaves a whole part, rounded down to a tenth: a lower bound stays one."""
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >> shift:
            whole, tenth = count >> shift, (count * 10 >> shift) % 10
            return f"{whole}.{tenth} {unit}" if tenth else f"{whole} {unit}"
    return f"{count} B"


def advice_text(launch: LaunchSummary) -> str:
    """What to do about idle cores, or why nothing is to be done."""
    return launch.fallback or (launch.cores.advice if launch.cores else "")


def cores_text(cores: Cores | None, target: Target | None) -> str:
    """Which of the cores run the kernel, and why not more."""
    if cores is None:
        return "SparseCores run this kernel, no TensorCore does"
    chip = chip_name(target)
    if cores.used is None:
        return f"{chip} refuses this kernel: {cores.reason}"
    if cores.available == 1:
        return f"{chip} runs this kernel on the one core of a device"
    return f"{chip} runs this kernel on {cores.used} of its {cores.available} cores: {cores.reason}"
