"""Runs of the tool in this process: several inputs, diagnostics, output, and failures that are nobody's input."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import re
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest
from jaxlib.mlir import ir

from mosaic_grid import driver, opt, passes
from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.errors import Place, UserError
from mosaic_grid.output import Written, file_names
from mosaic_grid.passbase import Kind, Pass, option
from mosaic_grid.session import Session

PROGRAM = "func.func @main() {\n  return\n}\n"
PRINTED = "module {\n  func.func @main() {\n    return\n  }\n}\n"
DOUBLE = Path(__file__).parent.parent / "tool" / "Inputs" / "double.mlir"


@dataclasses.dataclass(frozen=True)
class Say(Pass):
    """Says something at the first line of the program, or fails."""

    name: ClassVar[str] = "say"
    kind: ClassVar[Kind] = "rewrite"

    what: str = option("warning", "a severity, or a way to fail")

    def run(self, program: ir.Operation, session: Session) -> None:
        """Emits a diagnostic with a note, or raises."""
        program.attributes["t.said"] = ir.UnitAttr.get()
        match self.what:
            case "crash":
                raise KeyError("lost")
            case "refuse":
                raise UserError("can't be done", notes=["do it differently"])
            case "invalid":
                function = program.regions[0].blocks[0].operations[0]
                function.attributes["function_type"] = ir.TypeAttr.parse("(i32) -> ()")
            case _:
                place = Place("a.mlir", 1, 1)
                said = Diagnostic(Severity(self.what), "odd grid", place, "idle-cores", (note("it is 7"),))
                session.emit(said)


@dataclasses.dataclass(frozen=True)
class Run:
    """How a run ended, and what it said."""

    status: int
    out: str
    err: str


class Tool:
    """Runs the tool in a directory of its own."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        """The directory is the current one."""
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Run:
        """Runs `mosaic-opt` with these arguments."""
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = opt.main(arguments)
        said = self._capsys.readouterr()
        assert "Traceback" not in said.err
        return Run(status, said.out, said.err)


@pytest.fixture
def tool(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Tool:
    """The tool, in an empty directory but for `a.mlir` and the broken `bad.mlir`, with the pass `say`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(passes.PASSES, "say", Say)
    Path("a.mlir").write_text(PROGRAM)
    Path("bad.mlir").write_text("func.func @bad() -> i32 {\n  return %x : i32\n}\n")
    return Tool(capsys, monkeypatch)


# ---- inputs


def test_bad_inputs_do_not_stop_the_others(tool: Tool) -> None:
    """Every input that can be read is worked on, every one that can't is an error, and the exit code is 2."""
    run = tool("missing", "a.mlir", "bad.mlir", "a.mlir", ".")
    assert run.status == 2
    assert run.out == "// -----\n".join([PRINTED] * 3)
    assert [line.split(" error: ")[0] for line in run.err.splitlines() if " error: " in line] == [
        "missing:",
        "bad.mlir:2:10:",
        "./bad.mlir:2:10:",
    ]


def test_inputs_of_every_kind(tool: Tool) -> None:
    """Bytecode, gzip and standard input are read like text, and named as they were given."""
    tool("a.mlir", "--emit=bytecode", "-o", "a.bin")
    Path("a.gz").write_bytes(gzip.compress(Path("a.bin").read_bytes()))
    for run in (tool("a.bin"), tool("a.gz"), tool(stdin=Path("a.bin").read_bytes()), tool("-", stdin=PROGRAM.encode())):
        assert run == Run(0, PRINTED, "")
    assert tool("-", stdin=b"func.func").err.startswith("<stdin>:1:10: error: ")


def test_odd_file_names(tool: Tool) -> None:
    """A name that is not UTF-8 is opened, and shown with escapes."""
    name = "\udcff.mlir"
    Path(name).write_text("oops {")
    run = tool(name)
    assert run.status == 2
    assert run.err.startswith("\\xff.mlir:1:1: error: this is text, but neither MLIR nor HLO")
    Path(name).write_text(PROGRAM)
    assert "\\xff.mlir" in tool(name, "--mlir-print-debuginfo").out


