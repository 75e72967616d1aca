"""`--kernel` and `--suppress`: whether their patterns name kernels, and what they don't reach."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence

from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.errors import UserError
from mosaic_grid.pass_options import nearest
from mosaic_grid.pipeline import NativePass, Pipeline
from mosaic_grid.selection import Suppression

_NAMES_TOLD = 20


def check_patterns(patterns: Sequence[str], kernels: Sequence[str]) -> None:
    """Raises `UserError` for the first pattern that matches none of these kernels."""
    for pattern in patterns:
        if not fnmatch.filter(kernels, pattern):
            message = f"--kernel={pattern} matches no kernel{nearest(pattern, kernels)}"
            raise UserError(message, notes=[_told(kernels)])


def warnings_of_suppressions(suppressions: Sequence[Suppression], kernels: Sequence[str]) -> Iterator[Diagnostic]:
    """A warning for each suppression that is for none of these kernels.

    No error, as an unused one isn't to other tools: scripts give the same ones with program after program.
    """
    for each in suppressions:
        if kernels and not fnmatch.filter(kernels, each.kernels):
            message = f"--suppress={each.name}:{each.kernels} matches no kernel{nearest(each.kernels, kernels)}"
            yield Diagnostic(Severity.WARNING, message, notes=(note(_told(kernels)),))


def _told(kernels: Sequence[str]) -> str:
    more = f" and {len(kernels) - _NAMES_TOLD} more" if len(kernels) > _NAMES_TOLD else ""
    return f"the kernels are {', '.join(kernels[:_NAMES_TOLD])}{more}" if kernels else "there is no kernel"


def warning_of_native_passes(patterns: Sequence[str], pipeline: Pipeline) -> Iterator[Diagnostic]:
    """A warning where there are patterns, and passes that don't know of them."""
    native = [step.text for step in pipeline.steps if isinstance(step, NativePass)]
    if patterns and native:
        message = f"--kernel is for this tool's passes: MLIR's work on the whole program ({', '.join(native)})"
        yield Diagnostic(Severity.WARNING, message)
