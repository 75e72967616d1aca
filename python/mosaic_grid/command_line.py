"""The command line of `mosaic-opt`: its flags, read into one frozen value."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from typing import Literal, NoReturn

from mosaic_grid.errors import UserError
from mosaic_grid.instrumentation import PrintOptions
from mosaic_grid.pass_options import nearest
from mosaic_grid.passes import PASSES
from mosaic_grid.split_input import SEPARATOR
from mosaic_grid.targets import Target, parse_target

Emit = Literal["text", "bytecode"]

DESCRIPTION = """\
Opens lowered JAX programs with Pallas TPU kernels and runs passes over them.

INPUT is MLIR text or bytecode, a StableHLO portable artifact, a serialized jax.export, HLO text, a bare Mosaic kernel or
a stage dump of libtpu: whatever it is, it is told from its content. A directory stands for every dump in it, and '-' for
standard input. With neither a pipeline nor another task, a summary is printed on a terminal and the program elsewhere.
"""

EPILOG = """\
Kernels are unpacked on the way in and packed again on the way out; a pipeline that names 'unpack-kernels' or
'pack-kernels' itself decides on that alone. A pass can also be given as a flag: --resolve-grid --partition-cores=cores=2.

Exit codes: 0, 1 if an error was diagnosed in a program, 2 for input that can't be read or a wrong command line.
"""


@dataclasses.dataclass(frozen=True)
class Form:
    """How programs are written: where, unpacked or as they came, as text or bytecode, with or without locations."""

    output: str = "-"
    unpacked: bool = False
    emit: Emit = "text"
    debuginfo: bool = False


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


class _Parser(argparse.ArgumentParser):
    """Reports a wrong command line as every other wrong input is reported."""

    def error(self, message: str) -> NoReturn:
        """Raises `UserError`; argparse would print its usage and exit."""
        raise UserError(message.removeprefix("argument "), notes=["--help shows every flag"])


def parse_command_line(arguments: Sequence[str]) -> CommandLine:
    """Reads the arguments after the program's name. Raises `UserError`; `--help` prints and exits."""
    rest, flagged = _passes_as_flags(arguments)
    given = _parser().parse_args(rest)
    pipelines = [text for text in (given.pipeline, given.pass_pipeline, ",".join(flagged)) if text]
    if len(pipelines) > 1:
        raise UserError("the passes are given twice", notes=["use one of -p, --pass-pipeline and passes as flags"])
    target = parse_target(given.target) if given.target else None
    return CommandLine(
        inputs=tuple(given.inputs),
        pipeline=next(iter(pipelines), None),
        target=target,
        kernels=tuple(given.kernel),
        form=Form(given.output, given.unpacked, given.emit, given.mlir_print_debuginfo),
        printing=_printing(given),
        compile=_compile(given),
        summary=given.summary,
        split=given.split_input_file,
        verify_diagnostics=given.verify_diagnostics,
        verify_each=given.verify_each,
        timing=given.mlir_timing,
        allow_unregistered=given.allow_unregistered_dialect,
        run_reproducer=given.run_reproducer,
        list_passes=given.list_passes,
    )


