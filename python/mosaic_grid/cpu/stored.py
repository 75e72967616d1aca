"""In what form a root's contents are kept between the operations that use them.

XLA's CPU backend can't move numbers of few bits that it has no arithmetic for: to update a slice of them it converts
the whole tensor, and back. They are kept as integers of 8 bits, and converted where they are read and written.
"""

from __future__ import annotations

from jaxlib.mlir import ir

from mosaic_grid.cpu import build
from mosaic_grid.cpu.bits import width_of
from mosaic_grid.ir_types import Value


def stored_element(element: ir.Type) -> ir.Type:
    """The type in which numbers of a type are kept."""
    width = width_of(element)
    moved = width == 4 or (width == 8 and build.is_float(element))
    return ir.IntegerType.get_signless(8) if moved else element


def stored(value: Value) -> Value:
    """Numbers in the form in which they are kept."""
    element = build.element_of(value)
    kept = stored_element(element)
    if kept == element:
        return value
    return build.convert(build.bitcast(value, ir.IntegerType.get_signless(width_of(element))), kept)


def numbers(value: Value, element: ir.Type) -> Value:
    """The numbers of a type that are kept as `value`."""
    if stored_element(element) == element:
        return value
    return build.bitcast(build.convert(value, ir.IntegerType.get_signless(width_of(element))), element)
