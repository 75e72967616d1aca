"""Which locations came with a program, and which are only the places in the dump that MLIR's parser gives its ops.

A program that is written to a file keeps the former. The latter would be of no use to its reader, and a program that
came without locations is to leave without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from jaxlib.mlir import ir

from mosaic_grid.location_text import file_of


def with_own_locations(program: ir.Operation, dump: str) -> ir.Operation | None:
    """The program without the places in `dump`, which it was read from; `None` if it has no other locations.

    The program itself is left as it is: where there is something to take away, the result is a copy.
    """
    own = foreign = False

    def look(location: ir.Location) -> None:
        nonlocal own, foreign
        if _is_own(location, dump):
            own = True
        elif not isinstance(location, ir.UnknownLoc):
            foreign = True

    _visit(program, look)
    if not own or not foreign:
        return program if own else None
    copy = program.clone(ip=False).operation
    unknown = ir.Location.unknown(program.context)
    _visit(copy, lambda location: None if _is_own(location, dump) else unknown)
    return copy


def _is_own(location: ir.Location, dump: str) -> bool:
    """Whether a location says something: a name, or a place outside of the dump."""
    match location:
        case ir.UnknownLoc():
            return False
        case ir.FileLineColLoc():
            return file_of(location) != dump
        case ir.CallSiteLoc():
            return _is_own(location.callee, dump) or _is_own(location.caller, dump)
        case ir.FusedLoc():
            return any(_is_own(part, dump) for part in cast(list[ir.Location], location.locations))
    return True


def _visit(program: ir.Operation, change: Callable[[ir.Location], ir.Location | None]) -> None:
    """Gives every op and block argument the location that `change` makes of its own, if any."""

    def visit(op: ir.Operation) -> ir.WalkResult:
        if new := change(op.location):
            op.location = new
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    if new := change(argument.location):
                        argument.set_location(new)
        return ir.WalkResult.ADVANCE

    program.walk(visit, ir.WalkOrder.PRE_ORDER)
