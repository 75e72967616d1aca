"""SARIF logs: what the standard requires of the parts that are used, and allows in them."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from mosaic_grid.catalogue import CATALOGUE
from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.errors import Place
from mosaic_grid.reports import Report, Reporter
from mosaic_grid.sarif import sarif_log

NOTES = (note("the bound is n", Place("k.py", 2)), note("make it static"))
IDLE = Diagnostic(Severity.WARNING, "on 1 of 2", Place("/src/my kernel.py", 3, 5), "idle-cores", NOTES, "scale", "d0")
PLAIN = Diagnostic(Severity.REMARK, "nothing to do")

# SARIF 2.1.0, chapter 3: of each object the properties that are used here, those that must be there first
OBJECTS: dict[str, tuple[set[str], set[str]]] = {
    "sarifLog": ({"version", "runs"}, {"$schema"}),
    "run": ({"tool"}, {"invocations", "columnKind", "results"}),
    "tool": ({"driver"}, set()),
    "toolComponent": ({"name"}, {"version", "rules"}),
    "reportingDescriptor": ({"id"}, {"shortDescription", "fullDescription", "help", "defaultConfiguration"}),
    "invocation": ({"executionSuccessful"}, {"exitCode", "toolExecutionNotifications"}),
    "notification": ({"message"}, {"level", "locations"}),
    "result": (
        {"message"},
        {"level", "ruleId", "ruleIndex", "partialFingerprints", "locations", "relatedLocations", "properties"},
    ),
    "location": (set(), {"id", "physicalLocation", "logicalLocations", "message"}),
    "physicalLocation": ({"artifactLocation"}, {"region"}),
    "message": ({"text"}, set()),
}


def conforms(kind: str, value: dict[str, Any]) -> dict[str, Any]:
    """The object, which has what it must have and nothing that isn't listed."""
    required, optional = OBJECTS[kind]
    assert required <= value.keys() <= required | optional, (kind, value.keys())
    return value


def run_of(log: dict[str, Any]) -> dict[str, Any]:
    """The run of a log, all its parts looked at."""
    assert conforms("sarifLog", log)["version"] == "2.1.0"
    (run,) = log["runs"]
    conforms("run", run)
    driver = conforms("toolComponent", conforms("tool", run["tool"])["driver"])
    for rule in driver["rules"]:
        conforms("reportingDescriptor", rule)
        for field in ("shortDescription", "fullDescription", "help"):
            conforms("message", rule[field])
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
    for result in run["results"]:
        conforms("message", conforms("result", result)["message"])
        assert result["level"] in ("error", "warning", "note")
        assert "ruleId" not in result or driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        for location in (*result["locations"], *result.get("relatedLocations", ())):
            located(location)
    for notification in (n for i in run["invocations"] for n in conforms("invocation", i).get(NOTIFICATIONS, ())):
        conforms("message", conforms("notification", notification)["message"])
    return dict(run)


NOTIFICATIONS = "toolExecutionNotifications"


def located(location: dict[str, Any]) -> None:
    """Asserts that a location is one: lines and columns count from 1, and a URI has no blank in it."""
    physical = conforms("physicalLocation", conforms("location", location)["physicalLocation"])
    assert " " not in physical["artifactLocation"]["uri"]
    assert all(number >= 1 for number in physical.get("region", {}).values())


def test_log() -> None:
    """A finding has its rule, level, place, kernel and fingerprint; notes with a place are related locations."""
    run = run_of(sarif_log([Report(IDLE, "a.mlir"), Report(IDLE, "b.mlir")], [], "1.0", 0))
    first, second = run["results"]
    assert (first["ruleId"], first["level"]) == ("idle-cores", "warning")
    assert first["message"]["text"] == "On 1 of 2. Make it static."
    (place,) = first["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "file:///src/my%20kernel.py"
    assert place["physicalLocation"]["region"] == {"startLine": 3, "startColumn": 5}
    assert place["logicalLocations"] == [{"name": "scale", "kind": "function"}]
    (related,) = first["relatedLocations"]
    assert related["message"]["text"] == "the bound is n"
    marks = [each["partialFingerprints"]["mosaicGrid/v1"] for each in (first, second)]
    assert [mark.split(":")[1] for mark in marks] == ["1", "2"]
    assert len({mark.split(":")[0] for mark in marks}) == 1


def test_rules() -> None:
    """Every diagnostic of the catalogue is a rule, in its order."""
    rules = run_of(sarif_log([], [], "1.0", 0))["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(CATALOGUE)


def test_diagnostic_without_name_and_place() -> None:
    """It is a result without a rule, at the input that it is about."""
    (result,) = run_of(sarif_log([Report(PLAIN, "a.mlir")], [], "1.0", 0))["results"]
    assert "ruleId" not in result
    assert result["level"] == "note"
    assert result["locations"][0]["physicalLocation"] == {"artifactLocation": {"uri": "a.mlir"}}


def test_failures() -> None:
    """What kept the tool from its work is a notification, and the run no success."""
    failure = Diagnostic(Severity.ERROR, "can't read it", Place("a.mlir"))
    (invocation,) = run_of(sarif_log([], [failure], "1.0", 2))["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 2)
    assert invocation[NOTIFICATIONS][0]["message"]["text"] == "Can't read it."


@pytest.mark.parametrize("form", ["json", "sarif"])
def test_document_is_written_once_at_the_end(form: Any) -> None:
    """Nothing goes to standard error, and standard output is one JSON value."""
    out, err = io.StringIO(), io.StringIO()
    reporter = Reporter(form, out, err)
    reporter.say(IDLE, "a.mlir")
    assert (out.getvalue(), err.getvalue()) == ("", "")
    reporter.finish("1.0", 0)
    assert json.loads(out.getvalue())
    assert err.getvalue() == ""


def test_text_is_written_at_once() -> None:
    """It goes to standard error as MLIR prints it, and nothing follows."""
    out, err = io.StringIO(), io.StringIO()
    reporter = Reporter("text", out, err)
    reporter.say(IDLE, "a.mlir")
    reporter.finish("1.0", 0)
    assert (err.getvalue().splitlines()[0], out.getvalue()) == (
        "/src/my kernel.py:3:5: warning: on 1 of 2 [idle-cores]",
        "",
    )
