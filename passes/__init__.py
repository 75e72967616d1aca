"""The passes, a line each; the file of the pass `unpack-kernels` is `unpack_kernels.py`."""

from __future__ import annotations

from mosaic_grid.passbase import Pass
from mosaic_grid.passes.batch_grid import BatchGrid
from mosaic_grid.passes.certify import Certify
from mosaic_grid.passes.check_grid import CheckGrid
from mosaic_grid.passes.infer_parallel import InferParallel
from mosaic_grid.passes.insert_contract_checks import InsertContractChecks
from mosaic_grid.passes.lower_to_cpu import LowerToCpu
from mosaic_grid.passes.pack_kernels import PackKernels
from mosaic_grid.passes.partition_cores import PartitionCores
from mosaic_grid.passes.resolve_grid import ResolveGrid
from mosaic_grid.passes.specialize_grid import SpecializeGrid
from mosaic_grid.passes.unpack_kernels import UnpackKernels

_LISTED = (
    UnpackKernels,
    PackKernels,
    ResolveGrid,
    CheckGrid,
    Certify,
    BatchGrid,
    InferParallel,
    PartitionCores,
    SpecializeGrid,
    InsertContractChecks,
    LowerToCpu,
)

PASSES: dict[str, type[Pass]] = {cls.name: cls for cls in _LISTED}
