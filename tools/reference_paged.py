"""Cases of the attention kernels that ship with JAX for keys on pages: paged and ragged paged attention."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention, quantization_utils, util
from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention, ref_ragged_paged_attention

from reference_case import BF16, F32, I32, Array, Case, Tolerance, normal

PAGED = Tolerance(1e-2, 2e-2)
"""JAX's tests/pallas/tpu_paged_attention_kernel_test.py, for several query heads a head of keys."""
RAGGED_F32, RAGGED = Tolerance(0.15, 0.15), Tolerance(0.2, 0.2)
"""JAX's tests/pallas/tpu_ragged_paged_attention_test.py, by whether keys are of 32 bits."""

FUSED = 4
"""Units in the last place: XLA fuses a product and a sum into one rounding in places of its own choice."""
HEAD = 128
"""Numbers of a head."""

LENGTHS = (0, 3, 64, 201)
"""Keys of the sequences of paged attention, on pages of 16: none, part of a page, whole blocks, and an odd number."""
PAGES = 16


def _paged_arguments(groups: int, dtype: Any) -> Any:
    def arguments(rng: np.random.Generator) -> list[Array]:
        count = len(LENGTHS)
        arrays = normal(rng, (count, 2 * groups, HEAD), *[(2, count * PAGES, 16, HEAD)] * 2, dtype=BF16)
        pages = rng.permutation(count * PAGES).reshape(count, PAGES).astype(I32)
        return [*(array.astype(dtype) for array in arrays), np.array(LENGTHS, I32), pages]

    return arguments


def _paged_case(
    *, groups: int = 8, dtype: Any = BF16, quantized: bool = False, is_slow: bool = False, **options: Any
) -> Case:
    """Paged attention; of a sequence without keys nothing is asked. The kernel rounds keys and values to bf16."""

    def cut(result: Any, lengths: Any) -> Any:
        return jnp.where((lengths > 0)[:, None, None], result, 0)

    def kept(pages: Any) -> Any:
        return quantization_utils.quantize_to_int8(pages) if quantized else pages

    def attend(q: Any, k: Any, v: Any, lengths: Any, pages: Any) -> Any:
        result = paged_attention(q, kept(k), kept(v), lengths, pages, pages_per_compute_block=4, **options)
        return cut(result, lengths)

    def gathered(pages: Any, indices: Any) -> Any:
        values = kept(pages)
        if quantized:
            values = quantization_utils.unquantize_from_int8(values, dtype=F32)
        rows = jnp.take(values, indices, 1).swapaxes(0, 1)
        return rows.reshape(rows.shape[0], rows.shape[1], -1, HEAD).astype(F32)

    def reference(q: Any, k: Any, v: Any, lengths: Any, pages: Any) -> Any:
        result = util.grouped_query_attention_reference(
            q, gathered(k, pages), gathered(v, pages), lengths, options.get("attn_logits_soft_cap")
        )
        return cut(result, lengths)

    needs_cores, ulps = "megacore_mode" in options, (FUSED if quantized else 0)
    return Case(
        attend, reference, _paged_arguments(groups, dtype), (PAGED,), needs_cores=needs_cores, ulps=ulps,
        is_slow=is_slow,
    )  # fmt: skip


SEQUENCES = ((5, 18), (1, 129), (40, 97), (1, 16))
"""Queries and keys of the sequences of ragged paged attention."""


def _ragged_case(
    *, heads: tuple[int, int] = (8, 4), dtype: Any = BF16, kv_dtype: Any = BF16, is_slow: bool = False, **options: Any
) -> Case:
    """Ragged paged attention; what is behind the last query isn't asked. Pages of no sequence hold NaN.

    JAX's interpreters don't run it: one has no masked store at a known index, that of `InterpretParams` no reshape.
    """
    total = sum(queries for queries, _ in SEQUENCES)

    def attend(*arguments: Any) -> Any:
        return ragged_paged_attention(*arguments, num_kv_pages_per_block=4, num_queries_per_block=32, **options)[:total]

    def reference(*arguments: Any) -> Any:
        return ref_ragged_paged_attention(*arguments, **options)

    def arguments(rng: np.random.Generator) -> list[Array]:
        queries, keys = zip(*SEQUENCES, strict=True)
        spare = 8 - len(SEQUENCES)
        counts = [-(-length // 16) for length in keys]
        per_sequence = max(counts)
        order = rng.permutation(64)
        indices = np.zeros((8, per_sequence), I32)
        for row, (count, start) in enumerate(zip(counts, np.cumsum([0, *counts]), strict=False)):
            indices[row, :count] = order[start : start + count]
        pages = rng.standard_normal((64, 16, 2 * heads[1], HEAD), np.float32).astype(kv_dtype)
        pages[order[sum(counts) :]] = np.nan
        ends = np.pad(np.cumsum((0, *queries)), (0, spare))
        return [
            *normal(rng, (64, heads[0], HEAD), dtype=dtype), pages, np.pad(np.array(keys), (0, spare)).astype(I32),
            indices, ends.astype(I32), np.array([len(SEQUENCES)], I32),
        ]  # fmt: skip

    tolerance = RAGGED_F32 if kv_dtype == F32 else RAGGED
    return Case(attend, reference, arguments, (tolerance,), ("TPU v5", 2), ulps=None, is_slow=is_slow)


CASES: dict[str, Case] = {
    "paged": _paged_case(),
    "paged_f32_soft_cap": _paged_case(dtype=F32, attn_logits_soft_cap=1.0),
    "paged_few_queries": _paged_case(groups=4, is_slow=True),
    "paged_not_inline": _paged_case(inline_seq_dim=False, is_slow=True),
    "paged_megacore_heads": _paged_case(megacore_mode="kv_head", is_slow=True),
    "paged_megacore_batch": _paged_case(megacore_mode="batch", is_slow=True),
    "paged_int8": _paged_case(dtype=F32, quantized=True),
    "ragged": _ragged_case(is_slow=True),
    "ragged_f32": _ragged_case(dtype=F32, kv_dtype=F32, is_slow=True),
    "ragged_window_soft_cap": _ragged_case(dtype=F32, kv_dtype=F32, sliding_window=20, soft_cap=30.0),
    "ragged_f8": _ragged_case(
        heads=(16, 8), kv_dtype=np.dtype(ml_dtypes.float8_e4m3fn), k_scale=0.5, v_scale=0.5, is_slow=True
    ),
}  # fmt: skip
"""By name."""
