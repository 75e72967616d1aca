"""The catalogue of diagnostics: what is said has a name in it, and what is in it is said."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mosaic_grid
from mosaic_grid.catalogue import CATALOGUE, GROUPS, Entry
from mosaic_grid.diagnostics import Diagnostic, Severity
from mosaic_grid.errors import UserError
from mosaic_grid.explain import explain

PACKAGE = Path(mosaic_grid.__file__).parent
ENTRIES = [pytest.param(entry, id=entry.name) for entry in CATALOGUE.values()]


def test_a_name_stands_in_it_once() -> None:
    """No entry hides another."""
    assert len(CATALOGUE) == sum(len(entries) for _, entries in GROUPS)


@pytest.mark.parametrize("entry", ENTRIES)
def test_entry(entry: Entry) -> None:
    """A kebab-case name, a line without a full stop, and something in every field, none of it too wide to read."""
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", entry.name)
    assert entry.severity is not Severity.NOTE
    assert not entry.summary.endswith(".")
    assert "\n" not in entry.summary
    assert all((entry.summary, entry.explanation, entry.example, entry.advice, entry.fix))
    code = [line for text in (entry.example, entry.fix) for line in text.splitlines()]
    assert max(map(len, code)) <= 116, "with its indentation it is wider than 120"


@pytest.mark.parametrize("entry", ENTRIES)
def test_entry_is_in_use(entry: Entry) -> None:
    """Something outside of the catalogue says it."""
    files = [*PACKAGE.rglob("*.py"), *(PACKAGE / "passes").glob("*.py")]
    sources = [file.read_text() for file in files if "catalogue" not in file.parts]
    assert any(entry.name in source for source in sources)


def test_unknown_names_cannot_be_said() -> None:
    """A diagnostic is made with a name of the catalogue or without one."""
    with pytest.raises(ValueError, match="'idle-core' is not in the catalogue"):
        Diagnostic(Severity.WARNING, "said", name="idle-core")


def test_explanation() -> None:
    """It has the severity, the example and the fix; brackets around a name, as it is printed, do no harm."""
    text = explain(["[zero-trip-grid]"])
    assert text.startswith("zero-trip-grid (error): a dimension of the grid has no step")
    assert "    pl.pallas_call(kernel, grid=(x.shape[0] // 2048,)" in text
    assert "    pl.pallas_call(kernel, grid=(pl.cdiv(x.shape[0], 2048),)" in text


def test_list() -> None:
    """Without a name all are listed, each with its severity."""
    listed = [line.split()[:2] for line in explain([]).splitlines()]
    assert all([entry.name, entry.severity.value] in listed for entry in CATALOGUE.values())


def test_unknown_name() -> None:
    """The nearest one is suggested."""
    with pytest.raises(UserError, match="'paralel-race'; did you mean 'parallel-race'"):
        explain(["paralel-race"])
