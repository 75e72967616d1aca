"""A kernel's source locations, which JAX ships apart from its body since libtpu 0.0.50.

They are MLIR bytecode of an empty module whose attribute `tpu.locs` lists one location for each op and block argument
in walk order: an op, then the arguments of all its blocks, then the ops inside. jaxlib writes that list
(`tpu.private_unzip_debug_locations`) and has no inverse; `attach` is it.
"""

from __future__ import annotations

from typing import cast

from jaxlib.mlir import ir
from jaxlib.mosaic.python import tpu

from mosaic_grid.ir_types import Argument

LOCATIONS = "tpu.locs"


class LocationsError(ValueError):
    """A list of locations that does not belong to the kernel it came with."""


def attach(kernel: ir.Operation, debug_locations: bytes) -> None:
    """Puts the listed locations back on the ops and block arguments of `kernel`.

    Raises `LocationsError` where the list is not one location for each of them.
    """
    module = ir.Module.parse(debug_locations, context=kernel.context)
    attributes = module.operation.attributes
    if LOCATIONS not in attributes or not isinstance(listed := attributes[LOCATIONS], ir.ArrayAttr):
        raise LocationsError(f"debug_locations has no '{LOCATIONS}' list")
    locations = list(listed)  # once: reading an element takes as long as setting a location
    if not all(isinstance(each, ir.Location) for each in locations):
        raise LocationsError(f"debug_locations has something else than locations in its '{LOCATIONS}' list")
    places = _places(kernel)
    if len(locations) != len(places):
        compared = "fewer" if len(locations) < len(places) else "more"
        raise LocationsError(f"debug_locations lists {compared} locations than the kernel has ops and arguments")
    # see `context` on why they are locations
    for place, location in zip(places, cast(list[ir.Location], locations), strict=True):
        if isinstance(place, ir.Operation):
            place.location = location
        else:
            place.set_location(location)


def _places(kernel: ir.Operation) -> list[ir.Operation | Argument]:
    """Everything in a kernel that has a location, in walk order."""
    places: list[ir.Operation | Argument] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        places.append(op)
        for region in op.regions:
            for block in region.blocks:
                places.extend(block.arguments)
        return ir.WalkResult.ADVANCE

    kernel.walk(visit, ir.WalkOrder.PRE_ORDER)
    return places


def detach(kernel: ir.Operation) -> bytes:
    """Takes all locations off `kernel` and returns them as `attach` wants them."""
    return tpu.private_unzip_debug_locations(kernel)
