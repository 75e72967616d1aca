"""What the tool says about a program: MLIR's voice, a stable name, a place in the user's file, notes, the next step."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from typing import cast

from jaxlib.mlir import ir

from mosaic_grid.catalogue import CATALOGUE
from mosaic_grid.errors import Place
from mosaic_grid.location_text import file_of, text_of_name
from mosaic_grid.severity import Severity

_TWICE = re.compile(r"(?:^|/)([^/]+)/\1$")

__all__ = ["Diagnostic", "Severity", "first_place", "note", "place_of"]


@dataclasses.dataclass(frozen=True)
class Diagnostic:
    """One message: lower case, no full stop. `name` is its kebab-case name in the catalogue, empty for notes.

    `kernel` is the name of the kernel that it is about, `about` what in it, in words that hold as long as the finding
    does ("dimension 0"): both are empty where there is none. Raises `ValueError` for a name that is not in it.
    """

    severity: Severity
    message: str
    place: Place | None = None
    name: str = ""
    notes: tuple[Diagnostic, ...] = ()
    kernel: str = ""
    about: str = ""

    def __post_init__(self) -> None:
        """Whatever is said under a name has to be explained under it."""
        if self.name and self.name not in CATALOGUE:
            raise ValueError(f"the diagnostic '{self.name}' is not in the catalogue")

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
    read `name(callsite(callee at caller))`, the innermost frame first. Pallas lowers like operations once and inlines
    that, under a name with the operation's twice (`get/get`): then the callee is whichever of them came first.
    """
    match ir.Location.from_attr(location.attr):  # what an `MLIRError` hands out is of the base class
        case ir.FileLineColLoc() as position:
            return Place(file_of(position), position.start_line, position.start_col)
        case ir.NameLoc() as named:
            child = named.child_loc
            if isinstance(child, ir.CallSiteLoc) and _TWICE.search(text_of_name(named)):
                return place_of(child.caller) or place_of(child)
            return place_of(child)
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
