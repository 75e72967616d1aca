"""What `mosaic-opt` does with each input: open, unpack, run the passes, pack, write, summarise or compile."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from jaxlib.mlir import ir

from mosaic_grid import expected
from mosaic_grid.command_line import CommandLine
from mosaic_grid.containers import text as mlir_text
from mosaic_grid.containers.untrusted import check_kernels, check_registered
from mosaic_grid.diagnostics import Diagnostic, Severity, note, place_of
from mosaic_grid.dump import Dump, Kind, read_inputs
from mosaic_grid.errors import Place, UserError
from mosaic_grid.instrumentation import Instrument, IRPrinter, Timing
from mosaic_grid.native_passes import NATIVE_PASSES, NativePassError
from mosaic_grid.passes import PASSES
from mosaic_grid.pipeline import Pipeline, parse_pipeline, run_pipeline
from mosaic_grid.program import KERNEL, ProgramError, custom_calls, is_kernel
from mosaic_grid.reproducer import read_reproducer
from mosaic_grid.session import Session
from mosaic_grid.split_input import SEPARATOR, join_output, split_input
from mosaic_grid.unpack import is_serialized, pack, unpack
from mosaic_grid.write import write_atomically, write_bytecode, write_text

FORM_PASSES = ("unpack-kernels", "pack-kernels")


@dataclasses.dataclass(frozen=True)
class Result:
    """One program after its run: the module, packed again where it came packed, and what was said of it."""

    name: str
    module: ir.Operation
    diagnostics: tuple[Diagnostic, ...]


class Driver:
    """One run of the tool. Programs go to `out`, whatever is said about them to `err`."""

    def __init__(self, command: CommandLine, context: ir.Context, out: TextIO, err: TextIO) -> None:
        """Reads the pipeline; raises `UserError` where it can't be read. `context` must be current."""
        self.command = command
        self.context = context
        self.out = out
        self.err = err
        self.failed = False
        self.timing = Timing() if command.timing else None
        self.pipeline = parse_pipeline(command.pipeline, PASSES) if command.pipeline else Pipeline()
        command.printing.check([*PASSES, *NATIVE_PASSES])

    def run(self) -> int:
        """Works through the inputs and returns the exit code. Raises `UserError` for input that can't be read."""
        results: list[Result] = []
        for dump in self._dumps():
            for diagnostic in dump.notes:
                self._say(diagnostic)
            results += self._process(dump)
        if self.timing:
            self.err.write(self.timing.report())
        self._deliver(results)
        return 1 if self.failed else 0

    def _dumps(self) -> Iterator[Dump]:
        if not self.command.split and not self.command.verify_diagnostics:
            yield from read_inputs(self.command.inputs or ("-",), sys.stdin.buffer, self.context)
            return
        for path in self.command.inputs or ("-",):
            name = "<stdin>" if path == "-" else path
            yield Dump(name, Kind.TEXT, ir.Module.create(ir.Location.unknown()).operation, text=_text_of(path))

    def _process(self, dump: Dump) -> Iterator[Result]:
        """The results of one input: several where it is split. What they say is printed, or checked."""
        if not self.command.split and not self.command.verify_diagnostics:
            yield self._run_passes(dump)
            return
        source = dump.text or ""
        for chunk in split_input(source, self.command.split) if self.command.split else [source]:
            yield from self._process_text(chunk, dump.name)

    def _process_text(self, source: str, name: str) -> Iterator[Result]:
        if not self.command.verify_diagnostics:
            yield self._run_passes(Dump(name, Kind.TEXT, mlir_text.parse(source, name, self.context), text=source))
            return
        said: tuple[Diagnostic, ...]
        try:
            result = self._run_passes(
                Dump(name, Kind.TEXT, mlir_text.parse(source, name, self.context), text=source), quiet=True
            )
            said = result.diagnostics
        except NativePassError as error:
            said = error.diagnostics
        except UserError as error:
            said = (Diagnostic(Severity.ERROR, error.message, error.place, notes=tuple(map(note, error.notes))),)
        else:
            yield result
        for mismatch in expected.check(source, name, said):
            self._say(mismatch)

    def _run_passes(self, dump: Dump, *, quiet: bool = False) -> Result:
        """Runs the pipeline on one program."""
        command, program = self.command, dump.module
        if not command.allow_unregistered:
            check_registered(program, dump.name)
        check_kernels(program, dump.name)
        session = Session(command.target, command.kernels)
        packed = _is_packed(program)
        automatic = not any(name in FORM_PASSES for name in _pass_names(self.pipeline))
        looks_inside = bool(self.pipeline.steps) or command.form.unpacked or command.summary
        try:
            if packed and automatic and looks_inside:
                unpack(program)
            run_pipeline(self.pipeline, program, session, self._instruments(), verify=command.verify_each)
            if command.summary:
                self._summarise(program, dump.name)
            if packed and automatic and looks_inside and not command.form.unpacked:
                pack(program)
        except ProgramError as error:
            place = place_of(error.op.location) or Place(dump.name)
            raise UserError(str(error), place) from None
        if not quiet:
            for diagnostic in session.diagnostics:
                self._say(diagnostic)
        return Result(dump.name, program, tuple(session.diagnostics))

    def _instruments(self) -> Sequence[Instrument]:
        watching: list[Instrument] = []
        if self.command.printing.wanted:
            watching.append(IRPrinter(self.command.printing, self.err))
        if self.timing:
            watching.append(self.timing)
        return watching

    def _summarise(self, program: ir.Operation, name: str) -> None:
        from mosaic_grid.summary import print_summary

        print_summary(program, self.command, name, self.out)

    def _deliver(self, results: Sequence[Result]) -> None:
        command = self.command
        if command.compile:
            self._compile(results)
        told = command.summary or command.compile is not None or command.verify_diagnostics
        if told and command.form.output == "-":
            return
        if os.path.isdir(command.form.output):
            for result in results:
                name = os.path.basename(result.name.removesuffix(".gz")) if result.name != "<stdin>" else "stdin.mlir"
                write_atomically(os.path.join(command.form.output, name), self._written(result))
        elif len(results) == 1:
            self._write(self._written(results[0]))
        elif command.form.emit == "bytecode":
            raise UserError(
                "several programs can't be written as one file of bytecode", notes=["give a directory to -o"]
            )
        else:
            texts = [write_text(result.module, command.form.debuginfo) for result in results]
            self._write(join_output(texts, command.split or SEPARATOR))

    def _written(self, result: Result) -> str | bytes:
        if self.command.form.emit == "bytecode":
            return write_bytecode(result.module)
        return write_text(result.module, self.command.form.debuginfo)

    def _write(self, data: str | bytes) -> None:
        if self.command.form.output == "-" and isinstance(data, str):
            self.out.write(data)
        else:
            write_atomically(self.command.form.output, data)

    def _compile(self, results: Sequence[Result]) -> None:
        from mosaic_grid.compile_command import compile_results

        assert self.command.compile
        programs = [(result.name, result.module) for result in results]
        answer, compiled = compile_results(programs, self.command.compile)
        self.out.write(answer)
        self.failed |= not compiled

    def _say(self, diagnostic: Diagnostic) -> None:
        self.failed |= diagnostic.severity is Severity.ERROR
        self.err.write("\n".join(diagnostic.lines()) + "\n")


