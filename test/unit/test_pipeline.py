"""Pipelines: from text and back, every message, and what a run does when a pass succeeds, refuses or breaks."""

from __future__ import annotations

import dataclasses
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager

from mosaic_grid import native_passes
from mosaic_grid.context import create_context
from mosaic_grid.diagnostics import Diagnostic, Severity
from mosaic_grid.errors import Place, UserError
from mosaic_grid.instrumentation import IRPrinter, PrintOptions, Timing
from mosaic_grid.native_passes import NATIVE_PASSES, NativePassError
from mosaic_grid.passbase import Kind, Pass, option
from mosaic_grid.pipeline import NativePass, Pipeline, parse_pipeline, run_pipeline
from mosaic_grid.reproducer import InternalError, read_reproducer
from mosaic_grid.session import Session
from mosaic_grid.targets import parse_target

TEXT = """\
module {
  func.func @f(%arg0: i32) -> i32 {
    %0 = arith.addi %arg0, %arg0 : i32
    %1 = arith.addi %arg0, %arg0 : i32
    %2 = arith.muli %0, %1 : i32
    return %2 : i32
  }
  module @kernel {
    func.func @k(%arg0: i32) -> i32 {
      %0 = arith.addi %arg0, %arg0 : i32
      %1 = arith.addi %arg0, %arg0 : i32
      %2 = arith.muli %0, %1 : i32
      return %2 : i32
    }
  }
}
"""


@dataclasses.dataclass(frozen=True)
class Mark(Pass):
    """Marks the program, and then does what its options say."""

    name: ClassVar[str] = "mark"
    kind: ClassVar[Kind] = "rewrite"

    label: str = option("seen", "the name of the attribute to set")
    fail: str = option("", "how to fail")
    cores: int = option(2, "a number")

    def run(self, program: ir.Operation, session: Session) -> None:
        """Sets the attribute, and fails as asked."""
        program.attributes[f"mosaic.{self.label}"] = ir.UnitAttr.get()
        match self.fail:
            case "user":
                raise UserError("bad bound", Place("k.py", 3))
            case "crash":
                raise KeyError("no such\nthing")
            case "mlir":
                ir.Operation.parse("not mlir")
            case "invalid":
                function = program.regions[0].blocks[0].operations[0]
                function.attributes["function_type"] = ir.TypeAttr.parse("(i32) -> i64")
            case "error" | "warning":
                session.emit(Diagnostic(Severity(self.fail), "idle", None, "idle-cores"))


@dataclasses.dataclass(frozen=True)
class Look(Mark):
    """A check that fails as asked."""

    name: ClassVar[str] = "look"
    kind: ClassVar[Kind] = "check"

    def run(self, program: ir.Operation, session: Session) -> None:
        """Changes nothing."""
        if self.fail:
            raise KeyError(self.fail)


OURS: dict[str, type[Pass]] = {"mark": Mark, "look": Look}


@pytest.fixture(autouse=True)
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ir.Context]:
    """The context of the tool, current; what is written to the current directory is not left behind."""
    monkeypatch.chdir(tmp_path)
    with create_context() as current:
        yield current


@pytest.fixture
def program(context: ir.Context) -> ir.Operation:
    """Two functions with a common subexpression each, one of them in a nested module."""
    return ir.Operation.parse(TEXT, source_name="in.mlir").operation


def parse(text: str) -> Pipeline:
    """The pipeline with our sample passes."""
    return parse_pipeline(text, OURS)


def additions(program: ir.Operation) -> list[int]:
    """How many additions the outer function and the kernel hold."""
    return [body.count("arith.addi") for body in str(program).split("module @kernel")]


# ---- text


