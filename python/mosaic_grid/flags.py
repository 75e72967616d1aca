"""The flags of `mosaic-opt`, with what `--help` says of them and of the passes."""

from __future__ import annotations

import argparse
import dataclasses
import functools
from collections.abc import Callable
from typing import NoReturn

from mosaic_grid.errors import UserError
from mosaic_grid.native_passes import NATIVE_PASSES
from mosaic_grid.pass_options import nearest, option_type
from mosaic_grid.passbase import Pass
from mosaic_grid.passes import PASSES
from mosaic_grid.split_input import SEPARATOR

DESCRIPTION = """\
Opens lowered JAX programs with Pallas TPU kernels and runs passes over them.

INPUT is MLIR text or bytecode, a StableHLO portable artifact, a serialized jax.export, HLO text, a bare Mosaic kernel
or a stage dump of libtpu: whatever it is, it is told from its content. A directory stands for every dump in it, not in
the directories below, and '-' for standard input. With neither a pipeline nor another task, a terminal gets a summary
and anything else the program.
"""

EPILOG = """\
Checks (check-grid) only report: a run of nothing but checks prints no program, unless a flag says in which form.
Kernels are unpacked on the way in and packed again on the way out; a pipeline that names 'unpack-kernels' or
'pack-kernels' itself decides on that alone. A pass can be a flag too: --resolve-grid --partition-cores=cores=2.

Exit codes: 0, 1 if an error was diagnosed in a program, 2 for input that can't be read or a wrong command line, 70 for
an internal failure, which leaves a reproducer behind. The worst of several inputs counts; the others are still written,
but not into one FILE of -o, which is all or nothing.

OUT of -o is a directory if it is one or ends in '/'; then it is made if need be, and each program gets a file of its
own in it. Else it is one FILE for all of them, apart by separator lines, and compressed if its name ends in .gz. Text
in a file keeps the source locations that the program came with; on standard output --mlir-print-debuginfo prints them,
and also the places in the dump of what came without. Bytecode always has all. With --summary the summary goes there.
"""


class Parser(argparse.ArgumentParser):
    """Reports a wrong command line as every other wrong input is reported."""

    def error(self, message: str) -> NoReturn:
        """Raises `UserError`; argparse would print its usage and exit."""
        raise UserError(message.removeprefix("argument "), notes=["--help shows every flag"])

    @property
    def long_flags(self) -> tuple[str, ...]:
        """Every flag that begins with two dashes."""
        return tuple(flag for flag in self._option_string_actions if flag.startswith("--"))

    def takes_value(self, flag: str) -> bool:
        """Whether the argument after this flag is its value."""
        return flag in self._option_string_actions and self._option_string_actions[flag].nargs is None