def run_reproducer(command: CommandLine) -> CommandLine:
    """The command line that a reproducer file records, its pipeline and flags in the place of the given ones.

    Raises `UserError` for a file that is no reproducer.
    """
    if len(command.inputs) != 1:
        raise UserError("--run-reproducer takes one file", notes=["the one that an internal failure has written"])
    from mosaic_grid.command_line import parse_command_line

    (path,) = command.inputs
    found = read_reproducer(_text_of(path), path)
    verify = f"--verify-each={'true' if found.verify else 'false'}"
    recorded = parse_command_line([path, f"--pass-pipeline={found.pipeline}", verify, *found.flags])
    return dataclasses.replace(recorded, form=command.form, printing=command.printing, timing=command.timing)


def _is_packed(program: ir.Operation) -> bool:
    """Whether some kernel is in the form in which JAX and libtpu exchange it."""
    if is_kernel(program):
        return is_serialized(program)
    return any(KERNEL not in call.attributes for call in custom_calls(program))


def _pass_names(pipeline: Pipeline) -> list[str]:
    return [step.name for step in pipeline.steps if hasattr(step, "name")]


def _text_of(path: str) -> str:
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"can't be read: {(error.strerror or str(error)).lower()}", Place(path)) from None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        message = "this is not text, which --split-input-file, --verify-diagnostics and --run-reproducer want"
        raise UserError(message, Place(path)) from None