@pytest.mark.parametrize("name", NATIVE_PASSES)
def test_table_of_native_passes(name: str) -> None:
    """Every pass in the table is registered in the installed jaxlib and can stand in a pipeline."""
    assert parse(name) == Pipeline((NativePass(name, (name,)),))


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("", ()),
        ("builtin.module()", ()),
        ("mark,cse", (Mark(), NativePass("cse", ("cse",)))),
        (" mark { cores=3  label='a,b' } ,\n cse ", (Mark("a,b", cores=3), NativePass("cse", ("cse",)))),
        ("builtin.module(mark{cores=3},look)", (Mark(cores=3), Look())),
        ("func.func(canonicalize,cse)", (NativePass("func.func(canonicalize,cse)", ("canonicalize", "cse")),)),
        ("any( cse )", (NativePass("any(cse)", ("cse",)),)),
        ("builtin.module(builtin.module(cse))", (NativePass("builtin.module(cse)", ("cse",)),)),
        ("mark,builtin.module(cse)", (Mark(), NativePass("builtin.module(cse)", ("cse",)))),
        (
            "mosaic-serde{serialize=true target-version=15}",
            (NativePass("mosaic-serde{serialize=true target-version=15}", ("mosaic-serde",)),),
        ),
        ("cse{},mark{}", (NativePass("cse", ("cse",)), Mark())),
        (
            "composite-fixed-point-pass{name=x pipeline=any(cse,inline{max-iterations=2})}",
            (
                NativePass(
                    "composite-fixed-point-pass{name=x pipeline=any(cse,inline{max-iterations=2})}",
                    ("composite-fixed-point-pass",),
                ),
            ),
        ),
    ],
)
def test_forms(text: str, steps: tuple[Pass | NativePass, ...]) -> None:
    """Short and long form, options, anchors and white space are read; the text of the result gives it again."""
    pipeline = parse(text)
    assert pipeline == Pipeline(steps)
    assert parse(str(pipeline)) == pipeline


natives = st.sampled_from(["cse", "canonicalize{max-iterations=3}", "func.func(cse,any(sccp))", "builtin.module(cse)"])


@given(st.lists(natives | st.builds(Mark, label=st.text(), cores=st.integers()) | st.just(Look())))
def test_round_trip(steps: list[Pass | str]) -> None:
    """Any sequence of passes, ours with any options, is printed and parsed to the same."""
    with create_context():
        pipeline = Pipeline(tuple(parse(f"mark,{step}").steps[1] if isinstance(step, str) else step for step in steps))
        assert parse(str(pipeline)) == pipeline


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("cse,mrak", 5, "unknown pass 'mrak'; did you mean 'mark'?"),
        ("canonicalise", 1, "unknown pass 'canonicalise'; did you mean 'canonicalize'?"),
        ("func.func(zzz)", 11, "unknown pass 'zzz'"),
        ("cse,,mark", 5, "expected the name of a pass, got ','"),
        ("cse,", 5, "expected the name of a pass"),
        (",cse", 1, "expected the name of a pass, got ','"),
        ("cse mark", 5, "expected ',' between two passes, got 'm'"),
        ("func.func(cse mark)", 15, "expected ',' between two passes, got 'm'"),
        ("cse)", 4, "this ')' closes nothing"),
        ("cse,func.func(cse", 14, "this '(' has no closing ')'"),
        ("mark{cores=2", 5, "this '{' has no closing '}'"),
        ("mark{label='}'", 5, "this '{' has no closing '}'"),
        ("cse, mark{fail=x coers=2}", 18, "pass 'mark' has no option 'coers'; did you mean 'cores'?"),
        ("mark{  cores=two}", 8, "option 'cores' of pass 'mark' expects an integer, got 'two'"),
        ("mark(cse)", 1, "'mark' is a pass: its options stand in braces"),
        ("cse(mark)", 5, "pass 'mark' works on a whole program: it cannot stand inside 'cse(...)'"),
        ("cse(sccp)", 1, "'cse' is a pass: its options stand in braces"),
        ("func.func(mark)", 11, "pass 'mark' works on a whole program: it cannot stand inside 'func.func(...)'"),
        ("func.fun(cse)", 1, "unknown operation 'func.fun'; did you mean 'func.func'?"),
        ("module(cse)", 1, "unknown operation 'module'; did you mean 'builtin.module'?"),
        (
            "cse,mosaic-serde{seralize=true}",
            18,
            "native pass 'mosaic-serde' has no option 'seralize'; did you mean 'serialize'?",
        ),
        (
            "mosaic-serde{serialize=maybe}",
            14,
            "native pass 'mosaic-serde' does not accept the options 'serialize=maybe'",
        ),
        ("cse{x=1}", 5, "native pass 'cse' has no option 'x'"),
        ("any(" * 65 + "cse" + ")" * 65, 260, "more than 64 pipelines inside each other"),
    ],
)
def test_messages(text: str, column: int, message: str) -> None:
    """Every mistake in a pipeline is one exact message at its column."""
    with pytest.raises(UserError) as caught:
        parse(text)
    assert (caught.value.message, caught.value.place) == (message, Place("pipeline", 1, column))


