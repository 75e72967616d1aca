"""Cases of the kernels that ship with JAX: matmuls, grouped matmuls, and the two generators of random bits."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas.ops.tpu import example_kernel, matmul
from jax.experimental.pallas.ops.tpu.megablox import ops as megablox_ops
from jax.experimental.pallas.ops.tpu.megablox.gmm import gmm, tgmm
from jax.experimental.pallas.ops.tpu.random import philox, threefry

from reference_case import BF16, EXACT, F32, I32, Array, Case, Function, Tolerance, normal, pull_back, uniform

GMM_F32, GMM_BF16 = Tolerance(1e-3, 1e-5), Tolerance(1e-3, 1e-2)
"""`tolerances` in JAX's tests/pallas/tpu_gmm_test.py, by whether bf16 occurs anywhere."""

DOT = Tolerance(1e-3, 1e-5)
"""JAX holds matmul to 2e-7 of a golden result; against another order of adding up it needs what f32 gmm gets."""

SIZES = (100, 0, 300, 112)
"""Of groups in 512 rows: none ends where a tile of 128 rows does, and one is empty."""


def _product(dtype: Any) -> Function:
    return lambda x, y: jnp.dot(x, y, preferred_element_type=jnp.promote_types(dtype, F32)).astype(dtype)


def _integers(rng: np.random.Generator) -> list[Array]:
    return [rng.integers(-128, 128, shape, np.int8) for shape in ((256, 512), (512, 256))]


def _sizes() -> Array:
    return np.array(SIZES, I32)


def _grouped(dtype: np.dtype[Any], *, transposed: bool = False, k: int = 256, n: int = 256) -> Any:
    def arguments(rng: np.random.Generator) -> list[Array]:
        shape = (len(SIZES), n, k) if transposed else (len(SIZES), k, n)
        return [*uniform(rng, (sum(SIZES), k), shape, dtype=dtype, low=-1), _sizes()]

    return arguments


def reference_gmm(lhs: Any, rhs: Any, sizes: Any, *, offset: int = 0, out: Any = None, dtype: Any = F32) -> Any:
    """Rows of `lhs` times the matrix of their group, a matmul for each; rows of no group are those of `out`, or zero.

    `rhs` has the matrices of the groups from `offset` on. The sizes are `SIZES`: rows are cut out where they are known.
    """
    del sizes
    ends = np.cumsum(SIZES)
    product = jnp.zeros((lhs.shape[0], rhs.shape[2]), dtype) if out is None else out
    for group in range(offset, offset + rhs.shape[0]):
        start, stop = int(ends[group]) - SIZES[group], int(ends[group])
        rows = jnp.dot(lhs[start:stop], rhs[group - offset], preferred_element_type=F32)
        product = product.at[start:stop].set(rows.astype(dtype))
    return product


def reference_tgmm(lhs: Any, rhs: Any, sizes: Any) -> Any:
    """For each group its columns of `lhs` times its rows of `rhs`."""
    del sizes
    starts = np.cumsum((0, *SIZES))
    parts = [slice(int(start), int(start) + size) for start, size in zip(starts, SIZES, strict=False)]
    return jnp.stack([jnp.dot(lhs[:, part], rhs[part], preferred_element_type=F32) for part in parts])


def _gmm_pulled(function: Function) -> Function:
    return pull_back(lambda lhs, rhs, sizes: function(lhs, rhs, sizes), 2)


def _gmm_gradient(dtype: np.dtype[Any], *, transposed: bool = False) -> Case:
    kernel = _gmm_pulled(
        lambda lhs, rhs, sizes: megablox_ops.gmm(lhs, rhs, sizes, F32, (128, 128, 128), None, None, transposed)
    )
    reference = _gmm_pulled(
        lambda lhs, rhs, sizes: reference_gmm(lhs, rhs.swapaxes(1, 2) if transposed else rhs, sizes)
    )

    def arguments(rng: np.random.Generator) -> list[Array]:
        return [*uniform(rng, (sum(SIZES), 256), low=-1), *_grouped(dtype, transposed=transposed)(rng)]

    tolerance = GMM_F32 if dtype == F32 else GMM_BF16
    return Case(kernel, reference, arguments, (tolerance,), is_slow=transposed or dtype != F32)


def reference_philox(key: Any, shape: tuple[int, ...]) -> Any:
    """Philox-4x32 of ten rounds (Salmon et al. 2011) in 64-bit arithmetic; the count is the second word of four."""
    keys = np.asarray(key).astype(np.uint64)
    low = np.uint64(2**32 - 1)
    counts = np.arange(np.prod(shape), dtype=np.uint64).reshape(shape)
    words = [np.zeros_like(counts), counts, np.zeros_like(counts), np.zeros_like(counts)]
    for _ in range(10):
        first, second = words[2] * np.uint64(0xCD9E8D57), words[0] * np.uint64(0xD2511F53)
        words = [first >> 32 ^ words[1] ^ keys[0], first & low, second >> 32 ^ words[3] ^ keys[1], second & low]
        keys = (keys + np.array([0x9E3779B9, 0xBB67AE85], np.uint64)) & low
    return (words[0] ^ words[1]).astype(np.uint32)


