"""What passes say, told as Python tells it: warnings at the user's line, remarks by the logger `mosaic_grid`."""

from __future__ import annotations

import dataclasses
import logging
import warnings
from collections.abc import Iterable

from mosaic_grid.diagnostics import Diagnostic, Severity

logger = logging.getLogger("mosaic_grid")


class MosaicGridWarning(UserWarning):
    """Something that a check finds wrong or slow about a kernel; the name in brackets is for `mosaic-opt --explain`."""


_registry: dict[str | tuple[str, type[Warning], int], int] = {}
"""What Python needs to tell a warning from one that it has shown."""


def tell(diagnostics: Iterable[Diagnostic]) -> None:
    """Errors and warnings become warnings at their line, remarks messages of level INFO."""
    for each in diagnostics:
        if each.severity is Severity.REMARK:
            logger.info("\n".join(each.lines()))
            continue
        place = each.place
        file, line = (place.file, place.line) if place else ("mosaic-grid", 0)
        # Python puts the place before the text itself
        text = "\n".join(dataclasses.replace(each, place=None).lines())
        warnings.warn_explicit(text, MosaicGridWarning, file, line, registry=_registry)
