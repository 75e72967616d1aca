"""`--kernel`: whether its patterns name kernels, and what they don't reach."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence

from mosaic_grid.diagnostics import Diagnostic, Severity
from mosaic_grid.errors import UserError
from mosaic_grid.pass_options import nearest
from mosaic_grid.pipeline import NativePass, Pipeline

_NAMES_TOLD = 20


def check_patterns(patterns: Sequence[str], kernels: Sequence[str]) -> None:
    """Raises `UserError` for the first pattern that matches none of these kernels."""
    for pattern in patterns:
        if not fnmatch.filter(kernels, pattern):
            more = f" and {len(kernels) - _NAMES_TOLD} more" if len(kernels) > _NAMES_TOLD else ""
            told = f"the kernels are {', '.join(kernels[:_NAMES_TOLD])}{more}" if kernels else "there is no kernel"
            raise UserError(f"--kernel={pattern} matches no kernel{nearest(pattern, kernels)}", notes=[told])


def warning_of_native_passes(patterns: Sequence[str], pipeline: Pipeline) -> Iterator[Diagnostic]:
    """A warning where there are patterns, and passes that don't know of them."""
    native = [step.text for step in pipeline.steps if isinstance(step, NativePass)]
    if patterns and native:
        message = f"--kernel is for this tool's passes: MLIR's work on the whole program ({', '.join(native)})"
        yield Diagnostic(Severity.WARNING, message)
