"""Finds what must not be committed: paths of one machine and hosts of package registries.

A path such as a home folder works for one person only and leaks from dumps into tests; a registry's host pins an
install to one mirror. Reads the tracked files and those about to be added; exits with 1 if anything was found.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Written so that no pattern matches its own text.
RULES = (
    (re.compile(r"(?<![\w.$}/-])/(?:[h]ome|[r]oot|[U]sers|[w]ork|[t]mp|[s]rv|[m]nt)/\w"), "a path of one machine"),
    (re.compile(r"(?:[p]ypi|[p]ythonhosted|[n]pmjs|[n]odejs|[d]ebian|[u]buntu)\.(?:org|com)\b"), "a registry's host"),
)
MADE_BY_TOOLS = {".git", ".venv", ".venv-old", ".cache", ".hypothesis", "build", "dist", "__pycache__"}


def faults(text: str) -> Iterator[tuple[int, str]]:
    """The lines of `text`, counted from 1, that break a rule, with the rule."""
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, what in RULES:
            if match := pattern.search(line):
                yield number, f"{what}: {match[0]}"


def files() -> list[Path]:
    """What git tracks or would add; without git (an unpacked archive) everything that no tool made."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    if (ROOT / ".git").exists():
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
        return [path for name in listed if name and (path := ROOT / name).is_file()]
    found = (path for path in ROOT.rglob("*") if path.is_file())
    return sorted(path for path in found if not MADE_BY_TOOLS.intersection(path.relative_to(ROOT).parts))


def main() -> int:
    """Prints what was found; 1 if anything was."""
    found = 0
    for path in files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue  # bytecode and other binary files
        for number, what in faults(text):
            found += 1
            print(f"{path.relative_to(ROOT)}:{number}: error: {what}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
