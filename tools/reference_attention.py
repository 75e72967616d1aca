"""Cases of the attention kernels that ship with JAX: flash and splash attention, forward and backward."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas.ops.tpu import flash_attention
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

from reference_case import BF16, F32, I32, Array, Case, Function, Tolerance, in_f32, normal, pull_back, uniform
from shipped_kernels import flash, flash_single_step

FORWARD, BACKWARD = Tolerance(3e-3, 3e-3), Tolerance(2e-2, 3e-2)
"""JAX's tests/pallas/tpu_splash_attention_kernel_test.py; of flash attention, which has no public test, the same."""
BACKWARD_BF16 = Tolerance(0.05, 0.05)
"""`test_splash_attention_custom_bwd` in the same file: of two ways to add up in bf16."""
RESIDUALS = Tolerance(1e-3, 1e-3)
"""Of the log-sum-exp, there too."""
QUERIES = 256
"""And keys, in the cases of flash and splash attention."""
HEAD = 128


def _segments(rng: np.random.Generator, *batch: int) -> Array:
    """Ids of three segments whose borders are at no block's."""
    ends = np.sort(rng.choice(np.arange(2, QUERIES - 2), 2, replace=False))
    ids = np.searchsorted(ends, np.arange(QUERIES), side="right").astype(I32)
    return np.broadcast_to(ids, (*batch, QUERIES)).copy()


def _flash_reference(*, causal: bool) -> Function:
    def attend(q: Any, k: Any, v: Any, bias: Any = None, q_ids: Any = None, kv_ids: Any = None) -> Any:
        ids = None if q_ids is None else flash_attention.SegmentIds(q_ids, kv_ids)
        return flash_attention.mha_reference(q, k, v, bias, ids, causal=causal)

    return attend


def _flash(q: Any, k: Any, v: Any, bias: Any = None, q_ids: Any = None, kv_ids: Any = None) -> Any:
    return flash(q, k, v, bias, q_ids, kv_ids, block=128)


def _flash_case(*, dtype: Any = F32, gradient: bool = False, extras: bool = False, is_slow: bool = False) -> Case:
    """Causal flash attention, with a bias and segments where `extras` says so; its gradient is that of the bias too."""
    kernel, reference, shape = _flash, in_f32(_flash_reference(causal=True)), (1, 2, QUERIES, HEAD)

    def arguments(rng: np.random.Generator) -> list[Array]:
        found = uniform(rng, *[shape] * (4 if gradient else 3), dtype=dtype)
        if extras:
            found += [*normal(rng, (1, 2, QUERIES, QUERIES)), *[_segments(rng, 1)] * 2]
        return found

    if not gradient:
        return Case(kernel, reference, arguments, (FORWARD,), is_slow=is_slow)
    count, backward = (4 if extras else 3), (BACKWARD if dtype == F32 else BACKWARD_BF16)
    return Case(pull_back(kernel, count), pull_back(reference, count), arguments, (FORWARD, backward), is_slow=is_slow)


def _flash_batched(q: Any, k: Any, v: Any) -> Any:
    blocks = flash_attention.BlockSizes(block_q=128, block_k_major=256, block_k=128, block_b=2)
    return flash_attention.flash_attention(q, k, v, sm_scale=0.125, block_sizes=blocks)


def _splash_blocks(fused: bool, layout: Any) -> Any:
    return splash.BlockSizes(
        block_q=128, block_kv=128, block_kv_compute=128, block_q_dkv=128, block_kv_dkv=128, block_kv_dkv_compute=128,
        block_q_dq=None if fused else 128, block_kv_dq=None if fused else 128, use_fused_bwd_kernel=fused,
        q_layout=layout, k_layout=layout, v_layout=layout,
    )  # fmt: skip


def _splash_case(
    *heads: Any,
    keys: int = 2,
    dtype: Any = F32,
    segments: bool = False,
    gradient: bool = False,
    fused: bool = False,
    dynamic: bool = False,
    soft_cap: float | None = None,
    sinks: bool = False,
    residuals: bool = False,
    layout: Any = splash.QKVLayout.HEAD_DIM_MINOR,
    device: tuple[str, int] | None = None,
    is_slow: bool = False,
) -> Case:
    """Splash attention with a mask for each head, `keys` heads of keys (0: one, without a dimension of its own).

    The reference is differentiated by JAX, and not by the formula that the kernel uses.
    """
    mask: Any = masks.MultiHeadMask(heads)
    if dynamic:
        mask = jnp.array(mask[:, :, :])
    make, make_reference = (
        (splash.make_splash_mha, splash.make_masked_mha_reference)
        if keys
        else (splash.make_splash_mqa, splash.make_masked_mqa_reference)
    )
    make_kernel = make(
        mask, block_sizes=_splash_blocks(fused, layout), save_residuals=residuals, attn_logits_soft_cap=soft_cap,
        head_shards=1, q_seq_shards=1,
    )  # fmt: skip
    reference = make_reference(mask)

    def call(function: Function, **options: Any) -> Function:
        def attend(q: Any, k: Any, v: Any, *rest: Any) -> Any:
            *sink, ids = [*rest, None] if not segments else rest
            pair = splash.SegmentIds(ids, ids) if segments else None
            result = function(q, k, v, pair, *sink, **options)
            return (result[0], result[1][0]) if residuals else result

        return attend

    def arguments(rng: np.random.Generator) -> list[Array]:
        key_shape = (keys, QUERIES, HEAD) if keys else (QUERIES, HEAD)
        query_shape = (len(heads), QUERIES, HEAD)
        cotangent = [query_shape] if gradient else []
        found = uniform(rng, *cotangent, query_shape, key_shape, key_shape, dtype=dtype)
        return [
            *found, *([rng.uniform(30, 40, len(heads)).astype(F32)] if sinks else []),
            *([_segments(rng)] if segments else []),
        ]  # fmt: skip

    kernel = call(make_kernel)
    expected = in_f32(call(reference, attn_logits_soft_cap=soft_cap, save_residuals=residuals))
    if not gradient:
        return Case(kernel, expected, arguments, (FORWARD, RESIDUALS), device, is_slow=is_slow)
    count = 4 if sinks else 3
    return Case(pull_back(kernel, count), pull_back(expected, count), arguments, (FORWARD, BACKWARD), is_slow=is_slow)


