"""Translation validation: real kernels compute what they did, bit for bit, after the passes that rewrite their grids.

The kernels are JAX's own, at shapes with seven steps or so along each parallel dimension; those whose bounds are static
get dynamic ones. Each program runs on the CPU before and after a pass, with bounds around the number of cores.
"""

from __future__ import annotations

import functools
import importlib
import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cpu_programs import assert_same, compiled
from dynamic_bounds import with_constant_bounds, with_dynamic_bounds
from jax.experimental.pallas.ops.tpu import matmul
from jax.experimental.pallas.ops.tpu.megablox.gmm import gmm, tgmm
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel, splash_attention_mask
from jaxlib.mlir import ir

import real_kernels
from mosaic_grid.context import create_context
from mosaic_grid.cpu.arrays import Array, TensorSpec
from mosaic_grid.cpu.options import Options
from mosaic_grid.grid import Semantics
from mosaic_grid.passes.partition_cores import PartitionCores
from mosaic_grid.passes.resolve_grid import ResolveGrid
from mosaic_grid.program import Program
from mosaic_grid.session import Session
from mosaic_grid.unpack import unpack
from shipped_kernels import array, flash, flash_single_step, gradient, lower

CONTEXT = create_context()
HEADS = 7
BF16, I32 = jnp.bfloat16, jnp.int32
GMM = (array((256, 256), BF16), array((4, 256, 5 * 128), BF16), array((4,), I32))
FLASH = (array((1, HEADS, 256, 128)),) * 3
SPLASH = (array((HEADS, 256, 128)),) * 3


def splash(q: Any, k: Any, v: Any) -> Any:
    """Splash attention of seven heads, each over a window of keys."""
    mask = splash_attention_mask.LocalMask((256, 256), window_size=(64, 64), offset=0)
    sizes = splash_attention_kernel.BlockSizes(
        block_q=128, block_kv=128, block_kv_compute=128, block_q_dkv=128, block_kv_dkv=128, block_kv_dkv_compute=128,
        block_q_dq=128, block_kv_dq=128,
    )  # fmt: skip
    heads = splash_attention_mask.MultiHeadMask([mask] * HEADS)
    attend = splash_attention_kernel.make_splash_mha(heads, block_sizes=sizes, head_shards=1, q_seq_shards=1)
    return attend(q, k, v)


def lowered_matmul() -> bytes:
    """A product of 7 by 3 tiles, over 2 tiles."""
    product = functools.partial(matmul.matmul, block_shape=(32, 128), block_k=128)
    return lower(product, array((7 * 32, 256)), array((256, 3 * 128)))


STATIC: dict[str, Callable[[], bytes]] = {
    "matmul": lowered_matmul,
    "gmm": lambda: lower(gmm, *GMM),
    "gmm_existing_out": lambda: lower(
        lambda lhs, rhs, sizes, out: gmm(lhs, rhs, sizes, existing_out=out), *GMM, array((256, 5 * 128))
    ),
    "tgmm": lambda: lower(tgmm, array((256, 384), BF16), array((384, 5 * 128), BF16), array((4,), I32)),
    "flash": lambda: lower(functools.partial(flash, block=128), *FLASH),
    "flash_bias_segments": lambda: lower(
        functools.partial(flash, block=128), *FLASH, array((1, HEADS, 256, 256)), *[array((1, 256), I32)] * 2
    ),
    "flash_single_step": lambda: lower(flash_single_step, *(array((1, HEADS, 512, 128)),) * 3),
    "flash_gradient": lambda: lower(gradient(functools.partial(flash, block=128)), *FLASH),
    "splash": lambda: lower(splash, *SPLASH),
    "splash_gradient": lambda: lower(gradient(splash), *SPLASH),
    "splash_vmapped": lambda: lower(jax.vmap(splash), *(array((3, HEADS, 256, 128)),) * 3),
}
"""Kernels with static parallel dimensions, which are made dynamic."""

QUICK = ("matmul", "gmm", "flash")


