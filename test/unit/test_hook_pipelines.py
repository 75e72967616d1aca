"""What JAX refuses while it traces, under `jax_mosaic_grid=on`: run on the CPU, and compiled by libtpu."""

from __future__ import annotations

import functools
import importlib.util
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hook_kernels import PARALLEL, REFUSED, Function, batched_pipeline, like, pipeline, plus_one, rows
from hooked import hooked, lowered, quietly
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from releases import needs_0_12

from mosaic_grid.libtpu import compile_program
from mosaic_grid.libtpu_report import LaunchReport
from mosaic_grid.targets import parse_target

X = np.arange(40 * 640, dtype=np.float32).reshape(40, 640)
EMPTY = np.full_like(X, -7)
SIZES = (0, 1, 2, 3, 5)
no_batched_pipelines = needs_0_12("has no rule for a vmap of pipelines, with a dynamic grid or without")

SPLIT: dict[str, Function] = {
    **{name: function for name, (function, _) in REFUSED.items()},
    "a dimension of one step": pipeline(lambda s: (s[0], s[1]), (PARALLEL, PARALLEL)),
    "six cores": pipeline(lambda s: (s[0], s[1]), (PARALLEL, PARALLEL), lambda _: (6,)),
    "two axes of cores": pipeline(
        lambda s: (s[0], s[1]), (PARALLEL, PARALLEL), lambda _: (2, 3), (0, 1), ("parallel", "parallel")
    ),
    "static and uneven": pipeline(lambda _: (5, 3), (PARALLEL, PARALLEL), lambda _: (4,)),
}


def expected(n: int, m: int) -> np.ndarray:
    """Blocks (n, m) of (8, 128) are written, and nothing else."""
    result = EMPTY.copy()
    result[: n * 8, : m * 128] = X[: n * 8, : m * 128] + 1
    return result


@pytest.mark.parametrize("name", SPLIT)
def test_split_pipelines_write_every_block_once(name: str) -> None:
    """The result is that of one loop, for sizes of none, one, primes, and fewer or more than there are cores."""
    sizes = [(5, 3)] if name == "static and uneven" else itertools.product(SIZES, SIZES)
    counts = (1, 2, 3, 7) if name == "dynamic number of cores" else (2,)
    with hooked("on", "v5p"):
        function = jax.jit(SPLIT[name])
        for (n, m), count in itertools.product(sizes, counts):
            result = quietly(function, jnp.array([n, m, count], jnp.int32), X, EMPTY)
            np.testing.assert_array_equal(result, expected(n, m), err_msg=f"{n} by {m} blocks on {count} cores")


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("mode", ["off", "check"])
def test_stock_jax_still_refuses(name: str, mode: str) -> None:
    """Without a mode that rewrites, JAX says what it always said: so we notice when it moves."""
    function, words = REFUSED[name]
    with hooked(mode), pytest.raises(NotImplementedError, match=words):
        lowered(function, jnp.array([2, 2, 2], jnp.int32), X, EMPTY)


@no_batched_pipelines
def test_batched_pipeline_is_as_a_loop_over_the_batch() -> None:
    """Under vmap each element has a grid of its own, of two dimensions, one of which is sometimes empty."""
    x = np.arange(6 * 16 * 640, dtype=np.float32).reshape(6, 16, 640)
    with hooked("on", "v5p"), jax._src.config.use_emit_pipeline_primitive(True):
        result = np.asarray(quietly(jax.jit(batched_pipeline), x))
    wanted = np.full_like(x, np.nan)
    for n, row in enumerate(wanted):
        for i, j in itertools.product(range(n % 3), range(n)):
            block = (slice(i * 8, i * 8 + 8), slice(j * 128, j * 128 + 128))
            row[block] = x[n][block] + j * 10 + n % 3
    np.testing.assert_array_equal(result, wanted)


@no_batched_pipelines
def test_stock_jax_still_refuses_to_batch() -> None:
    """As above, for vmap."""
    x = jax.ShapeDtypeStruct((4, 16, 512), jnp.float32)
    with (
        hooked("check"),
        jax._src.config.use_emit_pipeline_primitive(True),
        pytest.raises(NotImplementedError, match="Batching over dynamic grid values is not supported yet"),
    ):
        lowered(batched_pipeline, x)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5])