# ---- diagnostics


@pytest.mark.parametrize(("severity", "status"), [("error", 1), ("warning", 0), ("remark", 0), ("note", 0)])
def test_what_passes_say(tool: Tool, severity: str, status: int) -> None:
    """Diagnostics go to standard error; after an error the exit code is 1 and the program isn't written."""
    run = tool("a.mlir", f"--say=what={severity}")
    assert run.err == f"a.mlir:1:1: {severity}: odd grid [idle-cores]\nnote: it is 7\n"
    assert (run.status, bool(run.out)) == (status, not status)


@pytest.mark.parametrize("severity", ["error", "warning", "remark", "note"])
def test_verify_diagnostics(tool: Tool, severity: str) -> None:
    """What a pass says is expected at its line; then nothing is printed, and all is well."""
    comment = (
        f"// expected-{severity}@below {{{{odd {{{{g..d}}}} [idle-cores]}}}}\n// expected-note@below {{{{it is 7}}}}\n"
    )
    Path("b.mlir").write_text(comment + PROGRAM)
    run = tool("b.mlir", "--verify-diagnostics", f"--say=what={severity}")
    assert run.status == 1  # `say` speaks of a.mlir
    text = comment.replace("@below", '@"a.mlir":1')
    Path("b.mlir").write_text(text + PROGRAM)
    run = tool("b.mlir", "--verify-diagnostics", f"--say=what={severity}")
    assert (run.status, run.err) == (0, "")


def test_verify_diagnostics_counts_what_came_before_a_refusal(tool: Tool) -> None:
    """A warning of an earlier pass is still there when a later one refuses the program."""
    Path("b.mlir").write_text(
        '// expected-warning@"a.mlir":1 {{odd grid}}\n// expected-note@"a.mlir":1 {{it is 7}}\n'
        "// expected-error@unknown {{can't be done}}\n// expected-note@unknown {{do it differently}}\n" + PROGRAM
    )
    run = tool("b.mlir", "--verify-diagnostics", "-p", "say,say{what=refuse}")
    assert (run.status, run.err, run.out) == (0, "", "")


def test_a_refusal_has_the_name_of_its_input(tool: Tool) -> None:
    """An error that doesn't say where it is, is in the input it is about."""
    run = tool("a.mlir", "--say=what=refuse")
    assert run == Run(2, "", "a.mlir: error: can't be done\nnote: do it differently\n")


def test_split_and_verify(tool: Tool) -> None:
    """Each part is checked by itself, and only the parts that pass are printed."""
    Path("b.mlir").write_text(f"// expected-error@+1 {{{{undeclared}}}}\nfunc.return %x : i32\n// -----\n{PROGRAM}")
    run = tool("b.mlir", "--split-input-file", "--verify-diagnostics")
    assert run == Run(0, PRINTED, "")


# ---- kernels


def test_unknown_kernel(tool: Tool) -> None:
    """A pattern that matches in no input is an error with the names there are; in some it is enough."""
    run = tool(str(DOUBLE), "a.mlir", "--kernel=d*", "-p", "resolve-grid")
    assert (run.status, run.err) == (0, "")
    run = tool(str(DOUBLE), "--kernel=d*", "--kernel=dubble", "-p", "resolve-grid")
    assert run.status == 2
    assert run.out == ""
    assert run.err == (
        "error: --kernel=dubble matches no kernel; did you mean 'double'?\nnote: the kernels are double\n"
    )
    assert tool("a.mlir", "--kernel=x").err.endswith("error: --kernel=x matches no kernel\nnote: there is no kernel\n")


# ---- output


def test_output_is_all_or_nothing(tool: Tool) -> None:
    """One file for several programs is left as it was if one of them fails, whatever the reason."""
    Path("out.mlir").write_text("before")
    for arguments in (["bad.mlir"], ["--say=what=error"], ["--say=what=crash"]):
        run = tool("a.mlir", *arguments, "-o", "out.mlir")
        assert run.status
        assert run.err.endswith("note: out.mlir is not written\n")
        assert Path("out.mlir").read_text() == "before"
    assert tool("a.mlir", "-o", "out.mlir") == Run(0, "", "")
    assert Path("out.mlir").read_text() == PRINTED


