"""`--verify-diagnostics`: what the comments accept, and what is said about everything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.errors import Place
from mosaic_grid.expected import check
from mosaic_grid.split_input import split_input

NAME = "in.mlir"
USAGE = 'write name {{text}}, with @+N, @-N, @above, @below, @unknown or @"file":N before the braces if need be'


def at(line: int, file: str = NAME) -> Place:
    """A place in the source, or in another file."""
    return Place(file, line, 5)


def error(message: str, line: int = 1, name: str = "") -> Diagnostic:
    """An error on a line of the source."""
    return Diagnostic(Severity.ERROR, message, at(line), name)


def warning(message: str, line: int = 1, *notes: Diagnostic) -> Diagnostic:
    """A warning on a line of the source, named."""
    return Diagnostic(Severity.WARNING, message, at(line), "idle-cores", notes)


def verify(source: str, *diagnostics: Diagnostic) -> list[str]:
    """The mismatches as they are printed."""
    return [line for each in check(source, NAME, diagnostics) for line in each.lines()]


@pytest.mark.parametrize(
    ("source", "diagnostic"),
    [
        ("x // expected-error {{bad bound}}", error("a bad bound")),
        ("x // expected-error{{bad bound}}", error("bad bound")),
        ("// expected-error@+2 {{bad}}\n\nx", error("bad", 3)),
        ("x\n\n// expected-error @-2 {{bad}}", error("bad", 1)),
        ("// expected-error@below {{bad}}\n// expected-error@below 0+ {{other}}\nx", error("bad", 3)),
        ("x\n// expected-error@above {{bad}}", error("bad", 1)),
        ("y\nx\n// expected-error@above {{bad}}\n// expected-error@above 0+ {{other}}", error("bad", 2)),
        ("// expected-error@unknown {{bad}}", Diagnostic(Severity.ERROR, "bad")),
        ("// expected-error@unknown {{bad}}", Diagnostic(Severity.ERROR, "bad", Place(NAME))),
        ("// expected-warning {{1 of 2 cores [idle-cores]}}", warning("runs on 1 of 2 cores")),
        ("// expected-remark {{seen}}", Diagnostic(Severity.REMARK, "seen", at(1))),
        ('// expected-error@"kernel.py":31 {{bad}}', Diagnostic(Severity.ERROR, "bad", at(31, "kernel.py"))),
        ('// expected-error@"kernel.py":31 {{bad}}', Diagnostic(Severity.ERROR, "bad", at(31, "/some/dir/kernel.py"))),
        ("// expected-error {{{a = {b}} is bad}}", error("{a = {b}} is bad")),
        ("// expected-error {{bound {{[0-9]+}} of {{2|3}}.}}", error("bound 17 of 3.")),
        ("// expected-error-re {{bound {{[0-9]+$}}}}", error("bound 17")),
        ("// expected-error {{a.c}}", error("a.c")),
        ("(expected-error {{bad}}) as it should", error("bad")),
    ],
)
def test_accepted(source: str, diagnostic: Diagnostic) -> None:
    """Each form of comment accepts the diagnostic that it is about, and asks for it."""
    assert verify(source, diagnostic) == []
    assert len(verify(source)) == 1


@pytest.mark.parametrize(
    ("source", "diagnostic"),
    [
        ("\n// expected-error {{bad}}", error("bad", 1)),  # another line
        ("// expected-warning {{bad}}", error("bad")),  # another severity
        ("// expected-error {{a.c}}", error("abc")),  # a point is a point
        ("// expected-error {{bound {{[0-9]+}}.}}", error("bound x.")),
        ("// expected-error@unknown {{bad}}", error("bad")),
        ("// expected-error {{bad}}", Diagnostic(Severity.ERROR, "bad")),
        ('// expected-error@"nel.py":31 {{bad}}', Diagnostic(Severity.ERROR, "bad", at(31, "kernel.py"))),
        ('// expected-error@"kernel.py":30 {{bad}}', Diagnostic(Severity.ERROR, "bad", at(31, "kernel.py"))),
        ("// expected-error {{bad}}", Diagnostic(Severity.ERROR, "bad", at(1, "other.mlir"))),
    ],
)
def test_not_accepted(source: str, diagnostic: Diagnostic) -> None:
    """A diagnostic that differs in one respect is unexpected, and the expected one is missing."""
    unexpected, missing = check(source, NAME, [diagnostic])
    assert unexpected.message == f"unexpected error: {diagnostic.message}"
    assert unexpected.place == diagnostic.place
    assert missing.message.endswith("was not produced")


def test_messages_of_mismatches() -> None:
    """An unexpected diagnostic is reported at its place with its name, a missing one at its comment."""
    assert verify("  // expected-error {{no {{.}} bound}}", warning("one core only")) == [
        "in.mlir:1:5: error: unexpected warning: one core only [idle-cores]",
        'in.mlir:1:6: error: expected error "no {{.}} bound" was not produced',
    ]


def test_notes_are_expected_each() -> None:
    """Notes are diagnostics of their own; one without a place is where its diagnostic is."""
    noted = warning("one core", 1, note("the bound", at(9, "k.py")), note("partition-cores shares it"))
    source = '// expected-warning {{one core}} expected-note {{shares it}} expected-note@"k.py":9 {{bound}}'
    assert verify(source, noted) == []
    assert verify("// expected-warning {{one core}}", noted) == [
        "k.py:9:5: error: unexpected note: the bound",
        "in.mlir:1:5: error: unexpected note: partition-cores shares it",
    ]


def test_counts() -> None:
    """A comment stands for one diagnostic, for N, or for N and more."""
    assert verify("// expected-error {{bad}}", error("bad"), error("bad")) == [
        "in.mlir:1:5: error: unexpected error: bad"
    ]
    assert verify("// expected-error 2 {{bad}}", error("bad"), error("bad")) == []
    assert verify("// expected-error 3 {{bad}}", error("bad"), error("bad")) == [
        'in.mlir:1:4: error: expected error "bad" was produced 2 of 3 times'
    ]
    assert verify("// expected-error 1+ {{bad}}", *[error("bad")] * 3) == []
    assert verify("// expected-error 0+ {{bad}}") == []


@given(st.permutations([error("bound"), error("bound is 5"), error("bound is 6"), error("5")]))
def test_general_comments_leave_diagnostics_to_special_ones(order: list[Diagnostic]) -> None:
    """Whenever some assignment of diagnostics to comments is complete it is found, in whatever order they come."""
    source = (
        "// expected-error {{bound}} expected-error {{5}} expected-error {{bound is}} expected-error {{bound is 5}}"
    )
    assert verify(source, *order) == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("// expected-eror {{bad}}", "1:4: error: unknown comment 'expected-eror'; did you mean 'expected-error'?"),
        (
            "// expect-warning@+1 {{x}}",
            "1:4: error: unknown comment 'expect-warning'; did you mean 'expected-warning'?",
        ),
        ("// expected_note {{x}}", "1:4: error: unknown comment 'expected_note'; did you mean 'expected-note'?"),
        ("// exspected-error {{x}}", "1:4: error: unknown comment 'exspected-error'; did you mean 'expected-error'?"),
        ("// unexpected-error {{x}}", "1:4: error: unknown comment 'unexpected-error'; did you mean 'expected-error'?"),
        ("// expected-error bad", f"1:4: error: malformed 'expected-error': {USAGE}"),
        ("// expected-error {bad}", f"1:4: error: malformed 'expected-error': {USAGE}"),
        ("// expected-error@abvoe {{bad}}", f"1:4: error: malformed 'expected-error': {USAGE}"),
        ("// expected-error@1 {{bad}}", f"1:4: error: malformed 'expected-error': {USAGE}"),
        ("// expected-error @+1 {{bad}", "1:4: error: 'expected-error @+1' has no closing '}}'"),
        ("// expected-error@above {{bad}}", "1:4: error: 'expected-error@above' has no line above it"),
        ("// expected-error@below {{bad}}", "1:4: error: 'expected-error@below' has no line below it"),
        (
            "// expected-error {{a {{b}}",
            "1:4: error: 'expected-error' opens a regular expression with '{{' and does not close it",
        ),
        (
            "// expected-note {{a {{[b}} c}}",
            "1:4: error: 'expected-note' has a bad regular expression '[b': unterminated character set at position 0",
        ),
    ],
)
def test_bad_comments(source: str, message: str) -> None:
    """A comment that cannot be read is an error at its place instead of a check that checks nothing."""
    assert verify(source) == [f"in.mlir:{message}"]


@pytest.mark.parametrize(
    "source",
    ["// an unexpected error: none", "// expected errors are none", "// RUN: x --verify-diagnostics=only-expected"],
)
def test_prose_is_no_comment(source: str) -> None:
    """Words that are merely alike are left alone."""
    assert verify(source) == []


def test_chunks() -> None:
    """In a split input each chunk is checked by itself, with the line numbers of the whole."""
    first, second = split_input("x // expected-error {{a}}\n// -----\n// expected-error@below {{b}}\ny\n")
    assert verify(first, error("a", 1)) == []
    assert verify(second, error("b", 4)) == []
    assert verify(second) == ['in.mlir:3:4: error: expected error "b" was not produced']
