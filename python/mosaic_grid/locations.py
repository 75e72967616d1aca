"""A kernel's source locations, which JAX ships apart from its body since libtpu 0.0.50.

They are MLIR bytecode of an empty module whose attribute `tpu.locs` lists one location for each op and block argument in
walk order: an op, then the arguments of all its blocks, then the ops inside. jaxlib writes that list
(`tpu.private_unzip_debug_locations`) and has no inverse; `attach` is it.
"""

from __future__ import annotations

from typing import cast

from jaxlib.mlir import ir
from jaxlib.mosaic.python import tpu

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
    if not all(isinstance(each, ir.Location) for each in listed):
        raise LocationsError(f"debug_locations has something else than locations in its '{LOCATIONS}' list")
    locations = iter(cast(list[ir.Location], list(listed)))  # see `context` on why they are locations

    def visit(op: ir.Operation) -> ir.WalkResult:
        op.location = next(locations)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    argument.set_location(next(locations))
        return ir.WalkResult.ADVANCE

    try:
        kernel.walk(visit, ir.WalkOrder.PRE_ORDER)
    except StopIteration:
        raise LocationsError("debug_locations lists fewer locations than the kernel has ops and arguments") from None
    if next(locations, None) is not None:
        raise LocationsError("debug_locations lists more locations than the kernel has ops and arguments")


def detach(kernel: ir.Operation) -> bytes:
    """Takes all locations off `kernel` and returns them as `attach` wants them."""
    return tpu.private_unzip_debug_locations(kernel)