def test_output_directory(tool: Tool) -> None:
    """A directory gets the programs that are well, each under its input's name, and parts under numbers."""
    Path("out").mkdir()
    assert tool("a.mlir", "bad.mlir", "-", "-o", "out", stdin=PROGRAM.encode()).status == 2
    assert sorted(path.name for path in Path("out").iterdir()) == ["a.mlir", "stdin.mlir"]
    Path("a.mlir").write_text(f"{PROGRAM}// -----\n{PROGRAM}")
    assert tool("a.mlir", "--split-input-file", "-o", "out").status == 0
    assert sorted(path.name for path in Path("out").iterdir()) == ["a.1.mlir", "a.mlir", "stdin.mlir"]


def test_file_names() -> None:
    """The suffix says what is inside, and no program overwrites another."""
    names = ["d/a.mlir", "e/a.txt.gz", "a.1.mlir", "a", "<stdin>", ".hidden"]
    assert file_names([Written(name, "") for name in names]) == [
        "a.mlir",
        "a.1.mlir",
        "a.1.1.mlir",
        "a.2.mlir",
        "stdin.mlir",
        ".hidden.mlir",
    ]
    assert file_names([Written("a.mlir", b"")]) == ["a.mlirbc"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "no/x"], "no/x: error: can't write the output: there is no directory 'no'\nnote: make it first\n"),
        (
            ["a.mlir", "--emit=bytecode", "-o", "x"],
            "error: 2 programs can't be written as one file of bytecode\nnote: give a directory to -o\n",
        ),
    ],
)
def test_output_that_cannot_be(tool: Tool, arguments: list[str], message: str) -> None:
    """An impossible place is bad usage."""
    assert tool("a.mlir", *arguments) == Run(2, "", message)


