"""Writes docs/diagnostics.md from the catalogue of diagnostics; with --check, says whether it is current."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mosaic_grid.catalogue import GROUPS, Entry

DOCS = Path(__file__).resolve().parent.parent / "docs" / "diagnostics.md"
HEADER = """\
# Diagnostics

Written by `make docs` from the catalogue in `python/mosaic_grid/catalogue/`; change it there.
`mosaic-opt --explain NAME` prints the same. The severity is the worst that a diagnostic comes with.
"""


def section(entry: Entry) -> str:
    """What the docs say of one diagnostic."""
    parts = [f"### `{entry.name}`", f"*{entry.severity.value}*: {entry.summary}.", entry.explanation]
    return "\n\n".join([*parts, _code(entry.example), entry.advice, _code(entry.fix)])


def _code(text: str) -> str:
    return f"```\n{text}\n```"


def contents() -> str:
    """A table of all."""
    rows = [f"| [`{e.name}`](#{e.name}) | {e.severity.value} | {e.summary} |" for _, entries in GROUPS for e in entries]
    return "\n".join(["| name | severity | |", "| --- | --- | --- |", *rows])


def text() -> str:
    """The whole file."""
    groups = ["\n\n".join([f"## {title}", *map(section, entries)]) for title, entries in GROUPS]
    return "\n\n".join([HEADER.rstrip(), contents(), *groups]) + "\n"


def main() -> int:
    """Writes the file, or compares it; 1 if it is not current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only")
    if not parser.parse_args().check:
        DOCS.write_text(text(), encoding="utf-8")
        return 0
    if DOCS.exists() and DOCS.read_text(encoding="utf-8") == text():
        return 0
    print("docs/diagnostics.md is not what the catalogue says: run `make docs`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
