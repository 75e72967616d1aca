"""The kernels that ship with JAX, under `jax.experimental.pallas.ops.tpu`, at small and realistic shapes.

`KERNELS` maps a name to a function that lowers one for TPU, on any machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas.ops.tpu import example_kernel, flash_attention, matmul
from jax.experimental.pallas.ops.tpu.all_gather import all_gather
from jax.experimental.pallas.ops.tpu.megablox import ops as megablox_ops
from jax.experimental.pallas.ops.tpu.megablox.gmm import gmm, tgmm
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention, quantization_utils
from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention
from jax.experimental.pallas.ops.tpu.random import philox, threefry
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

Function = Callable[..., Any]

F32, BF16, I32 = jnp.float32, jnp.bfloat16, jnp.int32


def array(shape: tuple[int, ...], dtype: Any = F32) -> Any:
    """What JAX lowers a function for in place of an array."""
    return jax.ShapeDtypeStruct(shape, dtype)


def lower(function: Function, *arguments: Any) -> bytes:
    """StableHLO text with the locations of the outer program, as JAX lowers it for TPU."""
    lowered = jax.jit(function).trace(*arguments).lower(lowering_platforms=("tpu",))
    return str(lowered.as_text(debug_info=True)).encode()


def lower_for(device: str, cores: int, function: Function, *arguments: Any) -> bytes:
    """The same for a kernel that asks what TPU it is for: the name of a device kind, such as `TPU v5`."""
    from jax._src.mesh import AbstractDevice  # there is no public way to say it
    from jax.sharding import AbstractMesh, AxisType, use_abstract_mesh

    chip = AbstractDevice(device, cores, "tpu")
    with use_abstract_mesh(AbstractMesh((1,), ("d",), axis_types=(AxisType.Auto,), abstract_device=chip)):
        return lower(function, *arguments)


def gradient(function: Function) -> Function:
    """The gradient of the sum of a function's results, with respect to its first three arguments."""
    return jax.grad(lambda *arguments: function(*arguments).astype(F32).sum(), argnums=(0, 1, 2))


HEADS = array((1, 2, 512, 128))
ROWS, KEYS = array((256, 128)), array((1024, 128))


def flash(q: Any, k: Any, v: Any, bias: Any = None, q_ids: Any = None, kv_ids: Any = None, *, block: int = 256) -> Any:
    """Flash attention, causal; with segments where their ids are given."""
    blocks = flash_attention.BlockSizes(
        block_q=block, block_k_major=block, block_k=128, block_b=1, block_q_major_dkv=block, block_k_major_dkv=block,
        block_k_dkv=128, block_q_dkv=128, block_k_major_dq=block, block_k_dq=128, block_q_dq=128,
    )  # fmt: skip
    ids = None if q_ids is None else flash_attention.SegmentIds(q_ids, kv_ids)
    return flash_attention.flash_attention(q, k, v, bias, ids, causal=True, block_sizes=blocks)


def flash_single_step(q: Any, k: Any, v: Any) -> Any:
    """Flash attention whose keys fit one step, which is a kernel of its own."""
    blocks = flash_attention.BlockSizes(block_q=256, block_k_major=512, block_k=512, block_b=1)
    return flash_attention.flash_attention(q, k, v, block_sizes=blocks)


def splash_attention(mask: Any, *, mqa: bool = False, fused: bool = False, segments: bool = False) -> Function:
    """Splash attention of 2 heads over a mask of (512, 512); `fused` chooses how the gradient is made."""
    blocks = splash.BlockSizes(
        block_q=256, block_kv=256, block_kv_compute=256, block_q_dkv=256, block_kv_dkv=256, block_kv_dkv_compute=256,
        block_q_dq=None if fused else 256, block_kv_dq=None if fused else 256, use_fused_bwd_kernel=fused,
    )  # fmt: skip
    make = splash.make_splash_mqa if mqa else splash.make_splash_mha
    heads = mask if isinstance(mask, jax.Array) else masks.MultiHeadMask([mask] * 2)
    kernel = make(heads, block_sizes=blocks, head_shards=1, q_seq_shards=1)

    def attend(q: Any, k: Any, v: Any) -> Any:
        ids = jnp.zeros(512, I32)
        return kernel(q, k, v, splash.SegmentIds(ids, ids)) if segments else kernel(q, k, v)

    return attend


def paged(**options: Any) -> Function:
    """Paged attention of 4 sequences over pages of 16 keys."""

    def attend(q: Any, k: Any, v: Any, lengths: Any, pages: Any) -> Any:
        return paged_attention(q, k, v, lengths, pages, pages_per_compute_block=4, **options)

    return attend


def paged_int8(q: Any, k: Any, v: Any, lengths: Any, pages: Any) -> Any:
    """The same with keys and values in 8 bits."""
    quantized = [quantization_utils.quantize_to_int8(each) for each in (k, v)]
    return paged_attention(q, *quantized, lengths, pages, pages_per_compute_block=4)


def ragged(**options: Any) -> Function:
    """Paged attention of ragged queries: 8 heads, 4 of keys and values."""

    def attend(q: Any, pages: Any, lengths: Any, indices: Any, ends: Any, count: Any) -> Any:
        return ragged_paged_attention(
            q, pages, lengths, indices, ends, count, num_kv_pages_per_block=8, num_queries_per_block=32, **options
        )

    return attend


