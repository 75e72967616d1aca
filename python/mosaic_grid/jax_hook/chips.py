"""The chip that a program is lowered for."""

from __future__ import annotations

from typing import Any

from jax._src import mesh

from mosaic_grid.errors import UserError
from mosaic_grid.targets import Target, parse_target


def chip_of(axis_context: Any) -> Target | None:
    """What the devices of a lowering are: real ones, those of a topology, or those that an abstract mesh describes.

    `None` where none of them is a TPU, as when a CPU-only machine lowers for a TPU that it doesn't name.
    """
    devices = getattr(axis_context, "device_assignment", None) or ()
    outer = getattr(axis_context, "abstract_mesh", None)
    described = [*devices[:1], getattr(outer, "abstract_device", None), mesh.get_abstract_mesh().abstract_device]
    for device in described:
        if device is not None and device.platform == "tpu":
            return _target(device.device_kind, device.num_cores)
    return None


def _target(kind: str, cores: int) -> Target | None:
    try:
        return parse_target(f"{kind}:{cores}")
    except UserError:
        return None