def test_places_count_lines() -> None:
    """A pipeline of several lines is pointed into by line and column."""
    with pytest.raises(UserError, match=r"^pipeline:2:3: error: unknown pass 'mrak'"):
        parse("cse,\n  mrak")


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        ("zzz", ("--list-passes lists every pass",)),
        ("func.func(mark)", ("take it out of the parentheses",)),
        ("module(cse)", ("name(passes) runs the passes on every operation of that name",)),
        ("mem2reg{x=1}", ("with its defaults it reads mem2reg{region-simplify=true}",)),
        ("cse{x=1}", ("it has no options",)),
    ],
)
def test_messages_say_what_to_do(text: str, notes: tuple[str, ...]) -> None:
    """What is not said by the message itself is in a note."""
    with pytest.raises(UserError) as caught:
        parse(text)
    assert caught.value.notes == notes


@given(st.text(alphabet="cse mark,(){}='\"builtin.module\n", max_size=30))
def test_any_text_gives_a_pipeline_or_a_user_error(text: str) -> None:
    """No text makes the parser fail in another way."""
    with create_context():
        try:
            result: object = parse(text)
        except UserError as error:
            result = error.place
    assert result


# ---- running


def test_ours_and_native_passes_run_in_order(program: ir.Operation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes run in order; native neighbours share a pass manager."""
    managers: list[str] = []
    real = PassManager.parse

    class Recorder:
        @staticmethod
        def parse(text: str) -> PassManager:
            managers.append(text)
            return real(text)

    pipeline = parse("func.func(cse),canonicalize,mark,symbol-dce")
    monkeypatch.setattr(native_passes, "PassManager", Recorder)
    run_pipeline(pipeline, program, Session())
    assert managers == ["builtin.module(func.func(cse),canonicalize)", "builtin.module(symbol-dce)"]
    assert "mosaic.seen" in program.attributes


@pytest.mark.parametrize(
    ("text", "left"), [("cse", [1, 1]), ("func.func(cse)", [1, 2]), ("mark,builtin.module(cse)", [2, 1]), ("", [2, 2])]
)
def test_what_native_passes_reach(program: ir.Operation, text: str, left: list[int]) -> None:
    """At module level a pass reaches the kernels too, on an anchor only what stands directly in the outer module."""
    run_pipeline(parse(text), program, Session())
    assert additions(program) == left


def test_instruments_nest_around_each_pass(program: ir.Operation) -> None:
    """With instruments every pass is a step of its own, dumps name it, and the time of a dump is not the step's."""
    stream = io.StringIO()
    timing = Timing()
    printer = IRPrinter(PrintOptions(before_all=True, after_change=True), stream)
    run_pipeline(parse("func.func(cse),canonicalize{max-iterations=2},cse,mark"), program, Session(), [printer, timing])
    headers = re.findall("IR Dump (.*) //----- //", stream.getvalue())
    assert headers == [
        "Before func.func(cse)",
        "After func.func(cse)",
        "Before canonicalize",
        "Before cse",
        "After cse",
        "Before mark",
        "After mark",
    ]
    rows = re.findall(r"%\)  (.*)", timing.report())
    assert rows == ["func.func(cse)", "canonicalize", "cse", "mark", "Rest", "Total"]


def test_error_diagnostic_stops_the_pipeline(program: ir.Operation) -> None:
    """After a pass that diagnosed an error nothing else runs; a warning, or an older error, stops nothing."""
    session = Session()
    run_pipeline(parse("mark{fail=warning},mark{label=a fail=error},mark{label=b}"), program, session)
    assert session.failed
    assert ("mosaic.a" in program.attributes, "mosaic.b" in program.attributes) == (True, False)
    run_pipeline(parse("mark{label=b}"), program, session)
    assert "mosaic.b" in program.attributes


def test_user_error_passes_through(program: ir.Operation, tmp_path: Path) -> None:
    """A user error stays what it is and leaves no reproducer."""
    with pytest.raises(UserError, match=r"^k.py:3: error: bad bound$"):
        run_pipeline(parse("mark{fail=user}"), program, Session(), reproducers=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        ("crash", "KeyError: 'no such\\nthing'"),
        ("mlir", "MLIRError: Unable to parse operation assembly:"),
        (
            "invalid",
            "InvalidProgramError: the verifier refuses what the pass has made: in.mlir:6:5: error: type of return "
            "operand 0 ('i32') doesn't match function result type ('i64') in function @f",
        ),
    ],
)
def test_internal_failure_leaves_a_reproducer(program: ir.Operation, tmp_path: Path, how: str, cause: str) -> None:
    """Any other failure names the pass and leaves the program before it, the rest of the pipeline and the flags."""
    pipeline = parse(f"mark{{label=first}},cse,mark{{label=second fail={how}}},look")
    session = Session(parse_target("v5p"), ("k*",))
    with pytest.raises(InternalError) as caught:
        run_pipeline(pipeline, program, session, reproducers=tmp_path)
    (path,) = tmp_path.iterdir()
    assert caught.value.reproducer == path
    first, then = str(caught.value).splitlines()[:2]
    assert first.startswith(f"error: internal failure in the pass 'mark': {cause}")
    assert f"mosaic-opt --run-reproducer {path}" in then

    read = read_reproducer(path.read_text(), str(path))
    assert (read.flags, read.verify) == (("--target=v5p", "--kernel=k*"), True)
    assert parse(read.pipeline) == Pipeline(pipeline.steps[2:])
    again = ir.Operation.parse(read.program).operation
    assert ("mosaic.first" in again.attributes, "mosaic.second" in again.attributes, additions(again)) == (
        True,
        False,
        [1, 1],
    )
    assert 'loc("in.mlir":5:10)' in read.program

    with pytest.raises(InternalError) as repeated:
        run_pipeline(parse(read.pipeline), again, Session(), reproducers=tmp_path)
    assert type(repeated.value.cause) is type(caught.value.cause)


