"""What may be watched while a pipeline runs: the IR around passes, and the time each takes."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Collection, Sequence
from typing import Protocol, TextIO

from jaxlib.mlir import ir

from mosaic_grid.errors import UserError
from mosaic_grid.pass_options import nearest
from mosaic_grid.write import write_bytecode


class Instrument(Protocol):
    """Called around each step of a pipeline.

    `name` is the step as it is shown; `passes` are the names of the passes in it, several only for a native pipeline on
    an anchor such as `func.func(canonicalize,cse)`. A step that fails has no `after`.
    """

    def before(self, name: str, passes: Collection[str], program: ir.Operation) -> None:
        """Called with the program that the step is about to work on."""

    def after(self, name: str, passes: Collection[str], program: ir.Operation) -> None:
        """Called with the verified program that the step has left."""


@dataclasses.dataclass(frozen=True)
class PrintOptions:
    """Which steps the IR is printed around: pass names, or all of them.

    `after_change` drops those that changed nothing; alone, it looks at every pass. `verified` says that the program is
    verified after each step, so that printing need not do it again.
    """

    before: tuple[str, ...] = ()
    before_all: bool = False
    after: tuple[str, ...] = ()
    after_all: bool = False
    after_change: bool = False
    debug_info: bool = False
    verified: bool = True

    @property
    def wanted(self) -> bool:
        """Whether anything is to be printed at all."""
        return bool(self.before or self.before_all or self.after or self.after_all or self.after_change)

    def check(self, known: Collection[str]) -> None:
        """Raises `UserError` when a pass is named that is not among the `known` ones."""
        for flag, names in (("before", self.before), ("after", self.after)):
            for name in names:
                if name not in known:
                    message = f"--mlir-print-ir-{flag} names the unknown pass '{name}'{nearest(name, known)}"
                    raise UserError(message, notes=["--list-passes lists every pass"])

    def prints_before(self, passes: Collection[str]) -> bool:
        """Whether the IR is printed before a step of these passes."""
        return self.before_all or not set(self.before).isdisjoint(passes)

    def prints_after(self, passes: Collection[str]) -> bool:
        """Whether the IR is printed after a step of these passes, if it changed anything where that is asked."""
        every = self.after_all or (self.after_change and not self.after)
        return every or not set(self.after).isdisjoint(passes)


class IRPrinter:
    """Prints the program around steps in MLIR's layout of IR dumps."""

    def __init__(self, options: PrintOptions, stream: TextIO) -> None:
        """`stream` receives the dumps; the IR of the program and its locations go there as the options say."""
        self._options = options
        self._stream = stream
        self._snapshot: bytes | None = None

    def before(self, name: str, passes: Collection[str], program: ir.Operation) -> None:
        """Prints where asked, and remembers the program where only changes are printed afterwards."""
        if self._options.prints_before(passes):
            self._dump(f"IR Dump Before {name}", program)
        if self._options.after_change and self._options.prints_after(passes):
            # This costs less than printing, and has the locations too.
            self._snapshot = write_bytecode(program)

    def after(self, name: str, passes: Collection[str], program: ir.Operation) -> None:
        """Prints where asked."""
        if not self._options.prints_after(passes):
            return
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is not None and snapshot == write_bytecode(program):
            return
        self._dump(f"IR Dump After {name}", program)

    def _dump(self, title: str, program: ir.Operation) -> None:
        text = str(program.get_asm(enable_debug_info=self._options.debug_info, assume_verified=self._options.verified))
        self._stream.write(f"// -----// {title} //----- //\n{text.rstrip()}\n\n")


class Timing:
    """Measures the wall time of each step, verification included."""

    def __init__(self) -> None:
        """Starts the total."""
        self._start = time.perf_counter()
        self._step = self._start
        self._times: list[tuple[str, float]] = []

    def before(self, name: str, passes: Collection[str], program: ir.Operation) -> None:
        """Starts the clock of the step."""
        self._step = time.perf_counter()

    def after(self, name: str, passes: Collection[str], program: ir.Operation) -> None:
        """Stops the clock of the step."""
        self._times.append((name, time.perf_counter() - self._step))

    def report(self) -> str:
        """The table, steps in the order in which they ran; `Rest` is what was spent outside of them until now."""
        return format_timing(self._times, time.perf_counter() - self._start)


def format_timing(times: Sequence[tuple[str, float]], total: float) -> str:
    """MLIR's execution time report over (name, seconds) rows."""
    rule = f"==={'-' * 73}==="
    rest = max(total - sum(seconds for _, seconds in times), 0.0)
    rows = "\n".join(
        f"  {seconds:8.4f} ({100 * seconds / total if total else 0:5.1f}%)  {name}"
        for name, seconds in (*times, ("Rest", rest), ("Total", total))
    )
    return f"""\
{rule}
{"... Execution time report ...".center(79).rstrip()}
{rule}
  Total Execution Time: {total:.4f} seconds

  ----Wall Time----  ----Name----
{rows}
"""
