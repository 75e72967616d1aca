"""TPU kernels on the CPU under the hook: as `mosaic_grid.run` runs them, wherever in a program of JAX's they stand."""

from __future__ import annotations

import concurrent.futures
import functools
import warnings
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hook_kernels import ANYWHERE, like, plus_one, rows
from hooked import hooked, lowered, output, quietly
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from releases import tensor_cores

import mosaic_grid
from mosaic_grid.cpu.convert import UnsupportedKernelError
from mosaic_grid.errors import UserError

X = np.random.default_rng(0).standard_normal((32, 256)).astype(np.float32)


@pytest.fixture(autouse=True)
def on_cpu() -> Iterator[None]:
    """Every test runs with the option."""
    with hooked(cpu="v5p"):
        yield


def add_one(x: Any) -> Any:
    """One added by a kernel."""
    return pl.pallas_call(plus_one, out_shape=like(x))(x)


def rounded(x: Any) -> Any:
    """A kernel that rounds to bf16 between two operations, which XLA would like to leave out."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = ((x_ref[...] * 3).astype(jnp.bfloat16).astype(jnp.float32) / 3 + 1).astype(jnp.bfloat16)

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, jnp.bfloat16))(x)


def test_jit_eager_and_disabled_jit() -> None:
    """A call works by itself, in a jitted function, and where jit is disabled."""
    for run in (add_one, jax.jit(add_one)):
        np.testing.assert_array_equal(run(X), X + 1)
    with jax.disable_jit():
        np.testing.assert_array_equal(add_one(X), X + 1)


@pytest.mark.parametrize("mode", ["off", "check", "on"])
@pytest.mark.parametrize("function", [add_one, rounded, lambda x: rows(jnp.int32(3) + x[0, 0].astype(int) * 0, x)])
def test_results_are_those_of_run(mode: str, function: Any) -> None:
    """Bit for bit what `mosaic_grid.run` makes of the program lowered for a TPU, whatever the mode."""
    with hooked():
        program = jax.jit(function).trace(X).lower(lowering_platforms=("tpu",))
    (wanted,) = mosaic_grid.run(program, X)
    with hooked(mode, "v5p"):
        result = np.asarray(quietly(jax.jit(function), X))
    assert result.tobytes() == wanted.tobytes()


def test_second_compilation_rounds_alike() -> None:
    """A program that is lowered once and compiled twice gives the same bits."""
    program = jax.jit(rounded).lower(X)
    first, second = (np.asarray(program.compile()(X)) for _ in range(2))
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("n", [0, 3])
def test_dynamic_core_parallel_runs_as_it_is(n: int) -> None:
    """Without rewriting, too, the CPU runs as many cores as the bound says; for a TPU it is still refused."""
    result = jax.jit(lambda n, x: rows(n, x, "core_parallel"))(jnp.int32(n), X)
    np.testing.assert_array_equal(result[: n * 8], X[: n * 8] + 1)
    with pytest.raises(UserError, match=r"core_parallel dimension 0 .* is dynamic"):
        lowered(lambda n, x: rows(n, x, "core_parallel"), jnp.int32(n), X)


def test_vmap_grad_scan_cond_and_remat() -> None:
    """Transformations of JAX's go around the kernels as they do on a TPU."""

    @jax.custom_vjp
    def sine(x: Any) -> Any:
        return pl.pallas_call(lambda i, o: o.__setitem__(..., jnp.sin(i[...])), out_shape=like(x))(x)

    def cosine(x: Any, g: Any) -> Any:
        body: Any = lambda i, j, o: o.__setitem__(..., jnp.cos(i[...]) * j[...])  # noqa: E731
        return (pl.pallas_call(body, out_shape=like(x))(x, g),)

    sine.defvjp(lambda x: (sine(x), x), cosine)
    gradient = jax.jit(jax.grad(jax.remat(lambda x: sine(sine(x)).sum())))(X)
    np.testing.assert_allclose(gradient, np.cos(np.sin(X)) * np.cos(X), rtol=1e-5)
    batch = np.stack([X, X + 1])
    np.testing.assert_array_equal(jax.jit(jax.vmap(add_one))(batch), batch + 1)
    repeated, _ = lax.scan(lambda carry, _: (add_one(carry), None), jnp.asarray(X), None, length=3)
    np.testing.assert_array_equal(repeated, X + 1 + 1 + 1)
    np.testing.assert_array_equal(lax.cond(True, add_one, lambda x: x, jnp.asarray(X)), X + 1)


