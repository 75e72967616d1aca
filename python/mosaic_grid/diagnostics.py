"""What the tool says about a program: MLIR's voice, a stable name, a place in the user's file, notes, the next step."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable
from typing import cast

from jaxlib.mlir import ir

from mosaic_grid.errors import Place
from mosaic_grid.location_text import file_of


class Severity(enum.Enum):
    """MLIR's four severities; the value is the word that is printed."""

    ERROR = "error"
    WARNING = "warning"
    REMARK = "remark"
    NOTE = "note"


@dataclasses.dataclass(frozen=True)
class Diagnostic:
    """One message: lower case, no full stop. `name` is its kebab-case name in the catalogue, empty for notes."""

    severity: Severity
    message: str
    place: Place | None = None
    name: str = ""
    notes: tuple[Diagnostic, ...] = ()

    def lines(self) -> Iterable[str]:
        """The message and its notes as gcc and MLIR print them: `file:line:column: severity: message [name]`."""
        where = f"{self.place}: " if self.place else ""
        tag = f" [{self.name}]" if self.name else ""
        yield f"{where}{self.severity.value}: {self.message}{tag}"
        for note in self.notes:
            yield from note.lines()


def note(message: str, place: Place | None = None) -> Diagnostic:
    """A note to attach to a diagnostic."""
    return Diagnostic(Severity.NOTE, message, place)


def place_of(location: ir.Location) -> Place | None:
    """The innermost position a person wrote, `None` where there is no file at all.

    It looks through names, into the callee of a call site, and takes the first placed part of a fusion: JAX's locations
    read `name(callsite(callee at caller))`, the innermost frame first.
    """
    match ir.Location.from_attr(location.attr):  # what an `MLIRError` hands out is of the base class
        case ir.FileLineColLoc() as position:
            return Place(file_of(position), position.start_line, position.start_col)
        case ir.NameLoc() as named:
            return place_of(named.child_loc)
        case ir.CallSiteLoc() as call:
            return place_of(call.callee) or place_of(call.caller)
        case ir.FusedLoc() as fused:
            parts = cast(list[ir.Location], fused.locations)
            return next((place for part in parts if (place := place_of(part))), None)
    return None


def first_place(op: ir.Operation) -> Place | None:
    """Where the first op inside stands that has a place, in textual order; JAX gives a kernel's function none."""
    found: list[Place] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        place = place_of(inner.location)
        if place is None:
            return ir.WalkResult.ADVANCE
        found.append(place)
        return ir.WalkResult.INTERRUPT

    op.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found[0] if found else None
