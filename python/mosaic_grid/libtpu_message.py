"""libtpu's error messages as our diagnostics: the sentence that says what is wrong, where, and the op it is about."""

from __future__ import annotations

import re

from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.errors import Place

NAME = "does-not-compile"

_STATUS = re.compile(r"[A-Z][A-Z_]+:(?:\s+|$)")
_MOSAIC = re.compile(r"Mosaic failed to compile TPU kernel(?: with MLIR module name `[^`]*` HLO name `[^`]*`)?: ")
_CODE = re.compile(r"E\d{4}: (?:[A-Z]\w+: )?")
_ALLOCATION = re.compile(
    r"Allocation \(size=(?P<size>\d+)\) would exceed memory \(size=(?P<limit>\d+)\) :: "
    r".*?space=(?P<space>\w+),.*?tag = '(?P<tag>[^'.]*)",
    re.DOTALL,
)
_POSITION = re.compile(r'"(?P<file>[^"\n]+)":(?P<line>\d+):(?P<column>\d+)')
_SUSPECTED = re.compile(r"Suspected Python Code Location:\s*(?P<file>[^\s:]+):(?P<line>\d+)")
_OPERATION = re.compile(r"The MLIR operation involved:\s*(?P<op>[^\n]+)")
# A fatal line of its log: "F1201 10:20:30.123456 4242 shape_util.cc:1035] Check failed: ..."
_FATAL = re.compile(r"^F\d{4} [\d:.]+\s+\d+ \S+\] (.+)$", re.MULTILINE)
_LONGEST_NOTE = 300
_LAST_LINES = 3


def diagnostic_of(message: str) -> Diagnostic:
    """The error in an exception of the compiler. Status words, error codes and advice to report a bug are left out."""
    text = message.strip()
    for prefix in (_STATUS, _MOSAIC, _CODE):
        text = text[match.end() :] if (match := prefix.match(text)) else text
    return Diagnostic(Severity.ERROR, _sentence(text), _place(text), NAME, _notes(text))


def failure(message: str, log: str = "") -> Diagnostic:
    """An error in our own words, with what libtpu died of if its log says so, else with the log's last lines."""
    fatal = _FATAL.findall(log)
    if fatal:
        return Diagnostic(Severity.ERROR, f"{message}: {fatal[-1].strip()}", None, NAME)
    last = [line for line in log.splitlines() if line.strip()][-_LAST_LINES:]
    return Diagnostic(Severity.ERROR, message, None, NAME, tuple(note(line) for line in last))


def mentions(message: str, instruction: str) -> bool:
    """Whether the message names the instruction: as a word of its own, since `f.1` is also the start of `f.12`."""
    return re.search(rf"(?<![\w.-]){re.escape(instruction)}(?![\w.-])", message) is not None


def _sentence(text: str) -> str:
    if match := _ALLOCATION.match(text):
        return (
            f"allocation of {match['size']} bytes would exceed the {match['limit']} bytes of {match['space']}: "
            f"{match['tag']}"
        )
    # Some of its libraries put blanks at random, so that nobody relies on a message.
    first = " ".join((text.splitlines() or ["no reason given"])[0].split()).removesuffix(".")
    return first[:1].lower() + first[1:] if re.match("[A-Z][a-z]", first) else first


def _place(text: str) -> Place | None:
    if match := _POSITION.search(text):
        return Place(match["file"], int(match["line"]), int(match["column"]))
    match = _SUSPECTED.search(text)
    # "-" is the program itself, which has no file.
    return Place(match["file"], int(match["line"])) if match and match["file"] != "-" else None


def _notes(text: str) -> tuple[Diagnostic, ...]:
    rest = text.partition("\n\n")[0].splitlines()[1:]
    notes = [line.strip().removesuffix(".") for line in rest if line.strip()]
    if match := _OPERATION.search(text):
        op = match["op"].strip()
        notes.append(f"the op is {op if len(op) <= _LONGEST_NOTE else op[:_LONGEST_NOTE] + ' ...'}")
    return tuple(note(line) for line in notes)