def test_vmap_of_a_dynamic_grid_and_of_prefetched_scalars() -> None:
    """What JAX turns into a loop of launches runs as one."""
    batch = np.stack([X, X + 1, X + 2])
    result = jax.vmap(rows)(jnp.array([0, 4, 2], jnp.int32), batch)
    for row, x, n in zip(result, batch, (0, 4, 2), strict=True):
        np.testing.assert_array_equal(row[: n * 8], x[: n * 8] + 1)

    def pick(n: Any, x: Any) -> Any:
        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(1,),
            in_specs=[pl.BlockSpec((8, 256), lambda i, n: (n[0], 0))],
            out_specs=pl.BlockSpec((8, 256), lambda i, n: (0, 0)),
        )
        shape = jax.ShapeDtypeStruct((8, 256), x.dtype)
        return pl.pallas_call(lambda n, i, o: plus_one(i, o), out_shape=shape, grid_spec=spec)(n, x)

    result = jax.vmap(pick)(jnp.array([[3], [0], [1]], jnp.int32), batch)
    np.testing.assert_array_equal(result, np.stack([batch[0, 24:], batch[1, :8], batch[2, 8:16]]) + 1)


def test_kernel_on_the_cores_of_the_chip() -> None:
    """`pl.kernel` on a mesh that doesn't say its size gets the chip's cores, and each does its part with a DMA."""

    @functools.partial(
        pl.kernel,
        out_type=like(X),
        mesh=tensor_cores(),
        scratch_types=[pltpu.VMEM((16, 256), jnp.float32), pltpu.SemaphoreType.DMA],
    )
    def kernel(x_ref: Any, o_ref: Any, buffer: Any, semaphore: Any) -> None:
        assert lax.axis_size("core") == 2
        part = pl.ds(lax.axis_index("core") * 16, 16)
        pltpu.async_copy(x_ref.at[part], buffer, semaphore).wait()
        buffer[...] += 1
        pltpu.sync_copy(buffer, o_ref.at[part])

    np.testing.assert_array_equal(jax.jit(kernel)(X), X + 1)


def test_meshes_of_the_older_kind_have_the_cores_of_the_chip() -> None:
    """The function that JAX once made them by, deprecated by now, asks for the chip as well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mesh = pltpu.create_tensorcore_mesh("core")
    assert dict(mesh.shape) == {"core": 2}


def test_emit_pipeline_asks_for_the_chip() -> None:
    """A pipeline, which looks up tilings of the TPU it is traced for, gets those of the simulated one."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        assert pltpu.get_tpu_info().num_cores == 2
        block = pl.BlockSpec((8, 128), lambda i, j: (i, j))
        pltpu.emit_pipeline(plus_one, grid=(4, 2), in_specs=[block], out_specs=[block])(x_ref, o_ref)

    call = pl.pallas_call(kernel, out_shape=like(X), in_specs=[ANYWHERE], out_specs=ANYWHERE)
    np.testing.assert_array_equal(jax.jit(call)(X), X + 1)
    with hooked(cpu="v5e"), pytest.raises(AssertionError):
        jax.jit(lambda x: call(x))(X)


