"""One small program in every container, for the tests of `dump`: JAX lowers it, so it is what users have."""

from __future__ import annotations

import base64
import functools
import io
import struct
from typing import Any

from jaxlib.mlir import ir

from mosaic_grid import backend_config
from mosaic_grid.context import create_context
from mosaic_grid.program import custom_calls


@functools.cache
def lowered() -> Any:
    """A launch of the kernel `double` on a grid (n, 2), lowered for TPU."""
    import jax

    return jax.jit(_double()).trace(*_avals()).lower(lowering_platforms=("tpu",))


@functools.cache
def text() -> str:
    """The StableHLO text, with its kernel packed."""
    source: str = lowered().as_text(debug_info=True)
    return source


@functools.cache
def bytecode() -> bytes:
    """The same as MLIR bytecode."""
    buffer = io.BytesIO()
    ir.Module.parse(text(), context=create_context()).operation.write_bytecode(buffer)
    return buffer.getvalue()


@functools.cache
def portable() -> bytes:
    """What `jax.export` serializes: a StableHLO portable artifact."""
    import jax

    artifact: bytes = jax.export.export(jax.jit(_double()), platforms=["tpu"])(*_avals()).mlir_module_serialized
    return artifact


@functools.cache
def exported() -> bytes:
    """A flatbuffer whose root table is laid out as JAX's, with nothing in it but a version and the module.

    Written by hand because JAX needs the package `flatbuffers` for it.
    """
    module = portable()
    fields = [0] * 14
    fields[0], fields[13] = 4, 8  # offsets in the table of the version (vtable offset 4) and the module (30)
    vtable = struct.pack("<HH14H", 4 + 28, 12, *fields)
    start = 4 + len(vtable)
    table = struct.pack("<iHHI", len(vtable), 12, 0, 4)
    return struct.pack("<I", start) + vtable + table + struct.pack("<I", len(module)) + module


@functools.cache
def hlo() -> str:
    """The program as XLA gets it, before it is compiled."""
    source: str = lowered().as_text(dialect="hlo")
    return source


@functools.cache
def body() -> bytes:
    """The kernel's bytecode, in the `stable_mosaic` form."""
    module = ir.Module.parse(text(), context=create_context())
    config = ir.StringAttr(custom_calls(module.operation)[0].attributes["backend_config"]).value
    return backend_config.split(config)[1].body


def hlo_of(config: str, metadata: str = "") -> str:
    """HLO text with one launch of a kernel: `config` is the literal after `backend_config=`."""
    return (
        "HloModule jit_f, entry_computation_layout={(f32[8]{0})->f32[8]{0}}\n\n"
        "ENTRY %main (x: f32[8]) -> f32[8] {\n"
        "  %x = f32[8]{0:T(128)} parameter(0), sharding={replicated}\n"
        '  ROOT %call.1 = f32[8]{0} custom-call(%x, /*index=1*/%x), custom_call_target="tpu_custom_call", '
        f"metadata={{{metadata}}}, backend_config={config}\n"
        "}\n"
    )


def hlo_config(separator: str = ": ") -> str:
    """A `backend_config` with the kernel's body."""
    encoded = base64.b64encode(body()).decode("ascii")
    return f'{{"custom_call_config"{separator}{{"body"{separator}"{encoded}"}}}}'


def _double() -> Any:
    import jax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    shape: Any = jax.ShapeDtypeStruct

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * 2.0

    def f(n: Any, x: Any) -> Any:
        spec = pl.BlockSpec((8, 128), lambda i, j: (i, j))
        params = pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary"))
        out = shape(x.shape, x.dtype)
        launch = pl.pallas_call(
            kernel, out, grid=(n, 2), in_specs=[spec], out_specs=spec, name="double", compiler_params=params
        )
        return launch(x)

    return f


def _avals() -> tuple[Any, Any]:
    import jax
    import jax.numpy as jnp

    shape: Any = jax.ShapeDtypeStruct
    return shape((), jnp.int32), shape((1024, 256), jnp.float32)
