"""`unpack-kernels`: kernels out of the `backend_config` strings, as nested modules."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from jaxlib.mlir import ir

from mosaic_grid.passbase import Kind, Pass
from mosaic_grid.session import Session
from mosaic_grid.unpack import unpack


@dataclasses.dataclass(frozen=True)
class UnpackKernels(Pass):
    """Takes each Mosaic kernel out of its launch and puts it into the program as a module of its own.

    A launch then names its kernel in `mosaic.kernel`; kernels that are the same to the last location are stored once.
    Source locations, which JAX ships apart from the kernel, stand on its ops again. `pack-kernels` is the exact
    inverse.

    ```mlir
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {backend_config = "{...\\"body\\": \\"TUzvUgFN...\\"}"} : ...
    ```

    becomes

    ```mlir
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @double, backend_config = "..."} : ...
    module @double attributes {stable_mosaic.version = 18 : i64} {
      func.func @double(...) attributes {iteration_bounds = array<i64: -9223372036854775808, 4>, ...} { ... }
    }
    ```
    """

    name: ClassVar[str] = "unpack-kernels"
    kind: ClassVar[Kind] = "form"

    def run(self, program: ir.Operation, session: Session) -> None:
        """Unpacks every kernel, in place."""
        unpack(program)
