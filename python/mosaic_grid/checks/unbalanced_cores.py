"""`unbalanced-cores`: so few parallel steps that one core has much more to do than another."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from mosaic_grid.checks.subject import Subject
from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.grid import Semantics, is_placeholder
from mosaic_grid.summary.cores import axes_text, chip_name

NAME = "unbalanced-cores"
_TOLD_FROM = Fraction(6, 5)


def unbalanced_cores(subject: Subject) -> Iterator[Diagnostic]:
    """A warning where the largest share of the static parallel steps is 1.2 times the mean or more.

    A dimension is shared in whole steps; the steps of all parallel dimensions counted together are the best case,
    whatever libtpu shares.
    """
    grid, cores = subject.kernel.grid, subject.cores
    if not subject.kernel.on_tensor_core or any(each.semantics is Semantics.CORE_PARALLEL for each in grid):
        return
    sizes = {axis: each.bound for axis, each in enumerate(grid) if each.is_parallel and each.bound is not None}
    shared = {axis: bound for axis, bound in sizes.items() if bound > 1 and not is_placeholder(bound)}
    steps = math.prod(shared.values())
    largest = -(-steps // cores)
    if not shared or Fraction(largest * cores, steps) < _TOLD_FROM:
        return
    verb = "has" if len(shared) == 1 else "have"
    chip = chip_name(subject.target) if subject.target else "a chip"
    message = (
        f"parallel {axes_text(list(shared))} {verb} {steps} steps for the {cores} cores of {chip}: one core runs "
        f"{largest}, {float(Fraction(largest * cores, steps)):.2f} times the mean"
    )
    advice = f"choose blocks that make the steps a multiple of {cores}, or many"
    yield subject.say(NAME, Severity.WARNING, message, "grid", notes=[note(advice)])
