"""Writes docs/passes.md from the passes' declarations; with --check, says whether it is current."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import sys
from pathlib import Path

from mosaic_grid.passbase import Pass
from mosaic_grid.passes import PASSES

DOCS = Path(__file__).resolve().parent.parent / "docs" / "passes.md"
HEADER = """\
# Passes

Written by `make docs` from the declarations in `passes/`; change them there.
`mosaic-opt -p 'NAME{option=value},NAME'` runs them, MLIR's own passes (`canonicalize`, `cse`, ...) among them.
"""


def section(name: str, cls: type[Pass]) -> str:
    """What the docs say of one pass: its docstring and a table of its options."""
    doc = inspect.cleandoc(cls.__doc__ or "")
    lines = [f"## `{name}`", "", f"*{cls.kind}*", "", doc]
    options = dataclasses.fields(cls)
    if options:
        lines += ["", "| option | default | meaning |", "| --- | --- | --- |"]
        lines += [f"| `{f.name.replace('_', '-')}` | {_default(f.default)} | {f.metadata['help']} |" for f in options]
    return "\n".join(lines)


def _default(value: object) -> str:
    return "none" if value is None else f"`{value}`"


def text() -> str:
    """The whole file."""
    return "\n\n".join([HEADER.rstrip(), *(section(name, cls) for name, cls in PASSES.items())]) + "\n"


def main() -> int:
    """Writes the file, or compares it; 1 if it is not current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only")
    if not parser.parse_args().check:
        DOCS.write_text(text(), encoding="utf-8")
        return 0
    if DOCS.exists() and DOCS.read_text(encoding="utf-8") == text():
        return 0
    print("docs/passes.md is not what the passes declare: run `make docs`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
