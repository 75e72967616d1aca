"""tools/check_filecheck.py: each rule with what it must find and what it must leave alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import check_filecheck

RUN = "// RUN: %mosaic-opt %s | FileCheck %s\n// CHECK: live\n"
TWO = "// RUN: FileCheck %s --check-prefixes=CHECK,CPU\n// CHECK: live\n// CPU: live\n"
VERIFY = "// RUN: %mosaic-opt %s --verify-diagnostics\n"


def messages(text: str) -> list[str]:
    """What the linter says about a test of this text, without the places."""
    return [finding.message for finding in check_filecheck.check_text(Path("t.mlir"), text)]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("// CHECK-NEXT foo", "CHECK-NEXT has no colon"),
        ("// CHECK-COUNT-2 foo", "CHECK-COUNT-2 has no colon"),
        ("// CHECK foo", "CHECK has no colon"),
        ("// CHECK : foo", "CHECK has no colon"),
        ("# CHECK-NEXT foo", "CHECK-NEXT has no colon"),
        ("  //CHECK-NEXT foo", "CHECK-NEXT has no colon"),
        ("// RUN mosaic-opt", "RUN has no colon"),
        ("// REQUIRES libtpu", "REQUIRES has no colon"),
        ("// CHEKC: foo", "did you mean CHECK?"),
        ("// CHECKS: foo", "did you mean CHECK?"),
        ("// check: foo", "did you mean CHECK?"),
        ("// CHEKC-NEXT: foo", "did you mean CHECK-NEXT?"),
        ("// CHECK_NEXT: foo", "did you mean CHECK-NEXT?"),
        ("// CHECKNEXT: foo", "did you mean CHECK-NEXT?"),
        ("// REQIRES: libtpu", "did you mean REQUIRES?"),
        ("// CHECK-next: foo", "CHECK-next is no directive"),
        ("// CHECK-NXT: foo", "CHECK-NXT is no directive"),
        ("// CHECK-NEXT-SAME: foo", "CHECK-NEXT-SAME is no directive"),
        ("// CHECK-COUNT: foo", "CHECK-COUNT is no directive"),
        ("// CPU: foo", "makes FileCheck read CPU"),
        ("// CPU-NEXT: foo", "makes FileCheck read CPU-NEXT"),
        ("foo.op // CHECK-NEXT foo", "CHECK-NEXT has no colon"),
        ("// expected-error {{foo}}", "--verify-diagnostics"),
    ],
)
def test_dead_directive_is_found(line: str, words: str) -> None:
    """A line that FileCheck would pass over in silence is one finding that names it."""
    (message,) = messages(f"{RUN}{line}\n")
    assert words in message


@pytest.mark.parametrize(
    "line",
    [
        "// CHECK-NEXT: foo",
        "// CHECK-COUNT-12: foo",
        "// CHECK{LITERAL}: [[foo]]",
        "// CHECK-DAG{LITERAL}: [[foo]]",
        "//CHECK-EMPTY:",
        "# CHECK-SAME: foo",
        "// COM: CHECK-NEXT foo",
        "// TODO: foo",
        "// XFAIL: *",
        "// The bound is checked here: it is static",
        "// a check that fails",
        "#map = affine_map<(d0) -> (d0)>",
        '%0 = "CHECKS: no comment"',
        "// note: the operand goes away",
    ],
)
def test_live_directive_and_prose_are_left_alone(line: str) -> None:
    """Live directives, lit's keywords and prose are no findings."""
    assert messages(f"{RUN}{line}\n") == []


def test_second_prefix_makes_its_directives_live() -> None:
    """Every prefix of --check-prefixes is live with every suffix, and misspellings are measured against each."""
    assert messages(f"{TWO}// CPU-NEXT: foo\n") == []
    assert messages(f"{TWO}// CPU-NEXT foo\n") == ["CPU-NEXT has no colon right behind it"]


def test_prefix_that_starts_another_is_not_confused() -> None:
    """A prefix may extend another with a dash."""
    assert messages("// RUN: FileCheck %s --check-prefix CHECK-CPU\n// CHECK-CPU-NEXT: foo\n") == []


