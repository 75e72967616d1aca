"""What is printed around passes, and the table of times."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import pytest
from jaxlib.mlir import ir

from mosaic_grid.context import create_context
from mosaic_grid.errors import UserError
from mosaic_grid.instrumentation import IRPrinter, PrintOptions, Timing, format_timing

TEXT = "module {\n}"


@pytest.fixture
def program() -> Iterator[ir.Operation]:
    """An empty module with a location, its context current."""
    with create_context():
        yield ir.Operation.parse(f'{TEXT} loc("k.py":3:1)').operation


def mark(program: ir.Operation) -> None:
    """A change of an attribute."""
    program.attributes["seen"] = ir.UnitAttr.get()


def move(program: ir.Operation) -> None:
    """A change of a location only."""
    program.operation.location = ir.Location.file("k.py", 4, 1)


def nothing(program: ir.Operation) -> None:
    """No change."""


def printed(program: ir.Operation, change: Callable[[ir.Operation], None], options: PrintOptions) -> list[str]:
    """The headers of what is printed around a pass `a` that makes the change, and around a pipeline `any(b,c)`."""
    stream = io.StringIO()
    printer = IRPrinter(options, stream)
    for name, passes, work in (("a", ("a",), change), ("any(b,c)", ("b", "c"), nothing)):
        printer.before(name, passes, program)
        work(program)
        printer.after(name, passes, program)
    frame = "// -----// IR Dump ", " //----- //"
    lines = stream.getvalue().splitlines()
    return [line.removeprefix(frame[0]).removesuffix(frame[1]) for line in lines if line.startswith(frame[0])]


def test_nothing_is_printed_unless_asked(program: ir.Operation) -> None:
    """Without options there is no output, and none is wanted."""
    assert printed(program, mark, PrintOptions()) == []
    assert not PrintOptions(debug_info=True).wanted


@pytest.mark.parametrize(
    ("options", "headers"),
    [
        (PrintOptions(before_all=True), ["Before a", "Before any(b,c)"]),
        (PrintOptions(after_all=True), ["After a", "After any(b,c)"]),
        (PrintOptions(before=("a",), after=("c",)), ["Before a", "After any(b,c)"]),
        (PrintOptions(before=("d",)), []),
        (PrintOptions(before_all=True, after=("b",)), ["Before a", "Before any(b,c)", "After any(b,c)"]),
    ],
)
def test_chosen_passes(program: ir.Operation, options: PrintOptions, headers: list[str]) -> None:
    """Each option prints around the passes that it names, those inside an anchor included."""
    assert printed(program, nothing, options) == headers
    assert options.wanted


@pytest.mark.parametrize("change", [mark, move])
def test_after_change(program: ir.Operation, change: Callable[[ir.Operation], None]) -> None:
    """Only a pass that changed something is printed after, be it only a location."""
    assert printed(program, change, PrintOptions(after_change=True)) == ["After a"]
    assert printed(program, nothing, PrintOptions(after_change=True)) == []


def test_after_change_restricts_the_named_passes(program: ir.Operation) -> None:
    """Together with names, only those passes are looked at; a dump before is not affected."""
    assert printed(program, move, PrintOptions(after_change=True, after=("b",))) == []
    assert printed(program, mark, PrintOptions(after_change=True, after=("a",), before=("b",))) == [
        "After a",
        "Before any(b,c)",
    ]


@pytest.mark.parametrize("verified", [True, False])
def test_text_of_a_dump(program: ir.Operation, verified: bool) -> None:
    """A dump is a header, the IR and an empty line, with locations where asked."""
    for debug_info, text in ((False, TEXT), (True, 'module {\n} loc(#loc)\n#loc = loc("k.py":3:1)')):
        stream = io.StringIO()
        options = PrintOptions(before_all=True, debug_info=debug_info, verified=verified)
        IRPrinter(options, stream).before("a", ("a",), program)
        assert stream.getvalue() == f"// -----// IR Dump Before a //----- //\n{text}\n\n"


def test_unknown_pass_in_an_option() -> None:
    """A misspelt pass is an error rather than a dump that never comes."""
    PrintOptions(before=("cse",), after=("resolve-grid",)).check(("cse", "resolve-grid"))
    with pytest.raises(UserError) as caught:
        PrintOptions(after=("resolv-grid",)).check(("cse", "resolve-grid"))
    assert str(caught.value) == (
        "error: --mlir-print-ir-after names the unknown pass 'resolv-grid'; did you mean 'resolve-grid'?\n"
        "note: --list-passes lists every pass"
    )
    with pytest.raises(UserError, match=r"--mlir-print-ir-before names the unknown pass 'zzz'\nnote"):
        PrintOptions(before=("zzz",)).check(("cse",))


def test_timing_table() -> None:
    """The table has a row for each step in order, what is left, and the total, as shares of the total."""
    assert (
        format_timing([("b", 0.5), ("a", 1.25)], 2.0)
        == """\
===-------------------------------------------------------------------------===
                         ... Execution time report ...
===-------------------------------------------------------------------------===
  Total Execution Time: 2.0000 seconds

  ----Wall Time----  ----Name----
    0.5000 ( 25.0%)  b
    1.2500 ( 62.5%)  a
    0.2500 ( 12.5%)  Rest
    2.0000 (100.0%)  Total
"""
    )
    assert "0.0000 (  0.0%)  Total" in format_timing([], 0.0)


def test_timing_measures_steps(program: ir.Operation, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step lasts from its before to its after; what happens in between steps is the rest."""
    ticks = iter([0.0, 1.0, 3.0, 4.0, 7.0, 10.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(ticks))
    timing = Timing()
    for name in ("a", "b"):
        timing.before(name, (name,), program)
        timing.after(name, (name,), program)
    assert timing.report() == format_timing([("a", 2.0), ("b", 3.0)], 10.0)