def test_memory_semaphores_and_prints() -> None:
    """Scalars in SMEM, scoped memory, semaphores, strided and dynamic slices, prints and an alias in one kernel."""

    def kernel(n_ref: Any, x_ref: Any, y_ref: Any, o_ref: Any, semaphore: Any) -> None:
        pl.debug_print("step {}", n_ref[0])
        pl.semaphore_signal(semaphore, 1)
        pl.semaphore_wait(semaphore, 1)

        def scoped(buffer: Any) -> None:
            with jax.named_scope("copy"):
                buffer[...] = x_ref[pl.ds(pl.multiple_of(n_ref[0] * 8, 8), 8), :]
            o_ref[...] = buffer[...] + y_ref[pl.ds(0, 8, stride=2), :]

        pl.run_scoped(scoped, pltpu.VMEM((8, 256), jnp.float32))

    smem, vmem = pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.VMEM)
    call = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((8, 256), jnp.float32),
        in_specs=[smem, vmem, vmem],
        scratch_shapes=[pltpu.SemaphoreType.REGULAR],
        compiler_params=pltpu.CompilerParams(has_side_effects=True),
    )
    np.testing.assert_array_equal(jax.jit(call)(jnp.array([2]), X, X), X[16:24] + X[:16:2])


def test_export_aot_and_several_platforms() -> None:
    """A program goes through export and ahead-of-time compilation; one for two platforms has a kernel for each."""
    np.testing.assert_array_equal(jax.jit(add_one).lower(X).compile()(X), X + 1)
    exported = jax.export.export(jax.jit(add_one))(X)
    np.testing.assert_array_equal(jax.export.deserialize(exported.serialize()).call(X), X + 1)
    both = jax.export.export(jax.jit(add_one), platforms=("cpu", "tpu"))(X)
    assert both.mlir_module().count("stablehlo.custom_call @tpu_custom_call") == 1
    np.testing.assert_array_equal(both.call(X), X + 1)


def test_threads_and_cleared_caches() -> None:
    """Functions lowered in several threads at once, and again after JAX has forgotten them, are right."""
    whole = np.round(X)  # an older XLA adds the numbers first, which rounds otherwise

    def run(number: int) -> Any:
        with hooked("on", "v5p"):
            return quietly(jax.jit(lambda x: add_one(x) + number), whole)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for number, result in enumerate(pool.map(run, range(8))):
            np.testing.assert_array_equal(result, whole + 1 + number)
    jax.clear_caches()
    np.testing.assert_array_equal(run(3), whole + 1 + 3)


def test_shard_map_on_two_devices() -> None:
    """Each device of a mesh of CPUs runs the kernel on its part."""
    code = """
import jax, jax.numpy as jnp, numpy as np
from jax.experimental import pallas as pl
from jax.sharding import PartitionSpec as P
mesh = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 1
def part(x):
    return jax.lax.psum(pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x), "d")
f = jax.jit(jax.shard_map(part, mesh=mesh, in_specs=P("d"), out_specs=P(), check_vma=False))
x = jnp.arange(32 * 128.0).reshape(32, 128)
print(np.array_equal(f(x), x[:16] + x[16:] + 2))
"""
    flags = "--xla_force_host_platform_device_count=2"
    assert output(code, JAX_MOSAIC_GRID_CPU="v5p", XLA_FLAGS=flags) == "True"


def test_kernels_know_their_device() -> None:
    """A kernel that asks for its place in a mesh gets that of the device, and in `jax.pmap` that of the replica."""
    code = """
import functools, jax, jax.numpy as jnp, numpy as np
from jax.experimental import pallas as pl
from jax.sharding import PartitionSpec as P
mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
def kernel(names, x_ref, o_ref):
    o_ref[...] = x_ref[...] + sum(10 ** n * jax.lax.axis_index(name) for n, name in enumerate(names))
def call(*names):
    return pl.pallas_call(functools.partial(kernel, names), out_shape=jax.ShapeDtypeStruct((8, 128), jnp.int32))
x = jnp.zeros((16, 256), jnp.int32)
f = jax.jit(jax.shard_map(call("a", "b"), mesh=mesh, in_specs=P("a", "b"), out_specs=P("a", "b"), check_vma=False))
print(f(x)[::8, ::128].ravel(), jax.pmap(call("r"), "r")(jnp.zeros((4, 8, 128), jnp.int32))[:, 0, 0])
"""
    flags = "--xla_force_host_platform_device_count=4"
    assert output(code, JAX_MOSAIC_GRID_CPU="v5p", XLA_FLAGS=flags) == "[ 0 10  1 11] [0 1 2 3]"


