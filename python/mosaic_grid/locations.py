"""A kernel's source locations, which JAX ships apart from its body since libtpu 0.0.50.

They are MLIR bytecode of an empty module whose attribute `tpu.locs` lists one location for each op and block argument
in walk order: an op, then the arguments of all its blocks, then the ops inside. A newer jaxlib writes that list
(`tpu.private_unzip_debug_locations`) and has no inverse; `attach` is it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import cast

from jaxlib.mlir import ir
from jaxlib.mosaic.python import tpu

from mosaic_grid.write import write_bytecode

LOCATIONS = "tpu.locs"


class LocationsError(ValueError):
    """A list of locations that does not belong to the kernel it came with."""


def attach(kernel: ir.Operation, debug_locations: bytes) -> None:
    """Puts the listed locations back on the ops and block arguments of `kernel`.

    Raises `LocationsError` where the list is not one location for each of them. The kernel is of no use then: some of
    them may be in place.
    """
    module = ir.Module.parse(debug_locations, context=kernel.context)
    attributes = module.operation.attributes
    if LOCATIONS not in attributes or not isinstance(listed := attributes[LOCATIONS], ir.ArrayAttr):
        raise LocationsError(f"debug_locations has no '{LOCATIONS}' list")
    locations = list(listed)  # once: reading an element takes as long as setting a location
    if not all(issubclass(kind, ir.Location) for kind in set(map(type, locations))):
        raise LocationsError(f"debug_locations has something else than locations in its '{LOCATIONS}' list")
    # see `context` on why they are locations
    unused = iter(cast(list[ir.Location], locations))
    if not _hand_out(kernel, unused):
        raise LocationsError("debug_locations lists fewer locations than the kernel has ops and arguments")
    if next(unused, None) is not None:
        raise LocationsError("debug_locations lists more locations than the kernel has ops and arguments")


def _hand_out(kernel: ir.Operation, locations: Iterator[ir.Location]) -> bool:
    """Sets locations in walk order; false where there aren't enough. A kernel may have 100,000 ops: keep it lean."""
    enough = True

    def spare() -> Iterator[ir.Location]:
        nonlocal enough
        enough = False  # an exception would not survive the walk
        while True:
            yield ir.Location.unknown(kernel.context)

    supply = itertools.chain(locations, spare())

    def visit(op: ir.Operation) -> ir.WalkResult:
        op.location = next(supply)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    argument.set_location(next(supply))
        return ir.WalkResult.ADVANCE

    kernel.walk(visit, ir.WalkOrder.PRE_ORDER)
    return enough


def detach(kernel: ir.Operation) -> bytes:
    """Takes all locations off `kernel` and returns them as `attach` wants them."""
    native: Callable[[ir.Operation], bytes] = getattr(tpu, "private_unzip_debug_locations", unzip)
    return native(kernel)


def unzip(kernel: ir.Operation) -> bytes:
    """What `detach` does, for a jaxlib that can't: 0.10 leaves locations in the body, but may get newer kernels."""
    unknown = ir.Location.unknown(kernel.context)
    found: list[ir.Attribute] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.append(op.location.attr)
        op.location = unknown
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    found.append(argument.location.attr)
                    argument.set_location(unknown)
        return ir.WalkResult.ADVANCE

    kernel.walk(visit, ir.WalkOrder.PRE_ORDER)
    with kernel.context, unknown:
        module = ir.Module.create().operation
        module.attributes[LOCATIONS] = ir.ArrayAttr.get(found)
        return write_bytecode(module)
