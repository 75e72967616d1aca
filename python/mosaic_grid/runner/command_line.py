"""The command line of `mosaic-run`, read into one frozen value."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

from mosaic_grid.cpu.options import Options
from mosaic_grid.errors import UserError
from mosaic_grid.flags import Parser
from mosaic_grid.flags import parser as mosaic_opt_parser
from mosaic_grid.pass_options import nearest
from mosaic_grid.runner import flags
from mosaic_grid.runner.differences import Tolerance
from mosaic_grid.runner.inputs import Given
from mosaic_grid.runner.results import check_path
from mosaic_grid.targets import Target, parse_target


@dataclasses.dataclass(frozen=True)
class CommandLine:
    """What the user asked for. `runs` is how often the program is run to be timed."""

    program: str
    other: str | None
    pipeline: str | None
    target: Target | None
    given: Given
    options: Options
    tolerance: Tolerance
    print_values: bool
    output: str | None
    check: bool
    runs: int | None
    json: bool
    list_inputs: bool
    help: bool


def parse_command_line(arguments: Sequence[str]) -> CommandLine:
    """Reads the arguments after the program's name. Raises `UserError`."""
    parser = flags.parser()
    rest, programs = _normal_form(arguments, parser)
    given, unknown = parser.parse_known_intermixed_args(rest)
    if unknown:
        flag, _, _ = unknown[0].partition("=")
        if f"--{flag.lstrip('-')}" in mosaic_opt_parser().long_flags:
            raise UserError(f"unknown flag '{flag}'", notes=["mosaic-opt has it: see mosaic-opt --help"])
        names = [name.removeprefix("--") for name in parser.long_flags]
        hint = nearest(flag.lstrip("-"), names).replace("'", "'--", 1)
        raise UserError(f"unknown flag '{flag}'{hint}", notes=["--help shows every flag"])
    programs = [*given.program, *programs]
    if len(programs) != 1 and not given.help:
        listed = " and ".join(f"'{each}'" for each in programs)
        found = f"is given {len(programs)} times: {listed}" if programs else "is not given"
        notes = ["give one dump, '-' for standard input; or --help"]
        if programs and given.time:
            notes.append("the number of runs of --time is given as --time=N")
        raise UserError(f"the program to run {found}", notes=notes)
    if given.compare is None and (given.rtol is not None or given.atol is not None):
        raise UserError("a tolerance is for --compare, which is not given", notes=["add --compare=OTHER"])
    if given.print and given.format == "json":
        raise UserError("--print is for text, and not for --format=json", notes=["-o FILE.npz saves the values"])
    if programs == ["-"] == [given.compare]:
        raise UserError("standard input can be read only once, and '-' is given twice")
    if given.check and given.time:
        raise UserError("--time measures a program that isn't watched", notes=["leave out --check"])
    if given.output is not None:
        check_path(given.output)
    return CommandLine(
        program=next(iter(programs), "-"),
        other=given.compare,
        pipeline=given.pipeline,
        target=parse_target(given.target) if given.target is not None else None,
        given=Given(tuple(given.input), tuple(given.inputs), tuple(given.bounds), given.seed),
        options=Options(given.uninitialized, given.dma, given.cores_interleaved, given.precision),
        tolerance=Tolerance(given.rtol or 0.0, given.atol or 0.0),
        print_values=given.print,
        output=given.output,
        check=given.check,
        runs=given.time,
        json=given.format == "json",
        list_inputs=given.list_inputs,
        help=given.help,
    )


def _normal_form(arguments: Sequence[str], parser: Parser) -> tuple[list[str], list[str]]:
    """The arguments as argparse wants them, and what `--` makes programs.

    A long flag may begin with a single dash, as in MLIR's tools. `--time` without a value gets the one it has then:
    argparse would take the next argument, which is the program, for it.
    """
    rest: list[str] = []
    left = iter(arguments)
    for argument in left:
        if argument == "--":
            break
        flag, equals, value = argument.partition("=")
        if argument.startswith("-") and f"--{flag.lstrip('-')}" in parser.long_flags:
            flag = f"--{flag.lstrip('-')}"
        if flag == "--time" and not equals:
            equals, value = "=", str(flags.RUNS)
        rest.append(f"{flag}{equals}{value}")
        if not equals and parser.takes_value(flag):
            rest += itertools.islice(left, 1)
    return rest, list(left)