def test_terminal(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal gets a summary in colours and no bytecode."""
    monkeypatch.setattr("_pytest.capture.CaptureIO.isatty", lambda self: True, raising=False)
    if not sys.stdout.isatty():
        monkeypatch.setattr(type(sys.stdout), "isatty", lambda self: True)
    run = tool(str(DOUBLE))
    assert "double" in run.out
    assert "module" not in run.out
    run = tool("a.mlir", "--emit=bytecode")
    assert run.status == 2
    assert run.err.startswith("error: bytecode is not for a terminal\n")


# ---- internal failures


def reproducer_in(err: str) -> str:
    """The file that an internal failure names."""
    found = re.search(r"--run-reproducer (\S+)'", err)
    assert found, err
    return found[1]


def test_a_pass_that_crashes(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It leaves a reproducer that crashes again until the pass is mended; other inputs go on; the code is 70."""
    run = tool("a.mlir", "bad.mlir", "-p", "cse,say{what=crash},canonicalize", "--target=v5e")
    assert run.status == 70
    assert run.out == ""
    assert "error: internal failure in the pass 'say': KeyError: 'lost'\n" in run.err
    assert "note: raised in run, test_driver.py:" in run.err
    assert "bad.mlir:2:10: error: " in run.err
    file = reproducer_in(run.err)
    again = tool("--run-reproducer", file)
    assert (again.status, again.out) == (70, "")
    assert reproducer_in(again.err) != file

    def mended(self: Say, program: ir.Operation, session: Session) -> None:
        program.attributes["t.target"] = ir.StringAttr.get(str(session.target))

    monkeypatch.setattr(Say, "run", mended)
    fixed = tool("--run-reproducer", file)
    assert fixed == Run(0, PRINTED.replace("module", 'module attributes {t.target = "v5e"}'), "")


def test_a_pass_that_makes_an_invalid_program(tool: Tool) -> None:
    """The verifier's refusal after a pass is the pass's failure; without verification it isn't looked for."""
    run = tool("a.mlir", "--say=what=invalid")
    assert run.status == 70
    assert "InvalidProgramError: the verifier refuses what the pass has made: " in run.err
    assert tool("a.mlir", "--say=what=invalid", "--verify-each=false").status == 0


def test_a_failure_under_verify_diagnostics(tool: Tool) -> None:
    """No comment can expect an internal failure."""
    run = tool("a.mlir", "--say=what=crash", "--verify-diagnostics")
    assert run.status == 70
    assert "internal failure in the pass 'say'" in run.err


@pytest.mark.parametrize(
    ("function", "arguments", "where", "pipeline"),
    [
        ("unpack", ["--resolve-grid"], "unpacking the kernels", "builtin.module(unpack-kernels,resolve-grid)"),
        ("pack", ["--resolve-grid"], "packing the kernels", "builtin.module(pack-kernels)"),
        ("write_text", [], "writing the output", None),
        ("check_registered", [], "reading packed.mlir", None),
    ],
)
def test_failures_outside_of_passes(
    tool: Tool,
    monkeypatch: pytest.MonkeyPatch,
    function: str,
    arguments: list[str],
    where: str,
    pipeline: str | None,
) -> None:
    """They say where, and leave a program that fails in the same way if there is one."""
    assert tool(str(DOUBLE), "-p", "pack-kernels", "-o", "packed.mlir").status == 0

    def crash(*_: Any, **__: Any) -> None:
        raise IndexError("list index out of range")

    with monkeypatch.context() as patch:
        patch.setattr(driver, function, crash)
        run = tool("packed.mlir", *arguments)
    assert run.status == 70
    assert run.err.startswith(
        f"error: internal failure in {where}: IndexError: list index out of range\nnote: this is a bug"
    )
    assert "note: raised in crash, test_driver.py:" in run.err
    if pipeline is None:
        assert "could not be written: there is no program yet, the input itself will do" in run.err
        return
    file = reproducer_in(run.err)
    assert f'pipeline: "{pipeline}"' in Path(file).read_text()
    assert tool("--run-reproducer", file).status == 0


def test_summary_that_fails(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its reproducer asks for the summary again."""
    with monkeypatch.context() as patch:
        patch.setattr(driver.Driver, "_summarise", lambda *_: 1 / 0)
        run = tool(str(DOUBLE), "--summary")
    assert run.status == 70
    assert "error: internal failure in the summary: ZeroDivisionError" in run.err
    again = tool("--run-reproducer", reproducer_in(run.err))
    assert again.status == 0
    assert "kernel 'double'" in again.out


def test_reproducer_that_cannot_be_written(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the failure is told all the same, with the reason."""

    def full(*_: Any) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mosaic_grid.stages.write_reproducer", full)
    monkeypatch.setattr(driver, "pack", lambda _: 1 / 0)
    tool(str(DOUBLE), "-p", "pack-kernels", "-o", "packed.mlir")
    run = tool("packed.mlir", "--resolve-grid")
    assert run.status == 70
    assert "its reproducer could not be written: OSError: [Errno 28] No space left on device" in run.err


def test_locations_survive_in_files(tool: Tool) -> None:
    """A packed program goes through files untouched, unpacked in between or not, with locations in its text or not."""
    assert tool(str(DOUBLE), "-p", "pack-kernels", "-o", "with.mlir").status == 0
    Path("without.mlir").write_text(tool(str(DOUBLE), "-p", "pack-kernels").out)
    assert "loc(" in Path("with.mlir").read_text()
    for name in ("with.mlir", "without.mlir"):
        assert tool(name, "-o", "same.mlir") == Run(0, "", "")
        assert tool(name, "--unpacked", "-o", "unpacked.mlir").status == 0
        assert "kernel.py" in Path("unpacked.mlir").read_text()
        assert tool("unpacked.mlir", "-p", "pack-kernels", "-o", "again.mlir").status == 0
        assert Path("same.mlir").read_bytes() == Path("again.mlir").read_bytes() == Path(name).read_bytes()


def test_damaged_bytecode_names_no_file(tool: Tool) -> None:
    """An error in bytecode is in the input, whatever the damaged part calls itself."""
    tool(str(DOUBLE), "--unpacked", "--emit=bytecode", "-o", "a.bin")
    data = Path("a.bin").read_bytes()
    assert b"#tpu.memory_space<vmem>" in data
    Path("b.bin").write_bytes(data.replace(b"#tpu.memory_space<vmem>", b"#tpu.memory_space<vme\xff>"))
    run = tool("b.bin")
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith("b.bin: error: this MLIR bytecode can't be read: ")


def test_generic_form(tool: Tool) -> None:
    """The generic form is what other tools read without the dialects."""
    assert tool("a.mlir", "--mlir-print-op-generic").out.startswith('"builtin.module"() ({\n  "func.func"()')


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--target=v5p"], ""),
        (["--target=v5e"], ""),
        (["--target=v5e", "cores=2"], "warning: partition-cores shares grids between 2 cores, but v5e has 1\n"),
        (["--compile=v5p", "cores=1"], "warning: partition-cores shares grids between 1 core, but v5p has 2\n"),
        (["--compile=v5e"], ""),
        (
            ["--compile=v5p,v5e"],
            "note: partition-cores shares grids between 2 cores, but v5e has 1: --compile=v5e alone suits it\n",
        ),
    ],
)
def test_chips_with_other_cores(tool: Tool, arguments: list[str], said: str) -> None:
    """A number of cores that a chip doesn't have is spoken of; one chip to compile for is the target."""
    target, *options = arguments
    run = tool("missing", target, f"--partition-cores={' '.join(options)}")
    assert run.err.replace("missing: error: can't read the input: no such file or directory\n", "") == said