SHAPE = (QUERIES, QUERIES)
CAUSAL, FULL = masks.CausalMask(SHAPE), masks.FullMask(SHAPE)
LOCAL = masks.LocalMask(SHAPE, window_size=(60, 20), offset=0)
CHUNKED = masks.ChunkedCausalMask(SHAPE, chunk_size=96)
RANDOM = masks.NumpyMask(np.eye(QUERIES, dtype=bool) | (np.random.default_rng(0).random(SHAPE) < 0.3))
SPARSE = masks.NumpyMask(np.kron(np.eye(2, dtype=bool), np.ones((128, 128), bool)))
SEQUENCE_MINOR = splash.QKVLayout.SEQ_MINOR

CASES: dict[str, Case] = {
    "flash": _flash_case(),
    "flash_bf16": _flash_case(dtype=BF16, is_slow=True),
    "flash_bias_segments": _flash_case(extras=True),
    "flash_single_step": Case(
        flash_single_step, _flash_reference(causal=False), lambda rng: uniform(rng, *[(1, 2, 512, HEAD)] * 3),
        (FORWARD,),
    ),
    "flash_batched_scaled": Case(
        _flash_batched, lambda q, k, v: flash_attention.mha_reference(q, k, v, None, sm_scale=0.125),
        lambda rng: normal(rng, *[(2, 2, QUERIES, HEAD)] * 3), (FORWARD,), is_slow=True,
    ),
    "flash_gradient": _flash_case(gradient=True),
    "flash_gradient_bias_segments": _flash_case(gradient=True, extras=True, is_slow=True),
    "flash_gradient_bf16": _flash_case(gradient=True, dtype=BF16, is_slow=True),
    "splash_causal": _splash_case(CAUSAL, CAUSAL),
    "splash_full": _splash_case(FULL, FULL, is_slow=True),
    "splash_local_segments": _splash_case(LOCAL, LOCAL, segments=True),
    "splash_chunked": _splash_case(CHUNKED, CHUNKED, device=("TPU v5", 2), is_slow=True),
    "splash_mixed_masks": _splash_case(CAUSAL, RANDOM, SPARSE, FULL, keys=4, is_slow=True),
    "splash_numpy_mask": _splash_case(RANDOM, RANDOM, is_slow=True),
    "splash_dynamic_mask": _splash_case(RANDOM, CAUSAL, dynamic=True),
    "splash_mqa_soft_cap": _splash_case(CAUSAL, CAUSAL, keys=0, soft_cap=30.0),
    "splash_gqa_bf16": _splash_case(*[CAUSAL] * 4, dtype=BF16, soft_cap=20.0, segments=True, is_slow=True),
    "splash_residuals": _splash_case(CAUSAL, CAUSAL, residuals=True),
    "splash_sinks": _splash_case(CAUSAL, CAUSAL, sinks=True, is_slow=True),
    "splash_sequence_minor": _splash_case(CAUSAL, CAUSAL, layout=SEQUENCE_MINOR, is_slow=True),
    "splash_gradient": _splash_case(CAUSAL, CAUSAL, gradient=True),
    "splash_gradient_fused": _splash_case(CAUSAL, CAUSAL, gradient=True, fused=True),
    "splash_gradient_mqa_fused": _splash_case(RANDOM, CAUSAL, keys=0, gradient=True, fused=True, is_slow=True),
    "splash_gradient_gqa_soft_cap": _splash_case(
        *[LOCAL] * 4, gradient=True, soft_cap=30.0, segments=True, is_slow=True
    ),
    "splash_gradient_fused_soft_cap": _splash_case(
        LOCAL, SPARSE, gradient=True, fused=True, soft_cap=30.0, segments=True, is_slow=True
    ),
    "splash_gradient_dynamic": _splash_case(RANDOM, CAUSAL, gradient=True, dynamic=True, is_slow=True),
    "splash_gradient_dynamic_fused": _splash_case(
        RANDOM, CAUSAL, gradient=True, dynamic=True, fused=True, is_slow=True
    ),
    "splash_gradient_sinks": _splash_case(CAUSAL, CAUSAL, gradient=True, sinks=True, is_slow=True),
    "splash_gradient_bf16": _splash_case(CAUSAL, CAUSAL, gradient=True, dtype=BF16, is_slow=True),
    "splash_gradient_sequence_minor": _splash_case(
        CAUSAL, CAUSAL, gradient=True, layout=SEQUENCE_MINOR, is_slow=True
    ),
}  # fmt: skip
"""By name."""
