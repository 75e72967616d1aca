"""`core_parallel` dimensions that no device takes: their bound has to be the number of cores of one.

Established with libtpu 0.0.50: any other bound is refused, and so is a second such dimension. A dynamic one is refused
by JAX.
"""

from __future__ import annotations

from collections.abc import Iterator

from mosaic_grid.checks.subject import Subject
from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.grid import Semantics, is_placeholder
from mosaic_grid.summary.cores import axes_text, chip_name


def core_parallel(subject: Subject) -> Iterator[Diagnostic]:
    """One error for each dimension, and one for there being several."""
    if not subject.kernel.on_tensor_core:
        return
    grid = subject.kernel.grid
    axes = [axis for axis, dimension in enumerate(grid) if dimension.semantics is Semantics.CORE_PARALLEL]
    if len(axes) > 1:
        message = f"{axes_text(axes)} of the grid are core_parallel, and only one may be"
        yield _error(subject, "several-core-parallel", message, "grid")
    for axis in axes:
        found = _of_the_bound(subject, axis, grid[axis].bound)
        if found:
            yield _error(subject, *found, f"dimension {axis}")


def _of_the_bound(subject: Subject, axis: int, bound: int | None) -> tuple[str, str] | None:
    """The name and the message of what is wrong with a bound."""
    have = f"core_parallel dimension {axis} has"
    if bound is None:
        return "dynamic-core-parallel", f"{have} a dynamic bound, and JAX and libtpu want the number of cores"
    if is_placeholder(bound):
        told = f"{have} bound {bound}, which is a placeholder for a symbolic size: it asks for as many cores"
        return "core-count-placeholder", told
    cores = subject.cores
    has = f"{chip_name(subject.target)} has {cores}" if subject.target else f"no device has more than {cores}"
    if bound > cores:
        return "core-parallel-exceeds-cores", f"{have} bound {bound}, one for each core, and {has}"
    if bound < cores and subject.target:
        return (
            "core-parallel-below-cores",
            f"{have} bound {bound}, one for each core, and {has}, which libtpu insists on",
        )
    return None


def _error(subject: Subject, name: str, message: str, about: str) -> Diagnostic:
    """With what the passes would do about it."""
    advice = next((s.cores.advice for s in subject.summaries if s.cores and s.cores.used is None), "")
    if name == "core-count-placeholder":
        advice = "make the bound the number of cores, and loop over the symbolic size in a dimension of its own"
    return subject.say(name, Severity.ERROR, message, about, notes=[note(subject.ways.done(advice))] if advice else ())
