"""A compiled program that also says what its kernels do wrong: `Recorded` runs it, and a wait in vain is an error."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from jaxlib.mlir import ir

from mosaic_grid.cpu import convert
from mosaic_grid.cpu.arrays import Array, TensorSpec
from mosaic_grid.cpu.convert import Recording
from mosaic_grid.cpu.execute import Executable, compile_program
from mosaic_grid.cpu.faults import Fault
from mosaic_grid.cpu.options import Options
from mosaic_grid.cpu.poison import ROOTS, Fill
from mosaic_grid.cpu.records import Record
from mosaic_grid.cpu.touches import nested
from mosaic_grid.diagnostics import Diagnostic
from mosaic_grid.errors import UserError
from mosaic_grid.passes.lower_to_cpu import LowerToCpu
from mosaic_grid.pipeline import Pipeline, run_pipeline
from mosaic_grid.runner import findings
from mosaic_grid.runner.contracts import CheckedContracts, checked_contracts
from mosaic_grid.runner.programs import Opened
from mosaic_grid.session import Session

Codes: TypeAlias = Mapping[int, int]

_LARGE = 10_000
"""A program of more operations takes longer to compile well than to run a few times."""


class KernelError(UserError):
    """A kernel that did something wrong while it ran; `diagnostics` are all errors that were found."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        first = diagnostics[0]
        super().__init__(first.message, first.place, [each.message for each in first.notes])
        self.diagnostics = tuple(diagnostics)

    def __str__(self) -> str:
        return "\n".join(line for each in self.diagnostics for line in each.lines())


@dataclasses.dataclass(frozen=True)
class Observed:
    """What a run returned, and what went wrong in it: faults with the record of the launch that they happened in."""

    results: list[Array]
    faults: list[tuple[Record, Fault]]


@dataclasses.dataclass(frozen=True)
class Lowered:
    """A program without launches whose `@main` returns what `recording` says behind its own results.

    `contracts` are those that it checks itself.
    """

    module: ir.Operation
    recording: Recording
    contracts: CheckedContracts | None = None


@dataclasses.dataclass(frozen=True)
class Recorded:
    """A compiled program. Calling it is like calling an `Executable`."""

    executable: Executable
    recording: Recording
    contracts: CheckedContracts | None = None

    @property
    def arguments(self) -> tuple[TensorSpec, ...]:
        """What the program takes."""
        specs = self.executable.arguments
        return specs[:-1] if self.recording.takes_codes else specs

    @property
    def results(self) -> tuple[TensorSpec, ...]:
        """What the program returns."""
        specs = self.executable.results
        return specs[: len(specs) - len(self.recording.records)]

    def __call__(self, *arrays: Array) -> list[Array]:
        """Runs the program; raises `KernelError` where a kernel waits for what can't come, `UserError` as ever."""
        observed = self.observe(arrays)
        _refuse_stuck(observed.faults)
        return observed.results

    def observe(self, arrays: Sequence[Array], codes: Codes | None = None, default: Fill = Fill.DEFAULT) -> Observed:
        """Runs the program and reads the records. `codes` say what unwritten memory holds, others hold `default`.

        Raises `KernelError` for arguments that break a contract which the program checks.
        """
        given = list(arrays)
        if self.recording.takes_codes:
            every = np.full(ROOTS, default, np.int32)
            for number, fill in (codes or {}).items():
                every[number] = fill
            given.append(every)
        found = self.executable(*given)
        if self.contracts and (broken := self.contracts.broken(found)):
            raise KernelError(broken)
        count = len(self.results)
        pairs = zip(self.recording.records, found[count:], strict=True)
        faults = [(record, fault) for record, array in pairs for fault in record.faults.read(array)]
        return Observed(found[:count], faults)


def refuse_stuck(record: Record, found: Array) -> None:
    """Raises `KernelError` if the record of a launch, which holds `found`, has a wait for what can't come."""
    _refuse_stuck([(record, fault) for fault in record.faults.read(found)])


def _refuse_stuck(faults: Sequence[tuple[Record, Fault]]) -> None:
    stuck = findings.stuck_waits(faults)
    if stuck:
        raise KernelError(stuck)


def lower_recorded(
    opened: Opened, options: Options, *, everything: bool = False, reproducers: Path = Path()
) -> Lowered:
    """A copy of the program without launches that records waits in vain, or everything that its kernels do wrong.

    Raises `UserError`, or `InternalError` with a reproducer written.
    """
    found: list[Recording] = []

    class Recorder(LowerToCpu):
        def run(self, program: ir.Operation, session: Session) -> None:
            found.append(convert.lower_recorded(program, options, everything=everything))

    copy = opened.module.clone(ip=False).operation
    step = Recorder(options.uninitialized, options.dma, options.interleave, options.precision)
    run_pipeline(Pipeline((step,)), copy, Session(), reproducers=reproducers)
    return Lowered(copy, found[0], checked_contracts(copy))


def compile_recorded(lowered: Lowered) -> Recorded:
    """Compiles it, quickly where everything is recorded of a large program. Raises `UserError`."""
    quick = lowered.recording.takes_codes and sum(1 for _ in nested(lowered.module)) > _LARGE
    return Recorded(compile_program(lowered.module, quick=quick), lowered.recording, lowered.contracts)