def test_dynamic_core_parallel_runs(n: int) -> None:
    """A dimension of cores with a dynamic bound is shared between the cores there are."""
    with hooked("on", "v5p"):
        result = quietly(jax.jit(lambda n, x: rows(n, x, "core_parallel")), jnp.int32(n), X)
    np.testing.assert_array_equal(result[: n * 8], X[: n * 8] + 1)


def test_stock_jax_still_refuses_dynamic_core_parallel() -> None:
    """As above, for the bound of a core_parallel dimension."""
    with hooked("check"), pytest.raises(ValueError, match="must be statically known"):
        lowered(lambda n, x: rows(n, x, "core_parallel"), jnp.int32(2), X)


def heads(n: Any, x: Any, *, mirrored: bool) -> Any:
    """The grid of a backward pass: heads on the cores and a dynamic number of blocks, or the other way round."""
    block = pl.BlockSpec((1, 8, 128), (lambda i, h: (h, i, 0)) if mirrored else (lambda h, i: (h, i, 0)))
    return pl.pallas_call(
        plus_one,
        out_shape=like(x),
        grid=(n, x.shape[0]) if mirrored else (x.shape[0], n),
        in_specs=[block],
        out_specs=block,
        compiler_params=pltpu.CompilerParams(dimension_semantics=("core_parallel", "arbitrary")),
        name="heads",
    )(x)


HEADS = np.arange(6 * 40 * 128, dtype=np.float32).reshape(6, 40, 128)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("mirrored", [False, True])
def test_heads_on_cores_with_a_dynamic_second_dimension(mirrored: bool, n: int) -> None:
    """More heads than cores, or as many blocks as the run has, on the dimension of the cores: both are right."""
    with hooked("on", "v5p"):
        result = quietly(jax.jit(functools.partial(heads, mirrored=mirrored)), jnp.int32(n), HEADS)
    np.testing.assert_array_equal(result[:, : n * 8], HEADS[:, : n * 8] + 1)


FOR_LIBTPU = [*REFUSED, pytest.param("a batch", marks=no_batched_pipelines), "core_parallel", "heads", "heads mirrored"]


def compiled(name: str, target: str, device: str, cores: int) -> tuple[LaunchReport, ...]:
    """What libtpu makes of one of them, lowered for a chip."""
    batch = name == "a batch"
    calls: dict[str, tuple[Function, tuple[object, ...]]] = {
        "a batch": (batched_pipeline, (jax.ShapeDtypeStruct((4, 16, 512), jnp.float32),)),
        "core_parallel": (lambda n, x: rows(n, x, "core_parallel"), (jnp.int32(2), X)),
        "heads": (lambda n, x: heads(n, x, mirrored=False), (jnp.int32(2), HEADS)),
        "heads mirrored": (lambda n, x: heads(n, x, mirrored=True), (jnp.int32(2), HEADS)),
    }
    split = (jnp.array([2, 2, 2], jnp.int32), X, EMPTY)
    function, arguments = calls[name] if name in calls else (REFUSED[name][0], split)
    with hooked("on"), jax._src.config.use_emit_pipeline_primitive(batch):
        text = quietly(functools.partial(lowered, device=device, cores=cores), function, *arguments)
    (report,) = compile_program(text.encode(), [parse_target(target)])
    return report.launches


@pytest.mark.libtpu
@pytest.mark.skipif(not importlib.util.find_spec("libtpu"), reason="libtpu is not installed")
@pytest.mark.parametrize("name", FOR_LIBTPU)
def test_refused_kernels_use_both_cores(name: str) -> None:
    """libtpu compiles them for a v5p, and shares them."""
    launches = compiled(name, "v5p", "TPU v5", 2)
    assert not any(launch.failed for launch in launches)
    used = max(launch.cores_used or 0 for launch in launches)
    assert used == (1 if name == "a batch" else 2)  # the batch's mesh has one core


@pytest.mark.full
@pytest.mark.libtpu
@pytest.mark.skipif(not importlib.util.find_spec("libtpu"), reason="libtpu is not installed")
@pytest.mark.parametrize(
    ("target", "device", "cores"),
    [("v4", "TPU v4", 2), ("v5e", "TPU v5 lite", 1), ("v6e", "TPU v6 lite", 1), ("tpu7x", "TPU7x", 1)],
)
@pytest.mark.parametrize("name", FOR_LIBTPU)
def test_refused_kernels_compile_for_every_target(name: str, target: str, device: str, cores: int) -> None:
    """libtpu takes them for the other chips, too."""
    assert not any(launch.failed for launch in compiled(name, target, device, cores))
