"""`prefetch-operand-written`: a kernel that changes a scalar-prefetch operand which an index map reads.

Index maps are evaluated ahead of the body, so which steps see the change depends on the pipeline's depth.
"""

from __future__ import annotations

from collections.abc import Iterator

from jaxlib.mlir import ir

from mosaic_grid.checks.subject import Subject
from mosaic_grid.dataflow.body import events_in
from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.ir_types import Value
from mosaic_grid.legality.sharing import target_of
from mosaic_grid.program import Kernel

NAME = "prefetch-operand-written"


def prefetch_written(subject: Subject) -> Iterator[Diagnostic]:
    """One warning for each such operand, at the first write."""
    kernel = subject.kernel
    read = dict(_read_by_index_maps(kernel))
    if not read:
        return
    for number, op in _writes(kernel).items():
        if number in read:
            table = subject.operand(len(kernel.grid) + number)
            reader = subject.operand(subject.argument_of(read[number]))
            message = (
                f"the kernel writes {table}, which the index map of {reader} reads: the blocks of the steps that are "
                "on their way are chosen already"
            )
            advice = "compute the table before the launch, or keep what changes in scratch in SMEM"
            yield subject.say(
                NAME, Severity.WARNING, message, f"prefetch {number}", at=op.location, notes=[note(advice)]
            )


def _read_by_index_maps(kernel: Kernel) -> Iterator[tuple[int, int]]:
    """The prefetch operands that index maps use, each with the last window whose map does."""
    for number, window in enumerate(kernel.windows):
        function = kernel.functions.get(window.transform or "")
        if function is not None:
            given = list(function.regions[0].blocks[0].arguments)[len(kernel.grid) :]
            yield from ((k, number) for k, argument in enumerate(given) if any(True for _ in argument.uses))


def _writes(kernel: Kernel) -> dict[int, ir.Operation]:
    """The first write to each prefetch operand, by number of operand."""
    numbers: dict[Value, int] = {argument: number for number, argument in enumerate(kernel.prefetch)}
    found: dict[int, ir.Operation] = {}
    for event in events_in(kernel):
        target = target_of(event)
        number = numbers.get(target) if target is not None else None
        if number is not None:
            found.setdefault(number, event.op)
    return dict(sorted(found.items()))