def parser() -> Parser:
    """The parser of the whole command line."""
    result = Parser(
        prog="mosaic-opt",
        description=DESCRIPTION,
        epilog=f"{_help_of_passes()}\n\n{EPILOG}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    result.add_argument("inputs", nargs="*", metavar="INPUT", help="dumps to open; standard input if there are none")
    result.add_argument("-o", dest="output", default="-", metavar="OUT", help="where to write; DIR/ for a file each")
    _add_pass_flags(result.add_argument_group("passes"))
    _add_form_flags(result.add_argument_group("input and output"))
    _add_diagnostic_flags(result.add_argument_group("diagnostics"))
    _add_debug_flags(result.add_argument_group("watching passes"))
    _add_task_flags(result.add_argument_group("other tasks"))
    return result


def _add_pass_flags(group: argparse._ArgumentGroup) -> None:
    text = "'pass,pass{option=value}', MLIR's own included"
    group.add_argument("-p", dest="pipeline", action="append", default=[], metavar="PASSES", help=text)
    text = "the same, or 'builtin.module(...)'"
    group.add_argument("--pass-pipeline", action="append", default=[], metavar="PIPELINE", help=text)
    group.add_argument("--target", metavar="CHIP[:CORES]", help="what the program is made for: v4, v5e, v5p, v6e, ...")
    group.add_argument(
        "--kernel", action="append", default=[], metavar="NAME", help="only kernels of this name (a glob)"
    )
    text = "what is promised of the program's integer arguments, as 'n >= 1, 0 <= lengths[*] < 1024'"
    group.add_argument("--contracts", action="append", default=[], metavar="CONTRACTS", help=text)
    text = "verify after each pass (default: true)"
    group.add_argument("--verify-each", type=_boolean, default=True, metavar="BOOL", help=text)


def _add_form_flags(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--unpacked", action="store_true", help="write the unpacked program")
    text = "what to write: text or bytecode (default: text)"
    group.add_argument("--emit", type=choice("text", "bytecode"), default="text", metavar="FORM", help=text)
    text = "print source locations; in a file of -o they are kept anyway"
    group.add_argument("--mlir-print-debuginfo", action="store_true", help=text)
    group.add_argument("--mlir-print-op-generic", action="store_true", help="print ops in MLIR's generic form")
    group.add_argument("--allow-unregistered-dialect", action="store_true", help="take ops of dialects nobody knows")
    text = f"treat the parts between '{SEPARATOR}' lines, or lines of another marker, as inputs of their own"
    group.add_argument("--split-input-file", metavar="MARKER", help=text)
    text = "check expected-error, -warning, -remark and -note comments against what is said"
    group.add_argument("--verify-diagnostics", action="store_true", help=text)


def _add_diagnostic_flags(group: argparse._ArgumentGroup) -> None:
    text = "say what a diagnostic is about and what to do, or list them all"
    group.add_argument("--explain", metavar="NAME", help=text)
    group.add_argument("--strict", action="store_true", help="also warn of what checks could not decide")
    for level, flag, text in (
        ("error", "--Werror", "warnings are errors: all of them, or the diagnostic of this name"),
        ("warning", "--warn", "report the diagnostic of this name as a warning; the last flag for a name counts"),
        ("off", "--no-warn", "don't report warnings and remarks of this name"),
    ):
        read = functools.partial(_level, level)
        group.add_argument(flag, dest="levels", action="append", default=[], type=read, metavar="NAME", help=text)
    text = "don't report this of kernels whose name the glob matches"
    group.add_argument("--suppress", action="append", default=[], metavar="NAME:KERNEL", help=text)
    group.add_argument("--baseline", metavar="FILE", help="don't report findings that this file knows")
    text = "write the findings to this file instead of reporting them"
    group.add_argument("--write-baseline", metavar="FILE", help=text)
    text = "how they are reported: text on standard error, or json or sarif on standard output (default: text)"
    group.add_argument(
        "--diagnostics-format", type=choice("text", "json", "sarif"), default="text", metavar="FORM", help=text
    )


def _level(level: str, name: str) -> tuple[str, str]:
    return name, level


def _add_debug_flags(group: argparse._ArgumentGroup) -> None:
    for when in ("before", "after"):
        text = f"print the program {when} these passes, or every pass if none is named"
        group.add_argument(f"--mlir-print-ir-{when}", metavar="PASS,...", help=text)
        group.add_argument(f"--mlir-print-ir-{when}-all", action="store_true", help=f"... {when} every pass")
    group.add_argument("--mlir-print-ir-after-change", action="store_true", help="... after those that changed it")
    group.add_argument("--mlir-timing", action="store_true", help="say how long each pass took")


def _add_task_flags(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--summary", action="store_true", help="print what the launches and their grids are")
    group.add_argument("--compile", metavar="CHIP,...", help="compile the result with libtpu; needs no TPU")
    text = "how that is reported: text or json (default: text)"
    group.add_argument("--compile-format", type=choice("text", "json"), default="text", metavar="FORM", help=text)
    group.add_argument("--keep-compiler-dumps", metavar="DIR", help="leave libtpu's dumps there")
    group.add_argument("--run-reproducer", action="store_true", help="run what an internal failure left behind")
    group.add_argument("--list-passes", action="store_true", help="list the passes")
    group.add_argument("--version", action="store_true", help="print versions")
    group.add_argument("-h", "--help", action="store_true", help="print this")


def list_passes() -> str:
    """Every pass with its summary; MLIR's own by name."""
    ours = [f"{name:24}{_summary_of(cls)}" for name, cls in PASSES.items()]
    return "\n".join([*ours, "", "MLIR's own:", *(f"  {name}" for name in NATIVE_PASSES), ""])


def _help_of_passes() -> str:
    """What `--help` says of our passes: from their docstrings and fields."""
    lines = ["our passes (--list-passes lists MLIR's too):"]
    for name, cls in PASSES.items():
        lines.append(f"  {name:24}{_summary_of(cls)}")
        for field in dataclasses.fields(cls):
            told = f"{field.metadata['help']}; {option_type(cls, field)}"
            lines.append(f"    {field.name.replace('_', '-'):18}{told}")
    return "\n".join(lines)


def _summary_of(kind: type[Pass]) -> str:
    """The first line of a pass's documentation, as a help text is written."""
    first = (kind.__doc__ or "").splitlines()[0].rstrip(".")
    return first[:1].lower() + first[1:]


def _boolean(text: str) -> bool:
    if text.lower() in ("true", "1"):
        return True
    if text.lower() in ("false", "0"):
        return False
    raise argparse.ArgumentTypeError(f"expects true or false, got '{text}'{nearest(text, ['true', 'false'])}")


def choice(*choices: str) -> Callable[[str], str]:
    """The type of a flag whose value is one of these words."""

    def read(text: str) -> str:
        if text in choices:
            return text
        *others, last = (f"'{choice}'" for choice in choices)
        expects = f"{', '.join(others)} or {last}"
        raise argparse.ArgumentTypeError(f"expects {expects}, got '{text}'{nearest(text, choices)}")

    return read
