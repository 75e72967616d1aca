"""The command line of `mosaic-opt`: its flags, read into one frozen value."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import sys
from collections.abc import Sequence
from typing import Literal

from mosaic_grid import flags
from mosaic_grid.dataflow.promises import unreadable
from mosaic_grid.errors import UserError
from mosaic_grid.instrumentation import PrintOptions
from mosaic_grid.native_passes import NATIVE_PASSES
from mosaic_grid.output import is_folder
from mosaic_grid.pass_options import nearest
from mosaic_grid.passes import PASSES
from mosaic_grid.reports import Format
from mosaic_grid.selection import Selection
from mosaic_grid.selection_flags import read_selection
from mosaic_grid.split_input import SEPARATOR
from mosaic_grid.symbolic.contract_syntax import ContractError, parse
from mosaic_grid.symbolic.contracts import split_contracts
from mosaic_grid.targets import Target, parse_target

Emit = Literal["text", "bytecode"]

_VALUE_LEFT_OUT = {
    "--split-input-file": SEPARATOR,
    "--mlir-print-ir-before": "",
    "--mlir-print-ir-after": "",
    "--verify-each": "true",
    "--Werror": "",
    "--explain": "",
}
"""The flags whose value is optional, and what they are without one."""

_OTHER_NAMES = {"--emit-bytecode": "--emit=bytecode"}
"""Flags of MLIR's tools that have another name here."""

_INSTEAD = {
    "--show-dialects": "--version names what is installed, whose dialects are known",
    "--dump-pass-pipeline": "--list-passes lists every pass, --mlir-timing those that ran",
}
"""Flags of MLIR's tools that there are not, with what serves here."""


@dataclasses.dataclass(frozen=True)
class Form:
    """How programs are written: where, unpacked or as they came, as text or bytecode, with or without locations.

    Without `debuginfo` text on standard output has none, and text in a file has those that came with the program.
    """

    output: str = "-"
    unpacked: bool = False
    emit: Emit = "text"
    debuginfo: bool = False
    generic: bool = False

    @property
    def to_stdout(self) -> bool:
        """Whether programs go to standard output."""
        return self.output == "-"

    @property
    def to_file(self) -> bool:
        """Whether all programs go to one file."""
        return not self.to_stdout and not is_folder(self.output)


@dataclasses.dataclass(frozen=True)
class Compile:
    """Asking the real compiler: for which targets, and how its answer is printed."""

    targets: tuple[Target, ...]
    json: bool = False
    keep: str | None = None


@dataclasses.dataclass(frozen=True)
class CommandLine:
    """What the user asked for."""

    inputs: tuple[str, ...]
    pipeline: str | None
    target: Target | None
    kernels: tuple[str, ...]
    form: Form
    printing: PrintOptions
    compile: Compile | None
    summary: bool
    split: str | None
    verify_diagnostics: bool
    verify_each: bool
    timing: bool
    allow_unregistered: bool
    run_reproducer: bool
    list_passes: bool
    help: bool
    selection: Selection = dataclasses.field(default_factory=Selection)
    report_as: Format = "text"
    contracts: tuple[str, ...] = ()
    explain: tuple[str, ...] | None = None
    """The diagnostics to explain, all if there are none; `None` where nothing is to be explained."""


def parse_command_line(arguments: Sequence[str]) -> CommandLine:
    """Reads the arguments after the program's name. Raises `UserError`."""
    parser = flags.parser()
    rest, flagged, inputs = _normal_form(arguments, parser)
    given, unknown = parser.parse_known_intermixed_args(rest)
    if unknown:
        flag, _, _ = unknown[0].partition("=")
        if instead := _INSTEAD.get(f"--{flag.lstrip('-')}"):
            raise UserError(f"there is no '{flag}' here", notes=[instead])
        near = nearest(flag.lstrip("-"), [*(name.removeprefix("--") for name in parser.long_flags), *_flag_passes()])
        hint = near.replace("'", "'--", 1)
        raise UserError(f"unknown flag '{flag}'{hint}", notes=["--help shows every flag"])
    pipelines = [*given.pipeline, *given.pass_pipeline, *([",".join(flagged)] if flagged else [])]
    if len(pipelines) > 1:
        raise UserError("the passes are given twice", notes=["use one of -p, --pass-pipeline and passes as flags"])
    inputs = [*given.inputs, *inputs]
    if inputs.count("-") > 1:
        raise UserError("standard input can be read only once, and '-' is given twice")
    compiled = _compile(given)
    target = parse_target(given.target) if given.target is not None else None
    if target is None and compiled and len(compiled.targets) == 1:
        (target,) = compiled.targets
    return CommandLine(
        inputs=tuple(inputs),
        pipeline=next(iter(pipelines), None),
        target=target,
        kernels=tuple(given.kernel),
        form=Form(given.output, given.unpacked, given.emit, given.mlir_print_debuginfo, given.mlir_print_op_generic),
        printing=_printing(given),
        compile=compiled,
        summary=given.summary,
        split=given.split_input_file,
        verify_diagnostics=given.verify_diagnostics,
        verify_each=given.verify_each,
        timing=given.mlir_timing,
        allow_unregistered=given.allow_unregistered_dialect,
        run_reproducer=given.run_reproducer,
        list_passes=given.list_passes,
        help=given.help,
        selection=read_selection(given),
        report_as=_report_as(given),
        contracts=_contracts(given.contracts),
        explain=None if given.explain is None else tuple(filter(None, (given.explain, *inputs))),
    )


