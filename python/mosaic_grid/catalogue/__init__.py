"""The catalogue: every diagnostic that has a name, in one table.

`--explain`, docs/diagnostics.md and the rules of a SARIF log are made from it. A `Diagnostic` whose name is not in it
can't be made.
"""

from __future__ import annotations

from mosaic_grid.catalogue import batching, certificates, cores, grid, inference, order, rewrites, running
from mosaic_grid.catalogue.entry import Entry

__all__ = ["CATALOGUE", "Entry", "listing"]

GROUPS: tuple[tuple[str, tuple[Entry, ...]], ...] = (
    ("Cores that idle, or can't be used", cores.ENTRIES),
    ("The order of steps", order.ENTRIES),
    ("Grids, windows and memory", grid.ENTRIES),
    ("Certificates", certificates.ENTRIES),
    ("Dimensions that are parallel, and those that are not", inference.ENTRIES),
    ("Loops over a batch", batching.ENTRIES),
    ("What the passes and the compiler say", rewrites.ENTRIES),
    ("What running a program finds", running.ENTRIES),
)
"""The entries by what they are about."""

CATALOGUE: dict[str, Entry] = {entry.name: entry for _, entries in GROUPS for entry in entries}


def listing() -> str:
    """Every diagnostic with its severity and summary, a line each."""
    lines: list[str] = []
    for title, entries in GROUPS:
        lines += ["", f"{title}:", *(f"  {e.name:28}{e.severity.value:9}{e.summary}" for e in entries)]
    return "\n".join(lines[1:]) + "\n"