@pytest.mark.parametrize(
    "text",
    [
        "// RUN: FileCheck %s --check-prefix=CPU\n// CPU it is\n",
        "// RUN: FileCheck %s -check-prefixes=CHECK,CPU\n// CHECK: foo\n",
        "// RUN: %mosaic-opt %s \\\n// RUN:   | FileCheck %s --check-prefix=CPU\n",
        "// RUN: FileCheck %s --check-prefix=CPU\n// MYCPU-CPU: foo\n",
    ],
)
def test_prefix_without_directive_is_found(text: str) -> None:
    """A prefix that a RUN line names and no line uses is a finding, across continued RUN lines too."""
    assert "FileCheck is told to read CPU, but the file has no CPU directive" in messages(text)


def test_filecheck_without_any_directive_is_found() -> None:
    """A file that runs FileCheck and checks nothing is a finding at its RUN line."""
    (finding,) = check_filecheck.check_text(Path("t.mlir"), "module {}\n// RUN: cat %s | FileCheck %s\n")
    assert str(finding) == "t.mlir:2: error: FileCheck is told to read CHECK, but the file has no CHECK directive"


def test_prefix_in_a_defined_substitution_is_read() -> None:
    """lit's DEFINE lines are commands in waiting."""
    assert messages("// DEFINE: %{check} = FileCheck %s --check-prefix=CPU\n// RUN: a | %{check}\n// CPU: foo\n") == []


def test_directives_without_filecheck_are_found() -> None:
    """Directives in a file that never runs FileCheck are dead, all of them."""
    assert len(messages("// RUN: %mosaic-opt %s\n// CHECK: foo\n// CHECK-NEXT: bar\n")) == 2


def test_prefix_of_one_call_is_not_read_by_another() -> None:
    """Prefixes are read per FileCheck, not per RUN line."""
    text = "// RUN: a | FileCheck %s --check-prefix=A && b | FileCheck %s\n// A: foo\n// CHECK: bar\n"
    assert messages(text) == []


@pytest.mark.parametrize(
    "line",
    [
        "// expected-eror {{foo}}",
        "// expeted-error@+1 {{foo}}",
        "// expected-error: foo",
        "// expected_error {{foo}}",
        "// expected-error@1 {{foo}}",
        "// expected-warn {{foo}}",
        "// Expected-error {{foo}}",
        "// expected-errors 2 {{foo}}",
        "// expected error {{foo}}",
        "foo.op // expected-eror {{foo}}",
    ],
)
def test_misspelt_expectation_is_found(line: str) -> None:
    """What --verify-diagnostics would not recognise is a finding."""
    (message,) = messages(f"{VERIFY}{line}\n")
    assert message.startswith("not an expected diagnostic")


@pytest.mark.parametrize(
    "line",
    [
        "// expected-error {{foo}}",
        "// expected-warning@+1 {{foo {{[0-9]+}} bar}}",
        "// expected-note-re@-12 {{foo}}",
        "// expected-remark@above {{foo}}",
        "// expected-error @below {{foo}}",
        "// expected-error@below 0+ {{foo}}",
        "// expected-note 2 {{foo}}",
        '// expected-error@"a.py":3 {{foo}}',
        "// expected-error@unknown {{foo}}",
        "// expected to fail: the bound is dynamic",
        "// the expected-error form",
    ],
)
def test_live_expectation_is_left_alone(line: str) -> None:
    """Every form --verify-diagnostics reads, and prose, are no findings."""
    assert messages(f"{VERIFY}{line}\n") == []


def test_command_line_reports_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Folders are searched for tests, findings printed with their places, and the exit code is 1 only with findings."""
    (tmp_path / "good.mlir").write_text(RUN)
    assert check_filecheck.main([str(tmp_path)]) == 0
    (tmp_path / "Inputs").mkdir()
    (tmp_path / "Inputs" / "data.mlir").write_text("// CHECK: foo\n")
    (tmp_path / "bad.py").write_text("# RUN: FileCheck %s\n# CHECK: foo\n# CHECK-NEXT foo\n")
    assert check_filecheck.main([str(tmp_path)]) == 1
    assert capsys.readouterr().out == f"{tmp_path / 'bad.py'}:3: error: CHECK-NEXT has no colon right behind it\n"
