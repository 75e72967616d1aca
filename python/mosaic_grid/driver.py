"""What `mosaic-opt` does with each input: open, unpack, run the passes, pack, write, summarise or compile."""

from __future__ import annotations

import dataclasses
import io
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

from jaxlib.mlir import ir

import mosaic_grid
from mosaic_grid import expected, supervisor
from mosaic_grid.command_line import CommandLine, Form
from mosaic_grid.containers import text as mlir_text
from mosaic_grid.containers.untrusted import check_kernels, check_registered, reading
from mosaic_grid.core_counts import told_of_cores
from mosaic_grid.dataflow.promises import check_contracts
from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.dump import Dump, bytes_of, name_of, read_each
from mosaic_grid.errors import Place, UserError
from mosaic_grid.instrumentation import Instrument, IRPrinter, Timing
from mosaic_grid.kernel_patterns import check_patterns, warning_of_native_passes, warnings_of_suppressions
from mosaic_grid.native_passes import NATIVE_PASSES, NativePassError
from mosaic_grid.output import Written, check_output, deliver
from mosaic_grid.own_locations import with_own_locations
from mosaic_grid.packed import has_launches, is_packed, packed_bytes
from mosaic_grid.passes import PASSES
from mosaic_grid.pipeline import NativePass, Pipeline, parse_pipeline, run_pipeline
from mosaic_grid.program import Program
from mosaic_grid.reports import Reporter
from mosaic_grid.reproducer import InternalError, flags_of
from mosaic_grid.session import Session
from mosaic_grid.split_input import SEPARATOR, split_input
from mosaic_grid.stages import raised_at, stage
from mosaic_grid.unpack import pack, unpack
from mosaic_grid.write import write_bytecode, write_text

DIAGNOSED, BAD_INPUT, INTERNAL = 1, 2, 70
"""Exit codes, the worst of which a run ends with; 70 is EX_SOFTWARE of sysexits.h."""

_FORM_PASSES = ("unpack-kernels", "pack-kernels")


@dataclasses.dataclass(frozen=True)
class _Job:
    """One program to work on: a dump that was opened, or a part of a text that is still to be parsed."""

    name: str
    module: ir.Operation | None = None
    text: str = ""


@dataclasses.dataclass(frozen=True)
class _Result:
    """A program after its passes, packed again where it came packed."""

    name: str
    module: ir.Operation