def names(cases: Sequence[str], quick: Sequence[str]) -> list[Any]:
    """Parameters of a test, of which only the quick ones run in CI."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.full) for name in cases]


def opened(data: bytes | str) -> ir.Operation:
    """A lowered program, unpacked."""
    module = ir.Module.parse(data).operation
    unpack(module)
    return module


def inputs(specs: Sequence[TensorSpec]) -> list[Array]:
    """Arguments for a program; i32 ones are sizes of groups, ids of segments and the like."""
    dice = np.random.default_rng(0)
    return [
        dice.integers(0, 60, spec.shape, np.int32)
        if spec.dtype == np.int32
        else dice.standard_normal(spec.shape).astype(spec.dtype)
        for spec in specs
    ]


def partitioned(program: ir.Operation, cores: int) -> ir.Operation:
    """The program after `partition-cores`, which must have found something to share."""
    after = program.clone().operation
    PartitionCores(cores=cores).run(after, Session())
    grids = [kernel.grid for kernel in Program(after).kernels.values()]
    assert any(d.semantics is Semantics.CORE_PARALLEL and d.bound == cores for grid in grids for d in grid), grids
    return after


def validate(before: ir.Operation, after: ir.Operation, launches: Sequence[Sequence[Array]], *seeds: int) -> None:
    """Runs both programs on all arguments: the cores one after the other, and taking turns in orders of these seeds."""
    original = compiled(before)
    expected = [original(*arguments) for arguments in launches]
    for options in (Options(), *(Options(interleave=seed) for seed in seeds)):
        executable = compiled(after, options)
        for arguments, wanted in zip(launches, expected, strict=True):
            scalars = [int(argument) for argument in arguments if not argument.shape]
            assert_same(executable(*arguments), wanted, f"scalars {scalars}, {options}")


def bounds_for(cores: int, most: Sequence[int]) -> list[list[Array]]:
    """Bounds around the number of cores, odd, and as large as they can be."""
    wanted = (0, 1, cores - 1, cores, 5, max(most))
    return [[np.asarray(min(n, bound), np.int32) for bound in most] for n in wanted]


@pytest.mark.parametrize("name", names(list(STATIC), QUICK))
@pytest.mark.parametrize("cores", [2, pytest.param(3, marks=pytest.mark.full)])
def test_partition_cores_on_kernels_made_dynamic(name: str, cores: int) -> None:
    """JAX's own kernels, their parallel bounds dynamic, are shared and give the same."""
    with CONTEXT, ir.Location.unknown():
        program = opened(STATIC[name]())
        most = with_dynamic_bounds(program)
        given = inputs(compiled(program).arguments[: -len(most)])
        launches = [[*given, *bounds] for bounds in bounds_for(cores, most)]
        validate(program, partitioned(program, cores), launches, 1)


@pytest.mark.parametrize("name", names(list(STATIC), ["matmul", "gmm"]))
@pytest.mark.parametrize("bound", [5, pytest.param(0, marks=pytest.mark.full)])
def test_resolve_grid_on_kernels_with_constant_bounds(name: str, bound: int) -> None:
    """JAX's own kernels with bounds that only look dynamic become static and give the same."""
    with CONTEXT, ir.Location.unknown():
        program = opened(STATIC[name]())
        with_constant_bounds(program, bound)
        resolved = program.clone().operation
        ResolveGrid().run(resolved, Session())
        before, after = (
            sum(len(launch.kernel.dynamic_dimensions) for launch in Program(each).launches)
            for each in (program, resolved)
        )
        assert after < before or bound == 0  # which stays dynamic beside another dynamic one
        validate(program, resolved, [inputs(compiled(program).arguments)])


@pytest.mark.parametrize("cores", [2, 3])
def test_dynamic_copy(cores: int) -> None:
    """The smallest kernel there is, with every number of steps that is special."""
    with CONTEXT, ir.Location.unknown():
        program = opened(real_kernels.dynamic_copy())
        _, x = inputs(compiled(program).arguments)
        launches = [[np.asarray(n, np.int32), x] for n in (0, 1, cores - 1, cores, 77, 128, -1)]
        validate(program, partitioned(program, cores), launches, 1, 2)


@pytest.mark.full
@pytest.mark.parametrize(
    ("lowered", "bounds"),
    [
        (real_kernels.dynamic_gmm, (0, 1, 1024, 1025, 1537, 2048)),
        (real_kernels.dynamic_flash_attention, (0, 1, 2, 3, 5, 8)),
    ],
)
@pytest.mark.parametrize("cores", [2, 3])
def test_real_kernels(lowered: Callable[[], str], bounds: Sequence[int], cores: int) -> None:
    """The two kernels of the demo and the benchmarks, of which JAX lowers a dynamic dimension itself."""
    with CONTEXT, ir.Location.unknown():
        jax.clear_caches()  # the wrappers keep a trace that has another launch's bound in it
        program = opened(lowered())
        _, *rest = inputs(compiled(program).arguments)
        launches = [[np.asarray(n, np.int32), *rest] for n in bounds]
        validate(program, partitioned(program, cores), launches, 1)


# The kernels of test/jax.


@functools.cache
def jax_cases() -> dict[str, Any]:
    """The cases that the files there hand to `main`, by name."""
    folder = Path(__file__).parent.parent / "jax"
    found: list[Any] = []
    with mock.patch.object(sys, "path", [str(folder), *sys.path]):
        cases = importlib.import_module("Inputs.cases")
        with mock.patch.object(cases, "main", found.extend):
            for file in sorted(folder.glob("*.py")):
                runpy.run_path(str(file))
    return {case.name: case for case in found}


@pytest.mark.parametrize("name", sorted(jax_cases()))
def test_kernels_of_the_lit_tests(name: str) -> None:
    """They compute what is expected of them, and the same after both passes, with smaller bounds too."""
    case = jax_cases()[name]
    arguments = [np.asarray(argument) for argument in case.arguments]
    with CONTEXT, ir.Location.unknown():
        program = opened(lower(case.function, *case.arguments))
        (result,) = compiled(program)(*arguments)
        np.testing.assert_allclose(result[: len(case.expected)], case.expected, rtol=1e-5, atol=1e-4)
        after = program.clone().operation
        ResolveGrid().run(after, Session())
        PartitionCores(cores=2).run(after, Session())
        smaller = [
            [np.asarray(min(int(each), n), np.int32) if not each.shape else each for each in arguments]
            for n in (0, 1, 2, 3)
        ]
        validate(program, after, [arguments, *smaller], 1)
