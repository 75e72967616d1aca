"""The passes, a line each; the file of the pass `unpack-kernels` is `unpack_kernels.py`."""

from __future__ import annotations

from mosaic_grid.passbase import Pass
from mosaic_grid.passes.pack_kernels import PackKernels
from mosaic_grid.passes.partition_cores import PartitionCores
from mosaic_grid.passes.resolve_grid import ResolveGrid
from mosaic_grid.passes.unpack_kernels import UnpackKernels

PASSES: dict[str, type[Pass]] = {cls.name: cls for cls in (UnpackKernels, PackKernels, ResolveGrid, PartitionCores)}
