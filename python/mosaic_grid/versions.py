"""What `--version` says: our version, jaxlib's, and the serialization version of kernels that this jaxlib writes."""

from __future__ import annotations

import jaxlib.version
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _tpu_ext
from jaxlib.mlir.passmanager import PassManager

import mosaic_grid


def versions() -> str:
    """One line for people; the last number is what `mosaic-serde` gives a kernel when none is asked for."""
    newest = serialization_version()
    return f"mosaic-grid {mosaic_grid.__version__}, jaxlib {jaxlib.version.__version__}, stable_mosaic version {newest}"


def serialization_version() -> int:
    """Read off an empty kernel, in a context with no more than it takes."""
    with ir.Context() as context:
        _tpu_ext.register_dialect(context)
        context.allow_unregistered_dialects = True
        module = ir.Module.parse("module {}").operation
        PassManager.parse("builtin.module(mosaic-serde{serialize=true})").run(module)
        return ir.IntegerAttr(module.attributes["stable_mosaic.version"]).value