class Driver:
    """One run of the tool. Programs go to `out`, whatever is said about them to `err`."""

    def __init__(self, command: CommandLine, context: ir.Context, out: TextIO, err: TextIO) -> None:
        """Reads the pipeline; raises `UserError` where it can't be read. `context` must be current."""
        self.command = command
        self.context = context
        self.out = out
        self.err = err
        self.status = 0
        self.timing = Timing() if command.timing else None
        self.pipeline = parse_pipeline(command.pipeline, PASSES) if command.pipeline else Pipeline()
        self.kernels: dict[str, None] = {}
        command.printing.check([*PASSES, *NATIVE_PASSES])
        check_output(command.form.output)
        self.summaries: list[Written] = []
        self.reporter = Reporter(command.report_as, out, err)

    def run(self) -> int:
        """Works through the inputs and returns the exit code: an input that can't be read doesn't stop it."""
        try:
            self._run()
        except UserError as error:
            self.reporter.fail(_diagnostics(error)[0])
            self.status = max(self.status, BAD_INPUT)
            raise
        finally:
            self.reporter.finish(mosaic_grid.__version__, self.status)
        return self.status

    def _run(self) -> None:
        command = self.command
        for told in warning_of_native_passes(command.kernels, self.pipeline):
            self._say(told)
        for told in told_of_cores(self.pipeline, command.target, command.compile.targets if command.compile else ()):
            self._say(told)
        results = [result for job in self._jobs() if (result := self._work(job))]
        self._check_patterns()
        if self.timing:
            self.err.write(self.timing.report())
        with supervisor.unwinding():
            self._deliver(results)
            if command.compile:
                self._compile(results)
        if command.selection.recorder:
            self._say(command.selection.recorder.write())

    def _jobs(self) -> Iterator[_Job]:
        """The programs of all inputs. Inputs that can't be read are reported on the way."""
        command = self.command
        as_text = command.split is not None or command.verify_diagnostics
        for path in command.inputs or ("-",):
            try:
                with stage(f"reading {name_of(path)}"):
                    yield from self._parts(path) if as_text else self._opened(path)
            except (UserError, InternalError) as error:
                self._report(error)

    def _opened(self, path: str) -> list[_Job]:
        dumps: list[Dump] = []
        for opened in read_each([path], sys.stdin.buffer, self.context):
            if isinstance(opened, UserError):
                self._report(opened)
                continue
            for told in opened.notes:
                self._say(told)
            dumps.append(opened)
        return [_Job(dump.name, dump.module) for dump in dumps]

    def _parts(self, path: str) -> list[_Job]:
        source, split = text_of(path), self.command.split
        chunks = split_input(source, split) if split is not None else [source]
        return [_Job(name_of(path), text=chunk) for chunk in chunks]

    def _work(self, job: _Job) -> _Result | None:
        """Runs everything on one program and prints, or checks, what is said of it; `None` if an error was."""
        command = self.command
        session = Session(command.target, command.kernels, command.contracts, selection=command.selection)
        failure: UserError | None = None
        result: _Result | None = None
        try:
            result = _Result(job.name, self._run_passes(job, session))
        except UserError as error:
            failure = _located(error, job.name)
        except InternalError as error:
            self._report(error)
        if self.command.verify_diagnostics:
            said = [*session.diagnostics, *(_diagnostics(failure) if failure else ())]
            for mismatch in expected.check(job.text, job.name, said):
                self._say(mismatch)
        else:
            for diagnostic in session.diagnostics:
                self._say(diagnostic, job.name)
            if failure:
                self._report(failure)
        return None if session.failed else result

    def _run_passes(self, job: _Job, session: Session) -> ir.Operation:
        """The program after its passes. Raises `UserError` or `InternalError`."""
        command = self.command
        with stage(f"reading {job.name}"):
            program = mlir_text.parse(job.text, job.name, self.context) if job.module is None else job.module
            if not command.allow_unregistered:
                check_registered(program, job.name)
            check_kernels(program, job.name)
        flags = flags_of(command.target, command.kernels, command.contracts)
        unpacks = self._looks_inside and is_packed(program)
        if unpacks:
            rest = Pipeline((PASSES["unpack-kernels"](), *self.pipeline.steps))
            with stage("unpacking the kernels", program, str(rest), flags), reading(job.name, packed_bytes(program)):
                unpack(program)
        self._note_kernels(program)
        check_contracts(program, command.contracts)
        run_pipeline(self.pipeline, program, session, self._instruments(), verify=command.verify_each)
        self._note_kernels(program)
        if command.summary:
            with stage("the summary", program, flags=(*flags, "--summary")):
                self._summarise(program, job.name)
        if unpacks and not command.form.unpacked and not session.failed:
            with stage("packing the kernels", program, str(Pipeline((PASSES["pack-kernels"](),))), flags):
                pack(program)
        return program

    @property
    def _looks_inside(self) -> bool:
        """Whether packed kernels are unpacked without being asked: not if a pass of the pipeline decides that."""
        command = self.command
        names = {step.name for step in self.pipeline.steps if not isinstance(step, NativePass)}
        wanted = bool(self.pipeline.steps or command.form.unpacked or command.summary or command.kernels)
        return wanted and names.isdisjoint(_FORM_PASSES)

    @property
    def _only_checks(self) -> bool:
        """Whether all that was asked for is what checks say."""
        steps = self.pipeline.steps
        checks = bool(steps) and all(not isinstance(step, NativePass) and step.kind == "check" for step in steps)
        return checks and self.command.form == Form()

    def _instruments(self) -> Sequence[Instrument]:
        watching: list[Instrument] = []
        if self.command.printing.wanted:
            watching.append(IRPrinter(self.command.printing, self.err))
        if self.timing:
            watching.append(self.timing)
        return watching

    def _summarise(self, program: ir.Operation, name: str) -> None:
        from mosaic_grid.summary import print_summary

        to_file = None if self.command.form.to_stdout else io.StringIO()
        print_summary(program, self.command, name, to_file or self.out, self.err)
        if to_file:
            self.summaries.append(Written(name, to_file.getvalue(), summary=True))

    def _deliver(self, results: Sequence[_Result]) -> None:
        """Writes the programs. One file for all is only written if nothing went wrong with any of them."""
        command, form = self.command, self.command.form
        if form.to_stdout and (command.summary or command.compile or self.reporter.takes_stdout or self._only_checks):
            return
        if form.to_file and self.status:
            self.err.write(f"note: {form.output} is not written\n")
            return
        if command.summary:
            deliver(self.summaries, form.output, "")
            return
        if form.to_stdout and form.emit == "bytecode" and self.out.isatty():
            raise UserError("bytecode is not for a terminal", notes=["give a file to -o, or a command to pipe it to"])
        with stage("writing the output"):
            self.out.flush()
            written = [Written(result.name, self._form(result)) for result in results]
            deliver(written, form.output, command.split or SEPARATOR)

    def _form(self, result: _Result) -> str | bytes:
        form = self.command.form
        if form.emit == "bytecode":
            return write_bytecode(result.module)
        kept = None if form.to_stdout or form.debuginfo else with_own_locations(result.module, result.name)
        return write_text(kept or result.module, form.debuginfo or kept is not None, form.generic)

    def _compile(self, results: Sequence[_Result]) -> None:
        from mosaic_grid.compile_command import Compiled, answer_of, compile_module

        assert self.command.compile
        compiled: list[Compiled] = []
        whole = [has_launches(result.module) for result in results]
        for index, result in enumerate(results):
            if any(whole) and not whole[index]:
                self._say(note("there is no launch in it to compile", Place(result.name)))
                continue
            try:
                with stage("compiling", result.module):
                    compiled.append(compile_module(result.name, result.module, self.command.compile, index))
            except (UserError, InternalError) as error:
                self._report(error)
        self.out.write(answer_of(compiled, self.command.compile))
        if any(report.failed for _, reports in compiled for report in reports):
            self.status = max(self.status, DIAGNOSED)

    def _note_kernels(self, program: ir.Operation) -> None:
        """Keeps the names of a program's kernels: before its passes, which may lower them, and what they unpacked."""
        if self.command.kernels or self.command.selection.suppressions:
            self.kernels.update(dict.fromkeys(kernel.name for kernel in Program(program).kernels.values()))

    def _check_patterns(self) -> None:
        """Raises `UserError` if some `--kernel` matches no kernel of any program, all of which could be read.

        A `--suppress` that matches none is a warning.
        """
        if self.status < BAD_INPUT:
            check_patterns(self.command.kernels, list(self.kernels))
            for told in warnings_of_suppressions(self.command.selection.suppressions, list(self.kernels)):
                self._say(told)

    def _report(self, error: UserError | InternalError) -> None:
        self.err.write(f"{error}\n")
        if isinstance(error, InternalError):
            self.err.write(f"note: {raised_at(error.cause)}\n")
            self.reporter.fail(Diagnostic(Severity.ERROR, str(error)))
        else:
            self.reporter.fail(_diagnostics(error)[0])
        self.status = max(self.status, _status_of(error))

    def _say(self, diagnostic: Diagnostic, program: str = "") -> None:
        if diagnostic.severity is Severity.ERROR:
            self.status = max(self.status, DIAGNOSED)
        self.reporter.say(diagnostic, program)


def text_of(path: str) -> str:
    """The text of an input. Raises `UserError` for one that is none."""
    try:
        return bytes_of(path, sys.stdin.buffer).decode("utf-8")
    except UnicodeDecodeError:
        message = "this is not text, which --split-input-file, --verify-diagnostics and --run-reproducer want"
        raise UserError(message, Place(name_of(path))) from None


def _located(error: UserError, name: str) -> UserError:
    """The error, in the file of this name if it doesn't say where it is."""
    if error.place is None:
        error.place = Place(name)
    return error


def _diagnostics(error: UserError) -> Sequence[Diagnostic]:
    if isinstance(error, NativePassError):
        return error.diagnostics
    return [Diagnostic(Severity.ERROR, error.message, error.place, notes=tuple(map(note, error.notes)))]


def _status_of(error: UserError | InternalError) -> int:
    if isinstance(error, InternalError):
        return INTERNAL
    return DIAGNOSED if isinstance(error, NativePassError) else BAD_INPUT
