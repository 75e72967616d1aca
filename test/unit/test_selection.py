"""Which diagnostics are reported, and which are known already."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from mosaic_grid.baseline import Baseline, Recorder, fingerprint
from mosaic_grid.diagnostics import Diagnostic, Severity
from mosaic_grid.errors import Place, UserError
from mosaic_grid.selection import Selection, Suppression
from mosaic_grid.session import Session

IDLE = Diagnostic(Severity.WARNING, "on 1 of 2", Place("a/k.py", 3, 1), "idle-cores", (), "scale", "dimension 0")
EMPTY = Diagnostic(Severity.ERROR, "bound 0", Place("a/k.py", 9), "zero-trip-grid", (), "scale", "dimension 0")
TRUST = Diagnostic(Severity.REMARK, "on trust", None, "parallel-on-trust", (), "scale")


@pytest.mark.parametrize(
    ("selection", "given", "expected"),
    [
        (Selection(), IDLE, "warning"),
        (Selection(werror=True), IDLE, "error"),
        (Selection(werror=True), TRUST, "remark"),
        (Selection(levels=(("idle-cores", "error"),)), IDLE, "error"),
        (Selection(levels=(("parallel-on-trust", "error"),)), TRUST, "error"),
        (Selection(levels=(("zero-trip-grid", "error"),)), IDLE, "warning"),
        (Selection(werror=True, levels=(("idle-cores", "warning"),)), IDLE, "warning"),
        (Selection(levels=(("zero-trip-grid", "warning"),)), EMPTY, "warning"),
        (Selection(levels=(("idle-cores", "off"),)), IDLE, None),
        (Selection(levels=(("idle-cores", "off"), ("idle-cores", "error"))), IDLE, "error"),
        (Selection(suppressions=(Suppression("zero-trip-grid", "sc*"),)), EMPTY, None),
        (Selection(suppressions=(Suppression("zero-trip-grid", "add*"),)), EMPTY, "error"),
        (Selection(suppressions=(Suppression("idle-cores", "*"),)), EMPTY, "error"),
    ],
)
def test_severity(selection: Selection, given: Diagnostic, expected: str | None) -> None:
    """A diagnostic is reported as what the last flag for its name says, else as --Werror says, else as it is."""
    reported = selection.apply(given)
    assert (reported.severity.value if reported else None) == expected


def test_session_reports_what_is_selected() -> None:
    """A warning that is an error by flag makes the session fail; one that is left out isn't there."""
    session = Session(selection=Selection(levels=(("idle-cores", "error"), ("parallel-on-trust", "off"))))
    session.emit(TRUST)
    assert not session.diagnostics
    assert not session.failed
    session.emit(IDLE)
    assert session.failed


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"place": Place("b/k.py", 30, 7)}, True),
        ({"message": "on 1 of 4"}, True),
        ({"severity": Severity.ERROR}, True),
        ({"kernel": "add"}, False),
        ({"about": "dimension 1"}, False),
        ({"name": "parallel-not-prefix"}, False),
        ({"place": Place("b/other.py", 3, 1)}, False),
    ],
)
def test_fingerprint(change: dict[str, object], same: bool) -> None:
    """It stays when lines move and numbers change, and tells kernels, parts of them, names and files apart."""
    assert (fingerprint(dataclasses.replace(IDLE, **change)) == fingerprint(IDLE)) is same  # type: ignore[arg-type]


def test_fingerprint_does_not_depend_on_the_dump() -> None:
    """The dump's own lines stand in for the user's where it has none: its name says nothing."""
    places = (Place("one.mlir", 3), Place("two.mlir", 4), None)
    assert len({fingerprint(dataclasses.replace(IDLE, place=place)) for place in places}) == 1


def test_baseline(tmp_path: Path) -> None:
    """What was recorded is not reported again, as often as it was there; what is new is, and remarks always are."""
    file = tmp_path / "known.json"
    recorder = Recorder(str(file))
    first = Selection(recorder=recorder)
    assert [first.apply(each) for each in (IDLE, EMPTY, IDLE, TRUST)] == [None, None, None, TRUST]
    assert recorder.write().message == f"3 findings written to {file}, which --baseline reads"
    second = Selection(baseline=Baseline.read(str(file)))
    moved = dataclasses.replace(IDLE, place=Place("a/k.py", 300))
    other = dataclasses.replace(EMPTY, kernel="add")
    seen = [second.apply(each) for each in (moved, IDLE, IDLE, EMPTY, other, TRUST)]
    assert seen == [None, None, IDLE, None, other, TRUST]


def test_baseline_file_has_an_order(tmp_path: Path) -> None:
    """Findings in another order give the same file, so that it can be kept under version control."""
    texts = set()
    for findings in ((IDLE, EMPTY), (EMPTY, IDLE)):
        recorder = Recorder(str(tmp_path / "known.json"), list(findings))
        recorder.write()
        texts.add((tmp_path / "known.json").read_text())
    (text,) = texts
    assert [each["name"] for each in json.loads(text)["findings"]] == ["idle-cores", "zero-trip-grid"]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"version": 1, "findings": [{}]}', '{"version": 2}'])
def test_bad_baseline(content: str, tmp_path: Path) -> None:
    """A file that is none is an error, not an empty baseline."""
    file = tmp_path / "known.json"
    file.write_text(content)
    with pytest.raises(UserError, match="baseline"):
        Baseline.read(str(file))