def test_partition_that_changes_nothing(tool: Tool) -> None:
    """One remark says so, unless something was changed."""
    remark = "remark: partition-cores changed nothing"
    assert f"{remark}: there is no kernel to work on [nothing-to-share]" in tool("a.mlir", "--partition-cores").err
    run = tool(str(DOUBLE), "--partition-cores=cores=1")
    assert f"{remark}: there is only one core ('double') [nothing-to-share]" in run.err
    assert remark not in tool(str(DOUBLE), "--partition-cores").err


def test_damage_is_the_dumps(tool: Tool) -> None:
    """What is wrong with a dump is said of it, not of the Python that it names."""
    tool(str(DOUBLE), "-p", "pack-kernels", "-o", "packed.mlir")
    text = Path("packed.mlir").read_text()
    Path("bad.mlir").write_text(text.replace("TUzv", "TU#v"))
    run = tool("bad.mlir", "--unpacked")
    assert run.status == 2
    assert run.err.startswith("bad.mlir: error: 'custom_call_config.body' is not base64")
    assert run.err.endswith("note: the op came from step.py:7:11\n")
    Path("cut.mlir").write_text(PROGRAM[:-8])
    assert tool("cut.mlir").err.endswith("note: the input may be truncated: nothing follows\n")
    assert "truncated" not in tool("bad.mlir").err + tool("a.mlir", "oops").err
    Path("wrong.mlir").write_text("func.func @main() {\n  return %x : i32\n}\n")
    assert "truncated" not in tool("wrong.mlir").err


# ---- the real compiler


@pytest.mark.libtpu
def test_compile(tool: Tool) -> None:
    """Every program is compiled, in JSON with its input; of one without a launch among others it is said."""
    run = tool(str(DOUBLE), "a.mlir", "--compile=v5p", "--compile-format=json", "--keep-compiler-dumps=kept")
    assert (run.status, run.err) == (0, "a.mlir: note: there is no launch in it to compile\n")
    (program,) = json.loads(run.out)["programs"]
    assert (program["input"], program["target"], program["compiles"]) == (str(DOUBLE), "v5p", True)
    assert Path("kept", "v5p", "program.mlir").exists()


def test_compile_without_libtpu(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no libtpu it is said how to get it."""
    monkeypatch.setattr("mosaic_grid.libtpu.libtpu_available", lambda: False)
    run = tool(str(DOUBLE), "--compile=v5p")
    assert run.status == 2
    assert "error: libtpu is not installed, so there is no TPU compiler to ask\nnote: install it with:" in run.err
