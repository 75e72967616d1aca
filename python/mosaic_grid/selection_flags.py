"""The flags that say which diagnostics are reported, read into a `Selection`."""

from __future__ import annotations

import argparse

from mosaic_grid.baseline import Baseline, Recorder
from mosaic_grid.errors import UserError
from mosaic_grid.explain import entry
from mosaic_grid.selection import Level, Selection, Suppression
from mosaic_grid.severity import Severity


def read_selection(given: argparse.Namespace) -> Selection:
    """What the parsed arguments select. Raises `UserError` for a name that isn't in the catalogue, or a bad file."""
    levels = [(_named(name, level), level) for name, level in given.levels if name]
    return Selection(
        strict=given.strict,
        werror=len(levels) < len(given.levels),
        levels=tuple(levels),
        suppressions=tuple(map(_suppression, given.suppress)),
        baseline=Baseline.read(given.baseline) if given.baseline is not None else None,
        recorder=Recorder(given.write_baseline) if given.write_baseline is not None else None,
    )


def _named(name: str, level: Level) -> str:
    found = entry(name)
    if level == "off" and found.severity is Severity.ERROR:
        advice = f"--suppress={found.name}:KERNEL leaves it out for a kernel, --warn={found.name} makes it a warning"
        raise UserError(f"--no-warn: {found.name} is an error", notes=[advice])
    return found.name


def _suppression(text: str) -> Suppression:
    name, _, kernels = text.partition(":")
    if not kernels:
        raise UserError(f"--suppress expects NAME:KERNEL, got '{text}'", notes=[f"--suppress={name}:* is every kernel"])
    return Suppression(entry(name).name, kernels)
