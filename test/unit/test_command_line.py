"""The command line: every flag, both ways of writing it, and what is said about a wrong one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mosaic_grid import flags
from mosaic_grid.command_line import CommandLine, Form, parse_command_line, with_default_task
from mosaic_grid.errors import UserError
from mosaic_grid.native_passes import NATIVE_PASSES
from mosaic_grid.passes import PASSES
from mosaic_grid.selection import Selection, Suppression
from mosaic_grid.split_input import SEPARATOR
from mosaic_grid.targets import parse_target


def parse(*arguments: str) -> CommandLine:
    """What the arguments say."""
    return parse_command_line(arguments)


@pytest.mark.parametrize(
    ("arguments", "pipeline", "inputs"),
    [
        (["x.mlir"], None, ("x.mlir",)),
        (["-p", "a,b", "x.mlir"], "a,b", ("x.mlir",)),
        (["x.mlir", "-pa,b"], "a,b", ("x.mlir",)),
        (["-p", ""], "", ()),
        (["--pass-pipeline=builtin.module(a)", "-"], "builtin.module(a)", ("-",)),
        (["-pass-pipeline", "a", "x"], "a", ("x",)),
        (["--resolve-grid", "x", "--partition-cores=cores=2"], "resolve-grid,partition-cores{cores=2}", ("x",)),
        (
            ["-cse", "-canonicalize=max-iterations=2 top-down=true"],
            "cse,canonicalize{max-iterations=2 top-down=true}",
            (),
        ),
        (["--resolve-grid="], "resolve-grid{}", ()),
        (["--unpacked", "a", "-o", "out", "b", "--summary", "c"], None, ("a", "b", "c")),
        (["a", "--", "--cse", "-x"], None, ("a", "--cse", "-x")),
        (["-o", "out", "--target", "v5p", "a"], None, ("a",)),
        (["--", "-x", "-p"], None, ("-x", "-p")),
    ],
)
def test_passes_and_inputs(arguments: list[str], pipeline: str | None, inputs: tuple[str, ...]) -> None:
    """Passes may be given in three ways, inputs anywhere, and a value is never taken for a flag or a pass."""
    command = parse(*arguments)
    assert (command.pipeline, command.inputs) == (pipeline, inputs)


@pytest.mark.parametrize("dashes", ["-", "--"])
def test_optional_values_swallow_no_input(dashes: str) -> None:
    """A flag whose value may be left out doesn't take the input after it for one."""
    command = parse(f"{dashes}split-input-file", "a", f"{dashes}mlir-print-ir-after", "b", f"{dashes}verify-each", "c")
    assert command.inputs == ("a", "b", "c")
    assert command.split == SEPARATOR
    assert command.printing.after_all
    assert command.verify_each
    given = parse(f"{dashes}split-input-file=//--", f"{dashes}mlir-print-ir-after=cse, sccp", f"{dashes}verify-each=0")
    assert given.split == "//--"
    assert (given.printing.after, given.printing.after_all) == (("cse", "sccp"), False)
    assert not given.verify_each


def test_every_long_flag_may_have_a_single_dash(tmp_path: Path) -> None:
    """MLIR's tools take both, and people who know them type both."""
    known = tmp_path / "known.json"
    known.write_text('{"version": 1, "findings": []}')
    values = {
        "--explain": "idle-cores",
        "--Werror": "idle-cores",
        "--warn": "idle-cores",
        "--no-warn": "idle-cores",
        "--suppress": "idle-cores:*",
        "--baseline": str(known),
        "--write-baseline": "new.json",
        "--diagnostics-format": "json",
        "--pass-pipeline": "cse",
        "--target": "v5p",
        "--kernel": "k",
        "--contracts": "n >= 1",
        "--verify-each": "false",
        "--emit": "bytecode",
        "--split-input-file": "//",
        "--mlir-print-ir-before": "cse",
        "--mlir-print-ir-after": "cse",
        "--compile": "v5p",
        "--compile-format": "json",
        "--keep-compiler-dumps": "d",
    }
    parser = flags.parser()
    for flag in parser.long_flags:
        extra = ["--compile=v5p"] if flag in ("--compile-format", "--keep-compiler-dumps") else []
        given = f"{flag}={values[flag]}" if parser.takes_value(flag) else flag
        assert parse(given[1:], *extra) == parse(given, *extra) != parse(*extra) or flag == "--version", flag


def test_selection() -> None:
    """Flags of a name are kept in their order; --Werror without one is about all warnings."""
    given = parse("--Werror", "--Werror=idle-cores", "--warn", "idle-cores", "--strict", "--suppress=zero-trip-grid:a*")
    assert given.selection == Selection(
        strict=True,
        werror=True,
        levels=(("idle-cores", "error"), ("idle-cores", "warning")),
        suppressions=(Suppression("zero-trip-grid", "a*"),),
    )


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--Werror=idle-core", "there is no diagnostic 'idle-core'; did you mean 'idle-cores'?"),
        ("--no-warn=zero-trip-grid", "--no-warn: zero-trip-grid is an error"),
        ("--suppress=idle-cores", "--suppress expects NAME:KERNEL, got 'idle-cores'"),
        ("--baseline=missing.json", "can't read the baseline 'missing.json': no such file or directory"),
        ("--diagnostics-format=xml", "--diagnostics-format: expects 'text', 'json' or 'sarif', got 'xml'"),
    ],
)
def test_bad_selection(flag: str, message: str) -> None:
    """A name that isn't in the catalogue, or a flag that would do nothing, is an error."""
    with pytest.raises(UserError, match=re.escape(message)):
        parse(flag)


def test_documents_have_standard_output_for_themselves() -> None:
    """Two answers can't both be on it."""
    with pytest.raises(UserError, match="both write to standard output"):
        parse("--diagnostics-format=sarif", "--summary")