def test_failing_check_leaves_a_reproducer(program: ir.Operation, tmp_path: Path) -> None:
    """A check works on no copy, and has its reproducer all the same."""
    with pytest.raises(InternalError, match="internal failure in the pass 'look': KeyError: 'x'"):
        run_pipeline(parse("look{fail=x}"), program, Session(), reproducers=tmp_path)
    (path,) = tmp_path.iterdir()
    assert str(ir.Operation.parse(path.read_text())) == str(program)


def test_reproducer_that_cannot_be_written(program: ir.Operation, tmp_path: Path) -> None:
    """The failure is reported even when there is no place for the reproducer."""
    missing = tmp_path / "none"
    with pytest.raises(InternalError) as caught:
        run_pipeline(parse("mark{fail=crash}"), program, Session(), reproducers=missing)
    assert str(caught.value).endswith(f"its reproducer could not be written: No such file or directory: {missing}")


def test_verifying_can_be_left_out(program: ir.Operation) -> None:
    """Without verification a broken program goes on to the next pass."""
    run_pipeline(parse("mark{fail=invalid},look"), program, Session(), verify=False)
    with pytest.raises(ir.MLIRError):
        program.verify()


def test_program_that_was_never_valid(program: ir.Operation, tmp_path: Path) -> None:
    """A program that was broken already is not held against the pass that runs on it."""
    run_pipeline(parse("mark{fail=invalid}"), program, Session(), verify=False)
    with pytest.raises(UserError, match=r"^error: the program is not valid before 'mark': in.mlir:6:5: error: type of"):
        run_pipeline(parse("mark"), program, Session(), reproducers=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_native_refusal_is_a_user_error(program: ir.Operation, tmp_path: Path) -> None:
    """A native pass that refuses the program gives MLIR's located diagnostics, without the dump of the operation."""
    with pytest.raises(NativePassError) as caught:
        run_pipeline(parse("func.func(symbol-dce)"), program, Session(), reproducers=tmp_path)
    assert str(caught.value) == (
        "in.mlir:2:3: error: 'func.func' op was scheduled to run under SymbolDCE, but does not define a symbol table\n"
        "note: in the native pass 'func.func(symbol-dce)'"
    )
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.severity, diagnostic.place, diagnostic.notes) == (Severity.ERROR, Place("in.mlir", 2, 3), ())
    assert list(tmp_path.iterdir()) == []


