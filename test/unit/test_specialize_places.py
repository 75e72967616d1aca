"""`specialize-grid` on launches in loops, branches and functions, on random kernels, and by the real compiler."""

from __future__ import annotations

from typing import Any

import dynamic_programs
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas.ops.tpu.megablox.gmm import gmm
from jax.sharding import AbstractDevice, AbstractMesh, AxisType
from jaxlib.mlir import ir
from partition_checks import launches_of
from specialize_checks import BUCKETS, Bucket, Specialized, assert_same_meaning, specialized
from test_partition_random import samples

from mosaic_grid.context import create_context
from mosaic_grid.libtpu import compile_program, libtpu_available
from mosaic_grid.passes.specialize_grid import SpecializeGrid
from mosaic_grid.program import Program
from mosaic_grid.targets import parse_target
from mosaic_grid.unpack import pack
from mosaic_grid.write import write_bytecode

CONTEXT = create_context()
MORE = ("matmul", "outer_product")
TARGETS = ("v4", "v5e", "v5p", "v6e", "tpu7x")


def everywhere(n: Any, m: Any, x: Any) -> Any:
    """One kernel launched in a loop, in both branches of a choice, and from a function that is called twice."""
    scale = dynamic_programs.scale_in_place
    y = jax.lax.fori_loop(0, 3, lambda k, y: scale(n - k, y), x)
    y = jax.lax.switch(m % 3, [lambda y: scale(n, y), lambda y: y * 2.0, lambda y: scale(m, y)], y)
    twice = jax.jit(scale)
    return twice(m, twice(n, y))


@pytest.mark.parametrize("bucket", BUCKETS)
def test_launches_anywhere_keep_their_meaning(bucket: Bucket) -> None:
    """Launches of one kernel in a loop, in branches and in a function share variants, and compute what they did."""
    x = dynamic_programs.numbers(60, 384)
    text = dynamic_programs.lower(everywhere, *(np.asarray(n, np.int32) for n in (0, 0)), x)
    with CONTEXT, ir.Location.unknown():
        program = specialized(text, SpecializeGrid(values=("2", "5"), bucket=bucket))
        assert len(program.grids) == 3
        pairs = ((5, 0), (5, 1), (7, 2), (2, 5), (0, 8), (3, 3))
        assert_same_meaning(program, [[np.asarray(n, np.int32), np.asarray(m, np.int32), x] for n, m in pairs])


def counted(n: Any, table: Any, x: Any) -> Any:
    """A kernel that loops up to its bound, which it gets as an operand too, and up to an entry of a table."""

    def kernel(count_ref: Any, table_ref: Any, x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = jax.lax.fori_loop(0, count_ref[0] * 2, lambda _, total: total + x_ref[...], x_ref[...])
        o_ref[...] = jax.lax.fori_loop(0, table_ref[1], lambda _, total: total + 1.0, o_ref[...])

    block = pl.BlockSpec(dynamic_programs.BLOCK, lambda i, count, table: (i, 0))
    spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=2, grid=(n,), in_specs=[block], out_specs=block)
    launch = pl.pallas_call(kernel, dynamic_programs.array(*x.shape), grid_spec=spec)
    result: Any = launch(n[None], table, x)
    return result


def trip_counts(module: ir.Operation) -> list[int | None]:
    """The upper bounds of all loops, in order; `None` for one that isn't a constant."""
    found: list[int | None] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "scf.for":
            bound = op.operands[1].owner
            found.append(bound.attributes["value"].value if bound.name == "arith.constant" else None)
        return ir.WalkResult.ADVANCE

    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def test_loops_over_the_bound_get_static_trip_counts() -> None:
    """What the kernel loads is a constant where it is the bound; an entry of a table of data isn't."""
    x, table = dynamic_programs.numbers(56, 128), np.asarray([5, 3], np.int32)
    text = dynamic_programs.lower(counted, np.asarray(0, np.int32), table, x)
    with CONTEXT, ir.Location.unknown():
        program = specialized(text, SpecializeGrid(values=("3", "6")))
        kernels = Program(program.after).kernels
        assert {symbol: trip_counts(kernel.module) for symbol, kernel in kernels.items()} == {
            "kernel": [None, None],
            "kernel_d0_3": [6, None],
            "kernel_d0_6": [12, None],
        }
        assert_same_meaning(program, [[np.asarray(n, np.int32), table, x] for n in (0, 2, 3, 6, 7)])
        rounded = specialized(text, SpecializeGrid(values=("3", "6"), bucket="round-up"))
        assert trip_counts(Program(rounded.after).kernels["kernel_d0_6"].module) == [None, None]


def pipelined(n: Any, x: Any) -> Any:
    """A kernel with a pipeline of its own inside, of as many steps as the grid has."""
    block = pl.BlockSpec(dynamic_programs.BLOCK, lambda i: (i, 0))
    whole = pl.BlockSpec(memory_space=pl.ANY)

    def add(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] + 1.0

    def kernel(count_ref: Any, x_ref: Any, o_ref: Any) -> None:
        pltpu.emit_pipeline(add, grid=(count_ref[0],), in_specs=[block], out_specs=[block])(x_ref, o_ref)

    spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(n,), in_specs=[whole], out_specs=whole)
    result: Any = pl.pallas_call(kernel, dynamic_programs.array(*x.shape), grid_spec=spec)(n[None], x)
    return result