def _passes_as_flags(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Splits off flags that are our passes, `--name` or `--name=options`, as pipeline items."""
    rest: list[str] = []
    passes: list[str] = []
    for argument in arguments:
        name, equals, options = argument.removeprefix("--").partition("=")
        if argument.startswith("--") and name in PASSES:
            passes.append(f"{name}{{{options}}}" if equals else name)
        else:
            rest.append(argument)
    return rest, passes


def _compile(given: argparse.Namespace) -> Compile | None:
    if given.compile is None:
        if given.compile_format != "text":
            raise UserError("--compile-format says how --compile answers", notes=["add --compile=v5p"])
        return None
    targets = tuple(parse_target(name.strip()) for name in given.compile.split(","))
    return Compile(targets, given.compile_format == "json", given.keep_compiler_dumps)


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


def _boolean(text: str) -> bool:
    if text.lower() in ("true", "1"):
        return True
    if text.lower() in ("false", "0"):
        return False
    raise argparse.ArgumentTypeError(f"expects true or false, got '{text}'{nearest(text, ['true', 'false'])}")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="mosaic-opt",
        description=DESCRIPTION,
        epilog=f"{_help_of_passes()}\n\n{EPILOG}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("inputs", nargs="*", metavar="INPUT", help="dumps to open; standard input if there are none")
    parser.add_argument("-o", dest="output", default="-", metavar="OUT", help="where to write; a directory for several")
    _add_pass_flags(parser.add_argument_group("passes"))
    _add_form_flags(parser.add_argument_group("input and output"))
    _add_debug_flags(parser.add_argument_group("watching passes"))
    _add_task_flags(parser.add_argument_group("other tasks"))
    return parser


def _add_pass_flags(group: argparse._ArgumentGroup) -> None:
    group.add_argument("-p", dest="pipeline", metavar="PASSES", help="'pass,pass{option=value}', MLIR's own included")
    group.add_argument("--pass-pipeline", metavar="PIPELINE", help="the same, or 'builtin.module(...)'")
    group.add_argument("--target", metavar="CHIP[:CORES]", help="what the program is made for: v4, v5e, v5p, v6e, ...")
    group.add_argument("--kernel", action="append", default=[], metavar="NAME", help="only kernels of this name (glob)")
    group.add_argument(
        "--verify-each", type=_boolean, default=True, metavar="BOOL", help="verify after each pass (true)"
    )


def _add_form_flags(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--unpacked", action="store_true", help="write the unpacked program")
    group.add_argument("--emit", choices=("text", "bytecode"), default="text", help="what to write (default: text)")
    group.add_argument("--mlir-print-debuginfo", action="store_true", help="print source locations")
    group.add_argument("--allow-unregistered-dialect", action="store_true", help="take ops of dialects nobody knows")
    group.add_argument(
        "--split-input-file",
        nargs="?",
        const=SEPARATOR,
        metavar="MARKER",
        help=f"treat the parts between '{SEPARATOR}' lines as inputs of their own (give a marker with '=')",
    )
    group.add_argument(
        "--verify-diagnostics", action="store_true", help="check expected-error and the like in comments"
    )


def _add_debug_flags(group: argparse._ArgumentGroup) -> None:
    for when in ("before", "after"):
        group.add_argument(
            f"--mlir-print-ir-{when}", nargs="?", const="", metavar="PASS,...", help=f"print the program {when} passes"
        )
        group.add_argument(f"--mlir-print-ir-{when}-all", action="store_true", help=f"... {when} every pass")
    group.add_argument("--mlir-print-ir-after-change", action="store_true", help="... after those that changed it")
    group.add_argument("--mlir-timing", action="store_true", help="say how long each pass took")


def _add_task_flags(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--summary", action="store_true", help="print what the launches and their grids are")
    group.add_argument("--compile", metavar="CHIP,...", help="compile the result with libtpu; needs no TPU")
    group.add_argument("--compile-format", choices=("text", "json"), default="text", help="how that is reported")
    group.add_argument("--keep-compiler-dumps", metavar="DIR", help="leave libtpu's dumps there")
    group.add_argument("--run-reproducer", action="store_true", help="run what an internal failure left behind")
    group.add_argument("--list-passes", action="store_true", help="list the passes")
    group.add_argument("--version", action="store_true", help="print versions")


def _help_of_passes() -> str:
    """What `--help` says of our passes: from their docstrings and fields."""
    lines = ["our passes:"]
    for name, cls in PASSES.items():
        lines.append(f"  {name:20}{(cls.__doc__ or '').splitlines()[0].rstrip('.').lower()}")
        for field in dataclasses.fields(cls):
            lines.append(f"    {field.name.replace('_', '-'):18}{field.metadata['help']}")
    return "\n".join(lines)


def wants_help(arguments: Sequence[str]) -> bool:
    """Whether there is nothing to do but to say so: no arguments, and a person at the keyboard."""
    return not arguments and sys.stdin.isatty()


def with_default_task(command: CommandLine, terminal: bool) -> CommandLine:
    """On a terminal, a file and nothing else to do with it asks for its summary."""
    idle = command.pipeline is None and command.compile is None and command.form == Form()
    return dataclasses.replace(
        command, summary=command.summary or (terminal and idle and not command.verify_diagnostics)
    )