def test_native_verifier_with_a_short_note(program: ir.Operation) -> None:
    """The failing operation stays in the notes where it is short."""
    run_pipeline(parse("mark{fail=invalid}"), program, Session(), verify=False)
    with pytest.raises(NativePassError) as caught:
        run_pipeline(parse("func.func(topological-sort)"), program, Session())
    assert caught.value.notes == (
        "in the native pass 'func.func(topological-sort)'",
        'in.mlir:6:5: note: see current operation: "func.return"(%2) : (i32) -> ()',
    )


def test_native_failure_without_a_word(program: ir.Operation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A native pass that fails and does not say why is an internal failure, with the program before it."""

    class Silent:
        @staticmethod
        def parse(text: str) -> Silent:
            return Silent()

        def enable_verifier(self, enable: bool) -> None:
            """Does nothing."""

        def run(self, program: ir.Operation) -> None:
            del program.regions[0].blocks[0].operations[0].attributes["sym_name"]
            error = ir.MLIRError("failed")
            vars(error)["_error_diagnostics"] = []  # as the bindings set it
            raise error

    pipeline = parse("mark,cse,canonicalize")
    monkeypatch.setattr(native_passes, "PassManager", Silent)
    with pytest.raises(InternalError, match="internal failure in the pass 'cse,canonicalize': MLIRError: failed"):
        run_pipeline(pipeline, program, Session())
    (path,) = tmp_path.iterdir()
    monkeypatch.undo()
    assert parse(read_reproducer(path.read_text(), "r").pipeline) == Pipeline(pipeline.steps[1:])
    assert "func.func @f" in str(ir.Operation.parse(path.read_text()))


def test_native_warnings_go_to_the_session(program: ir.Operation) -> None:
    """A warning of a native pass is collected like one of ours, and stops nothing."""
    session = Session()
    text = "composite-fixed-point-pass{name=once max-iterations=1 pipeline=any(cse)},mark"
    run_pipeline(parse(text), program, session)
    (warning,) = session.diagnostics
    assert list(warning.lines()) == ['in.mlir:1:1: warning: Composite pass "once"+ didn\'t converge in 1 iterations']
    assert "mosaic.seen" in program.attributes