def gathered() -> Function:
    """All-gather between two devices. It is lowered for devices that aren't there."""
    from jax.sharding import AbstractMesh, AxisType

    mesh: Any = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
    return lambda x: all_gather(x, mesh=mesh, axis_name="x", memory_space=pltpu.VMEM)


SPLASH = (array((2, 512, 128)),) * 3
SPLASH_MQA = (array((2, 512, 128)), array((512, 128)), array((512, 128)))
PAGED = (array((4, 8, 128), BF16), *(array((8, 64, 16, 128), BF16),) * 2, array((4,), I32), array((4, 16), I32))
RAGGED = (
    array((64, 8, 128), BF16), array((64, 16, 8, 128), BF16), array((8,), I32), array((8, 16), I32), array((9,), I32),
    array((1,), I32),
)  # fmt: skip
GMM = (array((512, 256), BF16), array((4, 256, 256), BF16), array((4,), I32))
TGMM = (array((256, 512), BF16), array((512, 256), BF16), array((4,), I32))
CAUSAL = masks.CausalMask((512, 512))
LOCAL = masks.LocalMask((512, 512), window_size=(128, 128), offset=0)
FULL = masks.FullMask((512, 512))

KERNELS: dict[str, Callable[[], bytes]] = {
    "example_double": lambda: lower(example_kernel.double, array((256, 256))),
    "matmul_bf16": lambda: lower(
        lambda x, y: matmul.matmul(x, y, block_shape=(256, 256)), array((512, 512), BF16), array((512, 512), BF16)
    ),
    "matmul_int8": lambda: lower(
        lambda x, y: matmul.matmul(x, y, block_shape=(256, 256), out_dtype=I32),
        array((512, 512), jnp.int8),
        array((512, 512), jnp.int8),
    ),
    "all_gather": lambda: lower(gathered(), array((16, 128))),
    "philox": lambda: lower(lambda key: philox.philox_random_bits(key, 32, (512, 512)), array((2,), jnp.uint32)),
    "philox_padded": lambda: lower(lambda key: philox.philox_random_bits(key, 32, (300, 700)), array((2,), jnp.uint32)),
    "threefry": lambda: lower(
        lambda key: threefry.plthreefry_random_bits(key, 32, (512, 512)), array((2,), jnp.uint32)
    ),
    "flash": lambda: lower(flash, HEADS, HEADS, HEADS),
    "flash_bias_segments": lambda: lower(
        flash, HEADS, HEADS, HEADS, array((1, 2, 512, 512)), array((1, 512), I32), array((1, 512), I32)
    ),
    "flash_single_step": lambda: lower(flash_single_step, HEADS, HEADS, HEADS),
    "flash_gradient": lambda: lower(gradient(flash), HEADS, HEADS, HEADS),
    "splash_mha_causal": lambda: lower(splash_attention(CAUSAL), *SPLASH),
    "splash_mha_local_segments": lambda: lower(splash_attention(LOCAL, segments=True), *SPLASH),
    "splash_mha_full": lambda: lower(splash_attention(FULL), *SPLASH),
    "splash_mha_gradient": lambda: lower(gradient(splash_attention(CAUSAL)), *SPLASH),
    "splash_mha_fused_gradient": lambda: lower(gradient(splash_attention(CAUSAL, fused=True)), *SPLASH),
    "splash_mqa_causal": lambda: lower(splash_attention(CAUSAL, mqa=True), *SPLASH_MQA),
    "splash_numpy_mask": lambda: lower(splash_attention(masks.NumpyMask(np.tri(512, 512, dtype=np.bool_))), *SPLASH),
    "splash_dynamic_mask": lambda: lower(splash_attention(jnp.tri(512, dtype=bool)[None].repeat(2, 0)), *SPLASH),
    "splash_vmapped": lambda: lower(jax.vmap(splash_attention(CAUSAL)), *(array((2, *each.shape)) for each in SPLASH)),
    "paged": lambda: lower(paged(), *PAGED),
    "paged_not_inline": lambda: lower(paged(inline_seq_dim=False), *PAGED),
    "paged_megacore_heads": lambda: lower(paged(megacore_mode="kv_head"), *PAGED),
    "paged_megacore_batch": lambda: lower(paged(megacore_mode="batch"), *PAGED),
    "paged_int8": lambda: lower(paged_int8, *PAGED),
    "ragged_paged": lambda: lower_for("TPU v5", 2, ragged(), *RAGGED),
    "ragged_paged_window": lambda: lower_for("TPU v5", 2, ragged(sliding_window=64, soft_cap=30.0), *RAGGED),
    "gmm": lambda: lower(gmm, *GMM),
    "gmm_transposed_offset": lambda: lower(
        lambda lhs, rhs, sizes, offset: gmm(lhs, rhs, sizes, group_offset=offset, transpose_rhs=True),
        *GMM,
        array((), I32),
    ),
    "gmm_existing_out": lambda: lower(
        lambda lhs, rhs, sizes, out: gmm(lhs, rhs, sizes, existing_out=out), *GMM, array((512, 256))
    ),
    "tgmm": lambda: lower(tgmm, *TGMM),
    "gmm_gradient": lambda: lower(
        jax.grad(lambda lhs, rhs, sizes: megablox_ops.gmm(lhs, rhs, sizes).astype(F32).sum(), argnums=(0, 1)), *GMM
    ),
}
"""Every kernel by name, with what lowers it: StableHLO text."""
