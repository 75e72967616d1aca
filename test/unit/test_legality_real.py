"""Which dimensions of kernels that JAX ships may be shared between cores, and which not."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental.pallas.ops.tpu import flash_attention, matmul
from jax.experimental.pallas.ops.tpu.megablox.gmm import gmm, tgmm
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel, splash_attention_mask
from jaxlib.mlir import ir

from mosaic_grid import legality
from mosaic_grid.context import create_context
from mosaic_grid.program import Program
from mosaic_grid.unpack import unpack


def array(*shape: int, dtype: Any = jnp.float32) -> Any:
    """An abstract array."""
    return jax.eval_shape(lambda: jnp.zeros(shape, dtype))


def splash(q: jax.Array, k: jax.Array, v: jax.Array) -> Any:
    """Causal splash attention."""
    mask = splash_attention_mask.MultiHeadMask([splash_attention_mask.CausalMask((512, 512)) for _ in range(2)])
    kernel = splash_attention_kernel.make_splash_mha_single_device(mask)
    return kernel(q, k, v)


QKV = (array(2, 2, 512, 128),) * 3
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "flash": (functools.partial(flash_attention.flash_attention, causal=True), QKV),
    "matmul": (
        functools.partial(matmul.matmul, block_shape=(128, 128), block_k=128),
        (array(256, 384), array(384, 256)),
    ),
    "gmm": (gmm, (array(256, 256), array(4, 256, 256), array(4, dtype=jnp.int32))),
    "tgmm": (tgmm, (array(256, 256), array(256, 256), array(4, dtype=jnp.int32))),
    "splash": (splash, (array(2, 512, 128),) * 3),
}


@functools.cache
def lowered(name: str) -> bytes:
    """The program as JAX lowers it for TPU, as bytecode."""
    function, arguments = PROGRAMS[name]
    module = jax.jit(function).trace(*arguments).lower(lowering_platforms=("tpu",)).compiler_ir()
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def judged(name: str, axis: int) -> legality.Judgement:
    """The judgement on a dimension of the program's first kernel; its text can be read after its context is gone."""
    with create_context():
        module = ir.Module.parse(lowered(name))
        unpack(module.operation)
        program = Program(module.operation)
        kernel = next(iter(program.kernels.values()))
        launches = [launch for launch in program.launches if launch.kernel.symbol == kernel.symbol]
        return legality.judge(kernel, (axis,), launches)


@pytest.mark.parametrize(
    ("name", "axis"),
    [("flash", 0), ("flash", 1), ("flash", 2), ("matmul", 0), ("matmul", 1), ("gmm", 0), ("tgmm", 0), ("splash", 0)],
)
def test_parallel_dimensions_are_proved(name: str, axis: int) -> None:
    """Nothing speaks against what these kernels declare parallel, and nothing has to be believed."""
    assert judged(name, axis) == legality.Judgement()


@pytest.mark.parametrize(
    ("name", "axis", "named"),
    [
        ("flash", 3, "carried-scratch"),
        ("flash", 3, "parallel-race"),
        ("matmul", 2, "carried-scratch"),
        ("matmul", 2, "parallel-race"),
        ("gmm", 1, "carried-scratch"),
        ("gmm", 1, "parallel-race"),
        ("tgmm", 2, "carried-scratch"),
        ("splash", 2, "carried-scratch"),
    ],
)
def test_other_dimensions_are_refused(name: str, axis: int, named: str) -> None:
    """Reductions, and tiles that groups share, must not be split."""
    assert named in [objection.name for objection in judged(name, axis).objections]


def test_reduction_is_refused_for_certain() -> None:
    """The reduction of a matmul is a race whatever the arguments are."""
    assert [objection.certain for objection in judged("matmul", 2).objections] == [True, True]
