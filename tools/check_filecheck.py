"""Finds dead directives in lit tests: lines that look like a check and check nothing.

FileCheck ignores what it doesn't recognise, so `CHECK-NEXT foo`, `CHEKC: foo`, or a prefix that no RUN line names pass
in silence, and so does a misspelt `expected-error`. Usage: `check_filecheck.py [FILE|FOLDER...]`, by default the lit
folders of test/; exits with 1 if anything was found.

A line is looked at where its comment starts with something like a directive. In a test's comments, capitals with a
colon are therefore kept for directives and lit's own keywords.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIT_FOLDERS = ("passes", "tool", "jax", "real")

SUFFIXES = ("NEXT", "SAME", "NOT", "DAG", "LABEL", "EMPTY", "COUNT")
SUFFIX = r"(?:-(?:NEXT|SAME|NOT|DAG|LABEL|EMPTY|COUNT-\d+))?(?:\{LITERAL\})?"
LIT_KEYWORDS = ("RUN", "REQUIRES", "UNSUPPORTED", "XFAIL", "ALLOW_RETRIES", "END", "DEFINE", "REDEFINE")
OTHER_KEYWORDS = ("COM", "TODO", "NOTE", "FIXME")  # COM is FileCheck's own "this is no directive"
SEVERITIES = ("error", "warning", "remark", "note")

COMMENT = re.compile(r"(?:^\s*(?://|#)+|\s(?://|#)(?=\s))\s*(?P<text>.*?)\s*$")
RUN = re.compile(r"(?://|#)\s*(?:RUN|DEFINE|REDEFINE):\s*(?P<command>.*?)(?P<continued>\\)?\s*$")
CALL = re.compile(r"(?<![\w/-])FileCheck(?![\w-])[^|;&]*")
PREFIXES = re.compile(r"--?check-prefix(?:es)?[= ](?P<names>[\w,-]+)")
EXPECTED = re.compile(
    r"expected-(?:error|warning|remark|note)(?:-re)?"
    r"\s*(?:@(?:[+-]\d+|above|below|unknown|\"[^\"]+\":\d+))?\s*(?:\d+\+?)?\s*\{\{.*\}\}"
)
EXPECTED_LIKE = re.compile(r"^(?P<first>[A-Za-z]+)[-_ ](?P<second>[A-Za-z]+)(?:-re)?\s*(?:@|\d|\{\{|:|$)")
TOKEN = re.compile(r"^(?P<token>[A-Za-z][\w-]*)(?:\{LITERAL\})?(?P<after>\s*:)?")


@dataclasses.dataclass(frozen=True)
class Finding:
    """One dead line; `line` counts from 1."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: error: {self.message}"


@dataclasses.dataclass(frozen=True)
class RunLines:
    """What a file's RUN lines ask for: FileCheck's prefixes with the line that names each, and --verify-diagnostics."""

    prefixes: dict[str, int]
    verifies: bool


def run_lines(lines: Sequence[str]) -> RunLines:
    """Reads the RUN lines and definitions of substitutions, joined where they end in a backslash."""
    prefixes: dict[str, int] = {}
    verifies = False
    command = ""
    for number, line in enumerate(lines, 1):
        if not (run := RUN.search(line)):
            continue
        command += run["command"]
        if run["continued"]:
            continue
        verifies |= "-verify-diagnostics" in command
        for call in CALL.findall(command):
            names = [name for match in PREFIXES.finditer(call) for name in match["names"].split(",")]
            for name in names or ["CHECK"]:
                prefixes.setdefault(name, number)
        command = ""
    return RunLines(prefixes, verifies)


def is_live(text: str, prefixes: Iterable[str]) -> bool:
    """Whether FileCheck would take something in `text` for a directive, as it does anywhere in a line."""
    return any(re.search(rf"(?<![\w-]){re.escape(prefix)}{SUFFIX}:", text) for prefix in prefixes)


def directive_fault(text: str, prefixes: Iterable[str]) -> str | None:
    """What is wrong with a comment that starts like a directive of FileCheck or lit; `None` for prose and live ones."""
    token, colon = (match["token"], match["after"]) if (match := TOKEN.match(text)) else ("", None)
    if not token or any(re.fullmatch(prefix + SUFFIX, token) and colon == ":" for prefix in prefixes):
        return None
    if token in LIT_KEYWORDS + OTHER_KEYWORDS:
        return f"{token} has no colon right behind it" if token in LIT_KEYWORDS[:4] and colon != ":" else None
    if any(re.fullmatch(prefix + SUFFIX, token) for prefix in {*prefixes, "CHECK"}):
        return f"{token} has no colon right behind it" if colon != ":" else unused(token)
    if any(token.upper().startswith(f"{prefix}-") for prefix in prefixes):
        return f"{token} is no directive: the suffixes are {', '.join(f'-{suffix}' for suffix in SUFFIXES)} in capitals"
    if not colon:
        return None
    if close := nearest(token, prefixes):
        return f"{token} is no directive: did you mean {close}?"
    return unused(token) if re.fullmatch(r"[A-Z][A-Z0-9_-]*", token) else None


def unused(token: str) -> str:
    """The message about a directive that nothing reads."""
    return f"no RUN line of this file makes FileCheck read {token}"


def nearest(token: str, prefixes: Iterable[str]) -> str | None:
    """The directive or keyword that `token` is a misspelling of, upper and lower case being the same."""
    words = {*prefixes, "CHECK", *LIT_KEYWORDS[:4]}
    directives = {*words, *(f"{prefix}-{suffix}" for prefix in prefixes for suffix in SUFFIXES)}
    close = difflib.get_close_matches(token.upper(), sorted(directives), n=1, cutoff=0.8)
    return close[0] if close else None


def expectation_fault(text: str, verifies: bool) -> str | None:
    """What is wrong with a comment that starts like an expected diagnostic; `None` for prose and live ones."""
    match = EXPECTED_LIKE.match(text)
    if not match or not difflib.get_close_matches(match["first"].lower(), ["expected"], cutoff=0.75):
        return None
    if not difflib.get_close_matches(match["second"].lower(), SEVERITIES, cutoff=0.7):
        return None
    if not EXPECTED.match(text):
        return "not an expected diagnostic: write expected-error@+1 {{text}}, or -warning, -remark, -note"
    return None if verifies else "no RUN line of this file has --verify-diagnostics, so nothing reads this expectation"


def check_text(path: Path, text: str) -> Iterator[Finding]:
    """Every dead line of one test, in order; a prefix without a directive is reported at its RUN line."""
    lines = text.splitlines()
    asked = run_lines(lines)
    for prefix, number in asked.prefixes.items():
        if not is_live(text, [prefix]):
            yield Finding(path, number, f"FileCheck is told to read {prefix}, but the file has no {prefix} directive")
    for number, line in enumerate(lines, 1):
        if not (comment := COMMENT.search(line)):
            continue
        fault = directive_fault(comment["text"], asked.prefixes) or expectation_fault(comment["text"], asked.verifies)
        if fault:
            yield Finding(path, number, fault)


def tests_under(paths: Iterable[Path]) -> Iterator[Path]:
    """The lit tests among files and folders: .mlir and .py, but not what lies in a folder Inputs."""
    for path in paths:
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (file for file in found if file.suffix in (".mlir", ".py") and "Inputs" not in file.parts)


def main(argv: Sequence[str]) -> int:
    """Prints the findings of the given files and folders; 1 if there are any."""
    folders = [Path(argument) for argument in argv] or [ROOT / "test" / name for name in LIT_FOLDERS]
    findings = [finding for path in tests_under(folders) for finding in check_text(path, path.read_text())]
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