def test_the_pipeline_inside_of_a_kernel_gets_static_too() -> None:
    """The loop of `emit_pipeline` has a static trip count where it is the bound, and of one step there is none left."""
    chip = AbstractDevice("TPU v5", 2, "tpu")
    x = dynamic_programs.numbers(56, 128)
    with jax.sharding.use_abstract_mesh(AbstractMesh((1,), ("d",), axis_types=(AxisType.Auto,), abstract_device=chip)):
        text = dynamic_programs.lower(pipelined, np.asarray(0, np.int32), x)
    with CONTEXT, ir.Location.unknown():
        program = specialized(text, SpecializeGrid(values=("1", "4")))
        kernels = Program(program.after).kernels
        assert {symbol: trip_counts(kernel.module) for symbol, kernel in kernels.items()} == {
            "kernel": [None],
            "kernel_d0_1": [],
            "kernel_d0_4": [4],
        }
        assert_same_meaning(program, [[np.asarray(n, np.int32), x] for n in (0, 1, 3, 4, 5)])


def test_only_the_same_number_is_the_bound() -> None:
    """A bound that is an element of a table makes that element a constant, and no other; one from anywhere in the table
    makes none of them one.
    """
    x, table = dynamic_programs.numbers(56, 128), np.asarray([5, 3], np.int32)
    fixed = dynamic_programs.lower(lambda table, x: counted(table[1], table, x), table, x)
    anywhere = dynamic_programs.lower(
        lambda k, table, x: counted(table[k], table, x), np.asarray(0, np.int32), table, x
    )
    tables = [np.asarray(each, np.int32) for each in ((5, 3), (3, 5), (3, 3))]
    with CONTEXT, ir.Location.unknown():
        program = specialized(fixed, SpecializeGrid(values=("3",)))
        assert trip_counts(Program(program.after).kernels["kernel_d0_3"].module) == [6, 3]
        assert_same_meaning(program, [[table, x] for table in tables])
        program = specialized(anywhere, SpecializeGrid(values=("3",)))
        assert trip_counts(Program(program.after).kernels["kernel_d0_3"].module) == [6, None]
        assert_same_meaning(program, [[np.asarray(k, np.int32), table, x] for k in (0, 1) for table in tables])


def test_grouped_matmul_keeps_its_meaning() -> None:
    """megablox's grouped matmul, whose bound depends on the sizes of the groups, in variants for some of them."""
    lhs, rhs = np.ones((512, 256), np.float32), dynamic_programs.numbers(4 * 256, 256).reshape(4, 256, 256)
    arrays = [np.asarray(jnp.asarray(each, jnp.bfloat16)) for each in (lhs, rhs)]
    sizes = [np.asarray(each, np.int32) for each in ((128,) * 4, (512, 0, 0, 0), (100, 200, 12, 200), (1, 1, 1, 509))]
    text = dynamic_programs.lower(gmm, *arrays, sizes[0])
    with CONTEXT, ir.Location.unknown():
        program = specialized(text, SpecializeGrid(values=("1=4", "6")))
        assert len(program.grids) == 3
        assert_same_meaning(program, [[*arrays, each] for each in sizes])


def check_random(data: st.DataObject) -> None:
    """Specializes a random kernel for random bounds and compares it on all its launches."""
    sample = data.draw(samples(2))
    dynamic = [axis for axis, dim in enumerate(sample.grid) if dim.dynamic]
    values = [
        f"{axis}={value}"
        for axis in dynamic
        for value in data.draw(st.lists(st.integers(1, 8), min_size=1, max_size=3, unique=True))
    ]
    bucket = data.draw(st.sampled_from(BUCKETS))
    with CONTEXT, ir.Location.unknown():
        program = specialized(sample.text(), SpecializeGrid(values=tuple(values), bucket=bucket, budget=6), "v5e")
        assert_same_meaning(program, launches_of(sample, 2))


@settings(max_examples=12)
@given(data=st.data())
def test_random_kernels_keep_their_meaning(data: st.DataObject) -> None:
    """Any grid with any bounds specialized, guarded or not, computes what it did, bit for bit."""
    check_random(data)


@pytest.mark.full
@settings(max_examples=150)
@given(data=st.data())
def test_many_random_kernels(data: st.DataObject) -> None:
    """The same with many more."""
    check_random(data)


def packed(program: Specialized) -> bytes:
    """The specialized program as libtpu takes it."""
    copy = program.after.clone().operation
    pack(copy)
    return write_bytecode(copy)


@pytest.mark.libtpu
@pytest.mark.skipif(not libtpu_available(), reason="there is no libtpu")
@pytest.mark.parametrize("bucket", BUCKETS)
@pytest.mark.parametrize("name", ["scale_in_place", "gather", *(pytest.param(n, marks=pytest.mark.full) for n in MORE)])
def test_every_variant_compiles_for_every_target(name: str, bucket: Bucket) -> None:
    """The real compiler takes each variant, and shares a static parallel dimension between the cores there are."""
    text, _ = dynamic_programs.programs()[name]
    with CONTEXT, ir.Location.unknown():
        options = SpecializeGrid(values=("2", "6"), bucket=bucket)
        bytecode = {target: packed(specialized(text, options, target)) for target in TARGETS}
    for target in TARGETS:
        (report,) = compile_program(bytecode[target], [parse_target(target)])
        assert not report.failed, [launch.diagnostic for launch in report.launches]
        *variants, original = report.launches
        assert len(variants) >= 2
        if bucket == "exact" and name != "outer_product":
            assert {launch.cores_used for launch in variants} == {parse_target(target).cores}
            assert original.cores_used == 1