def test_explain() -> None:
    """The names may stand behind an equals sign or a space; none at all asks for the list."""
    assert parse("--explain").explain == ()
    assert parse("--explain=idle-cores").explain == parse("--explain", "idle-cores").explain == ("idle-cores",)
    assert parse("x").explain is None


def test_printing() -> None:
    """The flags around passes say what they say in MLIR."""
    printing = parse("--mlir-print-ir-before=cse", "--mlir-print-ir-after-change", "--mlir-print-debuginfo").printing
    assert (printing.before, printing.after_change, printing.debug_info) == (("cse",), True, True)
    printing = parse("--mlir-print-ir-before-all", "--mlir-print-ir-after-all").printing
    assert (printing.before_all, printing.after_all) == (True, True)
    assert parse("--mlir-print-ir-before").printing.before_all
    assert not parse("x").printing.wanted


def test_compile() -> None:
    """Targets are a list, each once, with the format and place of the answer."""
    wanted = parse("--compile=v5p, v5e,v5p", "--compile-format=json", "--keep-compiler-dumps=d").compile
    assert wanted is not None
    assert wanted.targets == (parse_target("v5p"), parse_target("v5e"))
    assert (wanted.json, wanted.keep) == (True, "d")
    assert parse("--compile=v5p,v5e").target is None
    assert parse("--compile=v5e").target == parse_target("v5e")
    assert parse("--compile=v5e", "--target=v5p").target == parse_target("v5p")


def test_other_names() -> None:
    """What MLIR's tools call otherwise is understood."""
    assert parse("--emit-bytecode") == parse("-emit-bytecode") == parse("--emit=bytecode")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--split-input-fil"], "unknown flag '--split-input-fil'; did you mean '--split-input-file'?"),
        (["-verify-diagnostic"], "unknown flag '-verify-diagnostic'; did you mean '--verify-diagnostics'?"),
        (["--resolve-gird=x"], "unknown flag '--resolve-gird'; did you mean '--resolve-grid'?"),
        (["--show-dialects"], "there is no '--show-dialects' here\nnote: --version"),
        (["-dump-pass-pipeline"], "there is no '-dump-pass-pipeline' here\nnote: --list-passes"),
        (["--zzzz", "x"], "unknown flag '--zzzz'\nnote: --help shows every flag"),
        (["-o"], "-o: expected one argument\nnote: --help shows every flag"),
        (["--target"], "--target: expected one argument"),
        (["--unpacked=true"], "--unpacked: ignored explicit argument 'true'"),
        (["--emit=byte"], "--emit: expects 'text' or 'bytecode', got 'byte'; did you mean 'bytecode'?"),
        (["--compile=v5p", "--compile-format=xml"], "--compile-format: expects 'text' or 'json', got 'xml'"),
        (["--compile-format=json"], "--compile-format is about --compile, which is not given"),
        (["--keep-compiler-dumps=d"], "--keep-compiler-dumps is about --compile, which is not given"),
        (["--compile="], "unknown target ''"),
        (["--compile=v5p,v5x"], "unknown target 'v5x'; did you mean 'v5p'?"),
        (["--target="], "unknown target ''"),
        (["--target=v5e:2"], "target 'v5e:2': a v5e device can't have '2' cores; use 'v5e:1'"),
        (["--verify-each=tru"], "--verify-each: expects true or false, got 'tru'; did you mean 'true'?"),
        (["-p", "a", "-p", "b"], "the passes are given twice"),
        (["-p", "a", "--pass-pipeline=b"], "the passes are given twice"),
        (["-p", "", "--cse"], "the passes are given twice"),
        (["-", "x", "-"], "standard input can be read only once, and '-' is given twice"),
    ],
)
def test_wrong_command_lines(arguments: list[str], message: str) -> None:
    """A wrong command line is a `UserError` that says what is meant, or what there is."""
    with pytest.raises(UserError, match=f"^error: {re.escape(message)}"):
        parse(*arguments)


def test_help_is_made_from_the_declarations() -> None:
    """Every flag, pass and option stands in it with its help; every pass of MLIR in the list."""
    text = flags.parser().format_help()
    listed = flags.list_passes()
    for flag in flags.parser().long_flags:
        assert flag in text
    for name in PASSES:
        assert re.search(rf"^  {name} +\w", text, re.MULTILINE)
        assert re.search(rf"^{name} +\w", listed, re.MULTILINE)
    for name in NATIVE_PASSES:
        assert f"  {name}\n" in listed
    assert re.search(r"^    cores  +how many cores .*; an integer or none$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "terminal", "expected"),
    [
        (["x"], True, True),
        (["x", "--target=v5p", "--kernel=k"], True, True),
        (["x"], False, False),
        (["x", "--summary"], False, True),
        (["x", "-p", "cse"], True, False),
        (["x", "-p", ""], True, False),
        (["x", "-o", "y"], True, False),
        (["x", "--unpacked"], True, False),
        (["x", "--emit=bytecode"], True, False),
        (["x", "--mlir-print-debuginfo"], True, False),
        (["x", "--compile=v5p"], True, False),
        (["x", "--verify-diagnostics"], True, False),
    ],
)
def test_default_task(arguments: list[str], terminal: bool, expected: bool) -> None:
    """A file and nothing to do with it is summed up on a terminal, and printed elsewhere."""
    assert with_default_task(parse(*arguments), terminal).summary is expected


def test_form(tmp_path: pytest.TempPathFactory) -> None:
    """Where programs go is told from the name and from what is there."""
    assert Form().to_stdout
    assert not Form().to_file
    assert Form(str(tmp_path)).to_file is False
    assert Form(f"{tmp_path}/x").to_file
