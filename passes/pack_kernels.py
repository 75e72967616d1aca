"""`pack-kernels`: kernels back into the `backend_config` strings, as JAX and libtpu take them."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from jaxlib.mlir import ir

from mosaic_grid.passbase import Kind, Pass
from mosaic_grid.session import Session
from mosaic_grid.unpack import pack


@dataclasses.dataclass(frozen=True)
class PackKernels(Pass):
    """Puts each kernel back into the launches that name it, in the serialization version it came in.

    The exact inverse of `unpack-kernels`: a program that is unpacked and packed again is the same to the last
    character. A bare kernel becomes its portable `stable_mosaic` form. Attributes that only passes read (`mosaic.*`)
    are dropped.

    ```mlir
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @double, backend_config = "..."} : ...
    ```

    becomes

    ```mlir
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {backend_config = "{...\\"body\\": \\"TUzvUgFN...\\"}"} : ...
    ```
    """

    name: ClassVar[str] = "pack-kernels"
    kind: ClassVar[Kind] = "form"

    def run(self, program: ir.Operation, session: Session) -> None:
        """Packs every kernel that a launch names, in place."""
        pack(program)