def _threefry_bits(key: Any, shape: tuple[int, ...]) -> Any:
    with jax.threefry_partitionable(True):
        return jax.random.bits(jax.random.wrap_key_data(key, impl="threefry2x32"), shape)


def _random(kernel: Function, reference: Function, shape: tuple[int, ...], *, is_slow: bool = False) -> Case:
    """Bits are equal or wrong, as in JAX's tests/pallas/tpu_pallas_random_test.py."""
    return Case(
        lambda key: kernel(key, 32, shape),
        lambda key: reference(key, shape),
        lambda rng: [rng.integers(0, 2**32, 2, np.uint32)],
        (EXACT,),
        is_slow=is_slow,
    )


CASES: dict[str, Case] = {
    "example_double": Case(
        example_kernel.double, lambda x: x * 2, lambda rng: normal(rng, (256, 256)), (EXACT,)
    ),
    "matmul_f32": Case(
        lambda x, y: matmul.matmul(x, y, block_shape=(128, 256), block_k=128),
        _product(F32),
        lambda rng: normal(rng, (256, 512), (512, 256)),
        (DOT,),
    ),
    "matmul_bf16": Case(
        lambda x, y: matmul.matmul(x, y, block_shape=(256, 256)),
        _product(BF16),
        lambda rng: normal(rng, (512, 512), (512, 512), dtype=BF16),
        (GMM_BF16,),
    ),
    "matmul_int8": Case(
        lambda x, y: matmul.matmul(x, y, block_shape=(256, 256), out_dtype=I32), _product(I32), _integers, (EXACT,)
    ),
    "philox": _random(philox.philox_random_bits, reference_philox, (512, 256)),
    "philox_padded": _random(philox.philox_random_bits, reference_philox, (137, 275)),
    "philox_3d": _random(philox.philox_random_bits, reference_philox, (2, 512, 512), is_slow=True),
    "threefry": _random(threefry.plthreefry_random_bits, _threefry_bits, (512, 256)),
    "threefry_padded": _random(threefry.plthreefry_random_bits, _threefry_bits, (137, 275)),
    "threefry_3d": _random(threefry.plthreefry_random_bits, _threefry_bits, (2, 512, 512), is_slow=True),
    "gmm_f32": Case(gmm, jax.lax.ragged_dot, _grouped(F32), (GMM_F32,)),
    "gmm_bf16": Case(gmm, reference_gmm, _grouped(BF16), (GMM_BF16,)),
    "gmm_bf16_out": Case(
        lambda lhs, rhs, sizes: gmm(lhs, rhs, sizes, BF16, (64, 256, 128)),
        lambda lhs, rhs, sizes: reference_gmm(lhs, rhs, sizes, dtype=BF16),
        _grouped(BF16),
        (GMM_BF16,),
        is_slow=True,
    ),
    "gmm_partial_tiles": Case(gmm, reference_gmm, _grouped(F32, k=200, n=72), (GMM_F32,)),
    "gmm_transposed_offset": Case(
        lambda lhs, rhs, sizes, offset: gmm(lhs, rhs, sizes, group_offset=offset, transpose_rhs=True),
        lambda lhs, rhs, sizes, _: reference_gmm(lhs, rhs.swapaxes(1, 2), sizes, offset=2),
        lambda rng: [
            *uniform(rng, (512, 256), (2, 128, 256), dtype=BF16, low=-1), _sizes(), np.array(2, I32)
        ],
        (GMM_BF16,),
    ),
    "gmm_existing_out": Case(
        lambda lhs, rhs, sizes, out: gmm(
            lhs, rhs, sizes, existing_out=out, group_offset=jnp.int32(2)
        ),
        lambda lhs, rhs, sizes, out: reference_gmm(lhs, rhs, sizes, offset=2, out=out),
        lambda rng: [*uniform(rng, (512, 256), (2, 256, 128), low=-1), _sizes(), *normal(rng, (512, 128))],
        (GMM_F32,),
    ),
    "tgmm": Case(
        tgmm, reference_tgmm, lambda rng: [*uniform(rng, (256, 512), (512, 128), dtype=BF16, low=-1), _sizes()],
        (GMM_BF16,),
    ),
    "gmm_gradient": _gmm_gradient(F32),
    "gmm_gradient_bf16": _gmm_gradient(BF16),
    "gmm_gradient_transposed": _gmm_gradient(F32, transposed=True),
}  # fmt: skip
"""By name."""