@pytest.mark.parametrize("mode", ["off", "check", "on"])
def test_64_bit_mode(mode: str) -> None:
    """Literals in index maps, and bounds, are i64 then; the steps are the same."""
    with jax.enable_x64(True), hooked(mode, "v5p"):
        for n in (jnp.int32(3), jnp.int64(3)):
            result = quietly(jax.jit(rows64), n, X)
            np.testing.assert_array_equal(result[:24], X[:24] + 1)


def rows64(n: Any, x: Any) -> Any:
    """One added to the first n blocks of rows, by an index map with a literal."""
    block = pl.BlockSpec((8, 256), lambda i: (i, 0))
    parallel = pltpu.CompilerParams(dimension_semantics=("parallel",))
    return pl.pallas_call(
        plus_one, out_shape=like(x), grid=(n,), in_specs=[block], out_specs=block, compiler_params=parallel
    )(x)


def test_arrays_that_are_in_vmem_stay_there() -> None:
    """An array that one kernel leaves in VMEM is what the next one goes on with, where it aliases its output."""

    def begin(x_ref: Any, o_ref: Any) -> None:
        o_ref[pl.ds(0, 8)] = x_ref[pl.ds(0, 8)]

    def go_on(x_ref: Any, before: Any, o_ref: Any) -> None:
        o_ref[pl.ds(8, 8)] = x_ref[pl.ds(8, 8)]

    vmem, kept = pl.BlockSpec(memory_space=pltpu.VMEM), pltpu.VMEM((16, 256), jnp.float32)

    @jax.jit
    def function(x: Any) -> Any:
        half = pl.pallas_call(begin, out_shape=kept, in_specs=[vmem], out_specs=vmem)(x)
        more = pl.pallas_call(
            go_on, out_shape=kept, in_specs=[vmem, vmem], out_specs=vmem, input_output_aliases={1: 0}
        )(x, half)
        return pl.pallas_call(plus_one, out_shape=jax.ShapeDtypeStruct((16, 256), jnp.float32), in_specs=[vmem])(more)

    np.testing.assert_array_equal(function(X), X[:16] + 1)


def test_interpreter_is_left_alone() -> None:
    """What asks to be interpreted is, as it was."""
    call = pl.pallas_call(plus_one, out_shape=like(X), interpret=True)
    with hooked():
        stock = jax.jit(call).lower(X).as_text()
    assert jax.jit(call).lower(X).as_text() == stock
    np.testing.assert_array_equal(call(X), X + 1)


def test_off_refuses_as_jax_does() -> None:
    """Without the option a kernel on the CPU is JAX's error."""
    with hooked("on"), pytest.raises(ValueError, match="Only interpret mode is supported on CPU backend"):
        jax.jit(lambda x: add_one(x))(X)


def test_kernel_that_can_not_be_lowered_is_one_error() -> None:
    """Nobody says how to round to 8 bits at random: the error names the operation and the user's line."""

    def kernel(x_ref: Any, bits_ref: Any, o_ref: Any) -> None:
        o_ref[...] = pltpu.stochastic_round(x_ref[...], bits_ref[...], target_dtype=jnp.float8_e5m2)

    call = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(X.shape, jnp.float8_e5m2))
    with pytest.raises(UnsupportedKernelError, match=r"test_hook_cpu.py:\d+:\d+: tpu.stochastic_convert"):
        jax.jit(call)(X, X.view(np.uint32))
