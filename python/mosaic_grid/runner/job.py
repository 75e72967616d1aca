"""What `mosaic-run` does: open, run passes, choose inputs, lower, compile, run, and say what came out."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from jaxlib.mlir import ir

from mosaic_grid import supervisor
from mosaic_grid.core_counts import told_of_cores
from mosaic_grid.cpu.arrays import Array
from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.native_passes import NativePassError
from mosaic_grid.output import check_output
from mosaic_grid.passes import PASSES
from mosaic_grid.pipeline import Pipeline, parse_pipeline
from mosaic_grid.program import Program
from mosaic_grid.runner import check, comparison, execution, inputs, progress, results
from mosaic_grid.runner.arguments import Argument, arguments_of
from mosaic_grid.runner.command_line import CommandLine
from mosaic_grid.runner.execution import Run
from mosaic_grid.runner.programs import Opened, apply, open_file
from mosaic_grid.runner.recorded import KernelError
from mosaic_grid.session import Session
from mosaic_grid.stages import stage

DIFFERENT = 1
"""The exit code where results differ, or an error was diagnosed in a program."""


class Job:
    """One run of the tool. Answers go to `out`, whatever else is said to `err`."""

    def __init__(self, command: CommandLine, context: ir.Context, out: TextIO, err: TextIO) -> None:
        """Reads the pipeline; raises `UserError` where it can't be read. `context` must be current."""
        self.command = command
        self.context = context
        self.out = out
        self.err = err
        self.pipeline = parse_pipeline(command.pipeline, PASSES) if command.pipeline else Pipeline()
        if command.output is not None:
            check_output(command.output)

    def run(self) -> int:
        """Does it all and returns the exit code. Raises `UserError` or `InternalError`."""
        command = self.command
        for told in told_of_cores(self.pipeline, command.target, ()):
            self._say(told)
        opened = self._open(command.program)
        other = self._open(command.other) if command.other is not None else None
        if command.list_inputs:
            self._list(arguments_of(opened))
            return 0
        if command.target is not None and not self.pipeline.steps:
            self._say(Diagnostic(Severity.WARNING, "--target is for the passes of -p, which are not given"))
        session = Session(command.target)
        try:
            apply(self.pipeline, opened, session)
        except NativePassError as error:
            self.err.write(f"{error}\n")
            return DIFFERENT
        for diagnostic in session.diagnostics:
            self._say(diagnostic)
        if session.failed:
            return DIFFERENT
        chosen = inputs.choose(arguments_of(opened), command.given)
        for text in chosen.notes:
            self._say(note(text))
        try:
            return self._work(opened, other, chosen.arrays)
        except KernelError as error:
            for diagnostic in error.diagnostics:
                self._say(diagnostic)
            return DIFFERENT

    def _open(self, path: str) -> Opened:
        with stage(f"reading {path}"):
            opened = open_file(path, sys.stdin.buffer, self.context)
        for told in opened.notes:
            self._say(told)
        return opened

    def _work(self, opened: Opened, other: Opened | None, arrays: Sequence[Array]) -> int:
        """Runs the programs on the inputs and reports."""
        command, answer = self.command, _Answer()
        with progress.shown(self.err) as tell:
            if command.check:
                tell("check: compiling")
            run = execution.prepare(opened, command.options, everything=command.check)
        reference = execution.prepare(other, command.options) if other else None
        runs = {opened.name: run}
        if reference:
            comparison.check_alike(run, reference)
            runs = self._named(run, reference)
        if command.check:
            returned, failed = self._check(run, arrays, answer)
        else:
            returned, failed = execution.execute(run, arrays), False
        found = results.results_of(opened.main, run.executable.results, returned)
        if not command.check and not other:
            self._tell_of_unwritten(found, bool(Program(opened.module).launches))
        if command.output is not None:
            with supervisor.unwinding():
                results.save(found, command.output)
        answer.add("results", [results.facts(each) for each in found], "" if reference else results.table(found))
        if command.print_values:
            answer.add("values", None, results.values(found))
        different = False
        if reference:
            theirs = execution.execute(reference, arrays)
            pairs = list(zip(found, theirs, strict=True))
            compared = comparison.compare(runs, pairs, arrays, command.tolerance, command.options)
            answer.add("compare", [comparison.facts(each) for each in compared], comparison.told(compared, list(runs)))
            different = any(each.difference.count for each in compared)
        if command.runs:
            for name, each in runs.items():
                times = execution.measure(each, arrays, command.runs)
                title = f"{name}\n" if reference else ""
                timed = {"program": name, **execution.time_facts(each, times)}
                answer.add("times", [timed], title + execution.time_told(each, times))
        self.out.write(answer.as_json(opened.name) if command.json else answer.text)
        return DIFFERENT if different or failed else 0

    def _check(self, run: Run, arrays: Sequence[Array], answer: _Answer) -> tuple[list[Array], bool]:
        """Runs a program that is watched, and says what was found. Returns the results, and whether it has errors."""
        with execution.uninterrupted(), progress.shown(self.err) as tell:
            checked = check.check(run.executable, arrays, tell)
        for diagnostic in checked.diagnostics:
            self._say(diagnostic)
        if not checked.diagnostics:
            self._say(Diagnostic(Severity.REMARK, "check: nothing found"))
        answer.add("findings", [check.facts(each) for each in checked.diagnostics], "")
        return checked.results, checked.failed

    def _tell_of_unwritten(self, found: Sequence[results.Result], launches: bool) -> None:
        if launches and self.command.options.uninitialized == "nan" and any(map(results.may_be_unwritten, found)):
            holds = "memory that nobody wrote holds NaN, for integers the least number"
            self._say(note(f"{holds}: if the results shouldn't have that, --check says where it comes from"))

    def _named(self, run: Run, other: Run) -> dict[str, Run]:
        """Both by names that tell them apart, also where they are one file."""
        name, theirs = run.opened.name, other.opened.name
        if name == theirs:
            name += " after -p" if self.pipeline.steps else " (PROGRAM)"
        return {name: run, theirs: other}

    def _list(self, arguments: Sequence[Argument]) -> None:
        if self.command.json:
            listed = [
                {"argument": each.number, "name": each.name, "type": str(each.spec).partition("[")[0],
                 "shape": list(each.spec.shape), "bounds": list(each.bounds)}
                for each in arguments
            ]  # fmt: skip
            self.out.write(json.dumps({"arguments": listed}, indent=2, ensure_ascii=False) + "\n")
            return
        for each in arguments:
            bounds = f"  bound of {', '.join(each.bounds)}" if each.bounds else ""
            self.out.write(f"{each.number}  {each.key}  {each.spec}{bounds}\n")

    def _say(self, diagnostic: Diagnostic) -> None:
        self.err.write("\n".join(diagnostic.lines()) + "\n")


@dataclasses.dataclass
class _Answer:
    """What is printed at the end, in both forms."""

    text: str = ""
    document: dict[str, list[Any]] = dataclasses.field(default_factory=dict[str, list[Any]])

    def add(self, key: str, facts: list[Any] | None, text: str) -> None:
        """Adds a part; facts under one key are put together."""
        self.text += text
        if facts is not None:
            self.document.setdefault(key, []).extend(facts)

    def as_json(self, program: str) -> str:
        """One JSON document."""
        return json.dumps(results.plain({"program": program, **self.document}), indent=2, ensure_ascii=False) + "\n"
