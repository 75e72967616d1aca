"""`zero-trip-grid`: a dimension without a step, so that outputs are never written."""

from __future__ import annotations

import math
from collections.abc import Iterator

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from mosaic_grid import symbolic as sym
from mosaic_grid.checks.subject import Subject
from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.program import Launch

NAME = "zero-trip-grid"
_ALIASES = "output_operand_aliases"


def zero_trip(subject: Subject) -> Iterator[Diagnostic]:
    """An error where an output is left unwritten, a warning where nothing launches the kernel and nobody can tell."""
    lost = {k: None for launch in subject.launches for k in _unwritten(launch)}
    if subject.launches and not lost:
        return
    outputs = f"output{'s' if len(lost) > 1 else ''} {', '.join(map(str, lost))}" if lost else "outputs"
    outcome = f"the kernel never runs, and {outputs} {'is' if len(lost) == 1 else 'are'} not written"
    for axis, _ in enumerate(subject.kernel.grid):
        steps = subject.bounds_of(axis)
        about = f"dimension {axis}"
        if steps.hi <= 0:
            severity = Severity.ERROR if lost else Severity.WARNING
            message = f"grid dimension {axis} has bound {_number(steps.lo, steps.hi)}: {outcome}"
            advice = "round up with pl.cdiv where the bound is a quotient, or return early where there is nothing to do"
            yield subject.say(NAME, severity, message, about, notes=[note(advice)])
        elif steps.lo <= 0 and subject.strict:
            message = f"the bound of grid dimension {axis} may be {max(steps.lo, 0)}: then {outcome}"
            known = f"the bound is known to be in {steps}{_overflow(subject, axis)}"
            advice = f"{known}; give it a lower bound of 1, as jnp.maximum(n, 1) does"
            yield subject.say(NAME, Severity.WARNING, message, about, notes=[note(advice)])


def _overflow(subject: Subject, axis: int) -> str:
    """Which part of the bound may be anything because it overflows."""
    bounds = [subject.scalars.evaluate(launch.bounds[axis]) for launch in subject.launches if axis in launch.bounds]
    wraps = [part for bound in bounds for part in sym.wraps_in(bound)]
    return f", as {wraps[0].inner} may overflow {wraps[0].bits} bits" if wraps else ""


def _number(lo: int, hi: int) -> str:
    return str(lo) if lo == hi else f"{hi} at most"


def _unwritten(launch: Launch) -> Iterator[int]:
    """The outputs that have elements, and aren't written over an input."""
    attributes = launch.op.attributes
    aliases = list(ir.ArrayAttr(attributes[_ALIASES])) if _ALIASES in attributes else []
    kept = {next(iter(stablehlo.OutputOperandAlias(each).output_tuple_indices), 0) for each in aliases}
    for number, result in enumerate(launch.op.results):
        kind = result.type
        empty = isinstance(kind, ir.RankedTensorType) and kind.has_static_shape and not math.prod(kind.shape)
        if number not in kept and not empty:
            yield number