def _contracts(lists: Sequence[str]) -> tuple[str, ...]:
    """The contracts one by one; what they say of a program is found out when there is one."""
    contracts = tuple(itertools.chain.from_iterable(map(split_contracts, lists)))
    for contract in contracts:
        try:
            parse(contract)
        except ContractError as error:
            raise unreadable(error) from None
    return contracts


def _report_as(given: argparse.Namespace) -> Format:
    form: Format = given.diagnostics_format
    if form != "text" and (given.summary or given.compile is not None):
        other = "--summary" if given.summary else "--compile"
        raise UserError(f"--diagnostics-format={form} and {other} both write to standard output", notes=["give one"])
    return form


def _normal_form(arguments: Sequence[str], parser: flags.Parser) -> tuple[list[str], list[str], list[str]]:
    """The arguments as argparse wants them, those that are passes, as pipeline items, and what `--` makes inputs.

    A pass is `--name` or `--name=options`.

    A long flag may begin with a single dash, as in MLIR's tools. A flag whose value is optional gets the one it has
    without; otherwise argparse would take the next argument, which is an input, for it.
    """
    rest: list[str] = []
    passes: list[str] = []
    names = _flag_passes()
    left = iter(arguments)
    for argument in left:
        if argument == "--":
            break
        flag, equals, value = argument.partition("=")
        name = flag.lstrip("-")
        if argument.startswith("-") and (other := _OTHER_NAMES.get(f"--{name}")):
            flag, equals, value = other.partition("=")
        if argument.startswith("-") and (name in names or f"--{name}" in parser.long_flags):
            flag = f"--{name}"
        if flag == f"--{name}" and name in names:
            passes.append(f"{name}{{{value}}}" if equals else name)
            continue
        if not equals and flag in _VALUE_LEFT_OUT:
            flag, equals, value = flag, "=", _VALUE_LEFT_OUT[flag]
        rest.append(f"{flag}{equals}{value}")
        if not equals and parser.takes_value(flag):
            rest += itertools.islice(left, 1)
    return rest, passes, list(left)


def _flag_passes() -> frozenset[str]:
    """The passes that may be flags."""
    return frozenset((*PASSES, *NATIVE_PASSES))


def _compile(given: argparse.Namespace) -> Compile | None:
    if given.compile is None:
        if given.compile_format != "text" or given.keep_compiler_dumps:
            flag = "--keep-compiler-dumps" if given.keep_compiler_dumps else "--compile-format"
            raise UserError(f"{flag} is about --compile, which is not given", notes=["add --compile=v5p"])
        return None
    targets = dict.fromkeys(parse_target(name.strip()) for name in given.compile.split(","))
    return Compile(tuple(targets), given.compile_format == "json", given.keep_compiler_dumps)


def _printing(given: argparse.Namespace) -> PrintOptions:
    return PrintOptions(
        before=_names(given.mlir_print_ir_before),
        before_all=given.mlir_print_ir_before_all or given.mlir_print_ir_before == "",
        after=_names(given.mlir_print_ir_after),
        after_all=given.mlir_print_ir_after_all or given.mlir_print_ir_after == "",
        after_change=given.mlir_print_ir_after_change,
        debug_info=given.mlir_print_debuginfo,
        verified=given.verify_each,
    )


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def wants_help(arguments: Sequence[str]) -> bool:
    """Whether there is nothing to do but to say so: no arguments, and a person at the keyboard."""
    return not arguments and sys.stdin.isatty()


def with_default_task(command: CommandLine, terminal: bool) -> CommandLine:
    """On a terminal, a file and nothing else to do with it asks for its summary."""
    idle = command.pipeline is None and command.compile is None and command.form == Form()
    idle = idle and command.report_as == "text"
    return dataclasses.replace(
        command, summary=command.summary or (terminal and idle and not command.verify_diagnostics)
    )
