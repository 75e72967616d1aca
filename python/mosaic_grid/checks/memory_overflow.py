"""`vmem-overflow`, `smem-overflow`: buffers that can't fit into a core's memory.

What is counted is a lower bound: windows times the buffers of each, scratch and prefetch operands, packed without gaps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from jaxlib.mlir import ir

from mosaic_grid import memory
from mosaic_grid.checks.subject import Subject, name_of
from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.grid import is_placeholder
from mosaic_grid.summary.cores import chip_name
from mosaic_grid.summary.plain import size_text
from mosaic_grid.targets import CHIPS

_LISTED = 3


@dataclasses.dataclass(frozen=True)
class _Buffer:
    """A buffer of the kernel, of which there are `copies`."""

    text: str
    type: ir.MemRefType
    copies: int

    @property
    def bytes(self) -> int:
        """All its copies; nothing for a size that is only known by a symbol."""
        return 0 if any(map(is_placeholder, self.type.shape)) else memory.bytes_of(self.type) * self.copies


def memory_overflow(subject: Subject) -> Iterator[Diagnostic]:
    """An error for each memory that is too small: the target's, else that of every chip."""
    if not subject.kernel.on_tensor_core:
        return
    target, chips = subject.target, [subject.target.chip] if subject.target else CHIPS
    largest = {
        memory.VMEM: max(chip.vmem_bytes for chip in chips),
        memory.SMEM: max(chip.smem_bytes for chip in chips),
    }
    summary = subject.summaries[0]
    if summary.vmem <= largest[memory.VMEM] and summary.smem <= largest[memory.SMEM]:
        # which counts sizes that are only known by a symbol, too
        return
    buffers = list(_buffers(subject))
    for space, limit in largest.items():
        held = [buffer for buffer in buffers if memory.space_of(buffer.type) == space and buffer.bytes]
        total = sum(buffer.bytes for buffer in held)
        if total <= limit:
            continue
        owner = f"{chip_name(target)} has {size_text(limit)}" if target else f"no TPU has more than {size_text(limit)}"
        message = f"the kernel needs at least {size_text(total)} of {space.upper()} on each core, and {owner}"
        held.sort(key=lambda buffer: -buffer.bytes)
        told = [note(f"{size_text(buffer.bytes)}: {buffer.text}") for buffer in held[:_LISTED]]
        advice = note(_ADVICE[space])
        yield subject.say(f"{space}-overflow", Severity.ERROR, message, space, notes=[*told, advice])


_ADVICE = {
    memory.VMEM: "use smaller blocks, or leave operands in HBM (memory_space=pl.ANY) and copy what a step needs",
    memory.SMEM: "prefetch less: give the table blocks in SMEM, or leave it in HBM and copy the rows that a step needs",
}


def _buffers(subject: Subject) -> Iterator[_Buffer]:
    kernel, summary = subject.kernel, subject.summaries[0]
    for window, told in zip(kernel.windows, summary.windows, strict=True):
        times = f", {told.buffers} times" if told.buffers > 1 else ""
        yield _Buffer(f"{name_of(told)}, {told.seen}{times}", window.type, told.buffers)
    first = subject.argument_of(len(summary.windows))
    for start, arguments, buffers in (
        (len(kernel.grid), kernel.prefetch, summary.prefetch),
        (first, kernel.scratch, summary.scratch),
    ):
        for number, (argument, buffer) in enumerate(zip(arguments, buffers, strict=True), start):
            yield _Buffer(f"{subject.operand(number)}, {buffer.array}", ir.MemRefType(argument.type), 1)
